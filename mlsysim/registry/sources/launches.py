"""Sources of release years, one per device of the hardware registry."""

from mlsysim.core.types import Source

V100 = Source(
    title="PC Perspective, NVIDIA announces DGX-2 with 16 GV100s",
    url="https://pcper.com/2018/03/nvidia-announces-dgx-2-with-16-gv100s-8-100gb-nics/",
    locator="second paragraph",
    checked="2026-11-23",
    note="March 2018: V100 with 32 GB are available",
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
    title="MLPerf Inference v4.1, NVIDIA's system description of 8 x H200-SXM-141GB",
    url="https://raw.githubusercontent.com/mlcommons/inference_results_v4.1/198fc46/closed/NVIDIA/systems/H200-SXM-141GBx8_TRT_MaxQ.json",
    locator="the round, of 2024",
    checked="2026-11-20",
)
B200 = Source(
    title="The Next Platform, sizing up AWS Blackwell GPU systems",
    url="https://www.nextplatform.com/?p=146009",
    locator="first paragraph",
    checked="2026-11-23",
    note="AWS rents servers of B200 since 15 May 2025, and racks of GB200 since July 2025",
)
MI300X = Source(
    title="AMD Instinct MI300X, specifications",
    url="https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html",
    locator="launch date",
    checked="2026-11-23",
    note="from a transcription: 6 December 2023",
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
