"""Sources of the Apple computers of the hardware registry."""

from mlsysim.core.types import Source

M3_MAX_PAGE = Source(
    title="Hugging Face, hardware page of the Apple M3 Max",
    url="https://huggingface.co/hardware/apple-m3-max",
    locator="Memory, TFLOPS, Power, MSRP",
    checked="2026-11-20",
    note="Apple publishes no arithmetic rate for its GPUs",
)
M3_MAX_BANDWIDTH = Source(
    title="M4 Max chip has 16-core CPU, 40-core GPU and 35% increase in memory bandwidth",
    url="https://macmegasite.com/2024/10/30/m4-max-chip-has-16-core-cpu-40-core-gpu-and-35-increase-in-memory-bandwidth",
    locator="first paragraph, comparison with the M3 Max",
    checked="2026-11-20",
)
M1_MAX = Source(
    title="Apple GPUs, frequently asked questions",
    url="https://calendar-uk.co.uk/frequently-asked-questions/how-many-cores-does-apple-gpu-have",
    locator="paragraph on the M1 Max 32-Core-GPU",
    checked="2026-11-20",
    note="4,096 lanes, up to 10.4 TFLOP/s, 512 bits of LPDDR5-6400; prints GBit/s for GB/s",
)
M2_MAX = Source(
    title="What is the Apple M2 Max?",
    url="https://www.trustedreviews.com/explainer/what-is-the-apple-m2-max-4295791",
    locator="What is the Apple M2 Max?",
    checked="2026-11-20",
    note="400 GB/s, 96 GB, 38 GPU cores; January 2023, after Apple's press release",
)
M2_ULTRA_M4_MAX = Source(
    title="Apple's M4 Max is the first non-Ultra",
    url="https://gamebastion.com/n/apple-s-m4-max-is-the-first-non-ultra/474547",
    locator="first and last paragraph",
    checked="2026-11-20",
    note="546 GB/s and 128 GB for the M4 Max, 800 GB/s and 192 GB for the M2 Ultra",
)
APPLE_CLOCKS = Source(
    title="HMC, 32-core M4 Max against 60-core M2 Ultra",
    url="https://hmc-tech.com/gpu/apple-32-core-m4-max-vs-apple-60-core-m2-ultra",
    locator="first rows: 1678 and 1398 MHz",
    checked="2026-11-20",
    note="rates of smaller variants; the rows scale them by the number of cores",
)
M2_ULTRA_YEAR = Source(
    title="Apple M2 Ultra chip unveiled for Mac Pro and Mac Studio",
    url="https://propakistani.pk/2023/06/06/apple-m2-ultra-chip-unveiled-for-mac-pro-and-mac-studio/",
    locator="whole page, June 2023",
    checked="2026-11-22",
    note="76 cores, 192 GB, 800 GB/s",
)
M3_ULTRA = Source(
    title="TechPowerUp, Apple unleashes new Mac Studio with M3 Ultra and M4 Max SoCs",
    url="https://techpowerup.com/news-tags/Mac%20Studio",
    locator="entry on the M3 Ultra",
    checked="2026-11-22",
    note="80 GPU cores, up to 512 GB at 819 GB/s",
)
M3_ULTRA_YEAR = Source(
    title="BGR, Inside Apple's new M3 Ultra processor",
    url="https://bgr.com/tech/inside-apples-new-m3-ultra-processor/",
    locator="date of the page, 2025-03-05",
    checked="2026-11-22",
)
M5_MAX = Source(
    title="Awesome Agents, Apple M5 Max",
    url="https://awesomeagents.ai/hardware/apple-m5-max",
    locator="Overview, TL;DR",
    checked="2026-11-22",
    note="March 2026, 614 GB/s, up to 128 GB, 40 GPU cores; prompts four times as fast as M4 Max",
)
M5_MAX_RATE = Source(
    title="Hugging Face, hardware page of the Apple M5 Max",
    url="https://huggingface.co/hardware/apple-m5-max",
    locator="TFLOPS, Power",
    checked="2026-11-22",
)
