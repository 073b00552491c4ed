"""Sources of release years, one per device of the hardware registry."""

from mlsysim.core.types import Source

V100 = Source(
    title="Nvidia Tesla V100",
    url="https://grokipedia.opelly.me/articles/nvidia-tesla-v100",
    locator="introduction and Overview",
    checked="2026-11-20",
    note="launched in 2017; PCIe 3.0",
)
T4 = Source(
    title="NVIDIA T4 specifications",
    url="https://www.aiminingco.com/gpu/t4/specs",
    locator="first paragraph",
    checked="2026-11-20",
    note="announced in September 2018",
)
A100 = Source(
    title="GPU specifications, table by product",
    url="https://huggingface.co/spaces/lambdabrendan/Lambda-LLM-Calculator/blame/main/data/gpu_specs.csv",
    locator="rows A100 SXM4 40 GB and A100 SXM4 80 GB",
    checked="2026-11-20",
    note="14 May and 16 November 2020",
)
H100 = Source(
    title="PCMag Encyclopedia, H100",
    url="https://www.pcmag.com/encyclopedia/term/h100",
    locator="first paragraph",
    checked="2026-11-20",
)
H200 = Source(
    title="AI Wiki, NVIDIA H200",
    url="https://aiwiki.ai/wiki/nvidia_h200",
    locator="introduction",
    checked="2026-11-20",
    note="announced in November 2023, shipped from the second quarter of 2024",
)
B200 = Source(
    title="AI Wiki, NVIDIA B200",
    url="https://aiwiki.ai/wiki/nvidia_b200",
    locator="introduction",
    checked="2026-11-20",
    note="announced in March 2024, first ones shipped late that year, widely through 2025",
)
MI300X = Source(
    title="AI Wiki, AMD Instinct MI300X",
    url="https://aiwiki.ai/wiki/amd_instinct_mi300x",
    locator="introduction",
    checked="2026-11-20",
    note="6 December 2023",
)
TPU_V5P = Source(
    title="AI Wiki, TPU v5p",
    url="https://aiwiki.ai/wiki/google_tpu_v5p",
    locator="introduction",
    checked="2026-11-20",
    note="early access in December 2023, generally available on 9 April 2024",
)
TPU_V6E = Source(
    title="AI Wiki, Trillium (TPU v6e)",
    url="https://aiwiki.ai/wiki/google_trillium",
    locator="introduction",
    checked="2026-11-22",
    note="generally available in December 2024",
)
TPU_V7X = Source(
    title="Tech Simplified, Google Cloud announces Ironwood TPUs",
    url="https://techsimplified.media/tags/ironwood",
    locator="news of 6 November 2025",
    checked="2026-11-22",
    note="generally available",
)
IPHONE_15_PRO = Source(
    title="Summary: Apple September Event",
    url="https://www.bwtechzone.com/2023/09/summary-apple-september-event.html",
    locator="third paragraph",
    checked="2026-11-20",
    note="in stores on 22 September 2023",
)
SNAPDRAGON_8_GEN_3 = Source(
    title="Qualcomm Snapdragon 8 Gen 3 official",
    url="https://www.fonearena.com/blog/408835/qualcomm-snapdragon-8-gen-3-features.html",
    locator="first paragraph",
    checked="2026-11-20",
    note="Snapdragon Summit 2023",
)
CORAL = Source(
    title="ESE-Lab, Kubeflow on a Coral board",
    url="https://github.com/ESE-Lab/Kubeflow",
    locator="README, Coralboard",
    checked="2026-11-20",
    note="early 2019",
)
