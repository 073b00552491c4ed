"""Sources of cards, laptops and processors for single users."""

from mlsysim.core.types import Source

RTX_2070_SUPER = Source(
    title="heise, GeForce RTX 2060 and 2070 SUPER",
    url="https://www.heise.de/newsticker/meldung/Nvidia-GeForce-RTX-2060-und-2070-SUPER-Mehr-Kerne-mehr-Leistung-Mehrpreis-4457690.html",
    locator="last paragraph",
    checked="2026-11-22",
    note="July 2019: TU104 with 40 multiprocessors, 2,560 lanes",
)
RTX_3090_TI = Source(
    title="TweakTown, NVIDIA GeForce RTX 3090 Ti: full specs",
    url="https://www.tweaktown.com/news/84164/nvidia-geforce-rtx-3090-ti-full-specs-price-performance-details/index.html",
    locator="text and list",
    checked="2026-11-22",
    note="2022: 10,752 lanes, 40 TFLOP/s in fp32, 24 GB at 1,008 GB/s, 450 W",
)
RTX_4070_SUPER = Source(
    title="TechPowerUp, NVIDIA GeForce RTX 4070 SUPER Founders Edition review",
    url="https://techpowerup.com/review/nvidia-geforce-rtx-4070-super-founders-edition/single-page.html",
    locator="introduction",
    checked="2026-11-22",
    note="January 2024: the chip of the RTX 4070 with more lanes",
)
RTX_5080 = Source(
    title="dayFR, the retail box of the RTX 5080",
    url="https://it.dayfr.com/oggi/2192211.html",
    locator="second paragraph",
    checked="2026-11-22",
    note="January 2025: 16 GB of GDDR7; 256 bits at 30 Gbit/s, 960 GB/s, were reported before",
)
LUNAR_LAKE = Source(
    title="TechMehow, Intel Lunar Lake-V",
    url="https://techmehow.com/intel-lunar-lake-v-caps-at-8-arc-battlemage-gpu-and-cpu-cores",
    locator="second paragraph",
    checked="2026-11-22",
    note="eight Xe2 cores, LPDDR5X at 8,533 MT/s; 2024",
)
M3_PRO = Source(
    title="GIGAZINE, memory bandwidth of the M3 Pro",
    url="https://gigazine.net/gsc_news/en/20231101-apple-m3-pro-memory-bandwidth",
    locator="second paragraph",
    checked="2026-11-22",
    note="November 2023: 150 GB/s, 14 or 18 GPU cores",
)
M3_PRO_RATE = Source(
    title="HMC, 8-core M4 against 18-core M3 Pro",
    url="https://hmc-tech.com/gpu/apple-8-core-m4-fl-vs-apple-18-core-m3-pro",
    locator="first rows",
    checked="2026-11-22",
    note="6.44 TFLOP/s in fp32 and fp16",
)
M4_PRO = Source(
    title="MacRumors, Apple announces M4 Pro chip",
    url="https://www.macrumors.com/2024/10/29/apple-announces-m4-pro-chip/",
    locator="first three paragraphs",
    checked="2026-11-22",
    note="up to 20 GPU cores, 64 GB at 273 GB/s",
)
M5_PRO = Source(
    title="M5 Pro and M5 Max",
    url="https://allyoucantech.com/?p=178375",
    locator="third paragraph",
    checked="2026-11-22",
    note="March 2026: up to 64 GB at 307 GB/s",
)
RYZEN_7840 = Source(
    title="CPUTronic, AMD Ryzen 7 7840U",
    url="https://cputronic.com/cpu/amd-ryzen-7-7840u",
    locator="Key Architecture Features",
    checked="2026-11-22",
    note="the same chip: DDR5-5600; 2023",
)
