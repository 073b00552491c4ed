"""Sources of the Blackwell rows of the hardware registry."""

from mlsysim.core.types import Source

GB200_LOCKWOOD = Source(
    title="Glenn K. Lockwood, B200",
    url="https://glennklockwood.com/garden/processors/B200",
    locator="Performance, GB200 variant at 1,200 W, columns VFMA and Matrix",
    checked="2026-11-20",
    note="dense. Verda prints the rates of the B200 for all formats",
)
BLACKWELL_TABLE = Source(
    title="Notes on hardware, NVIDIA's table of GB200 NVL72 and HGX B200",
    url="https://zdszero.github.io/Computer/Artificial_Intelligence/Hardware.html",
    locator="Technical Specifications, per GPU",
    checked="2026-11-22",
    note="transcribes NVIDIA's table; tensor rates there are with sparsity. It prints 7.7 TB/s of "
    "memory bandwidth for the B200, where Bekman prints 8",
)
B300_LOCKWOOD = Source(
    title="Glenn K. Lockwood, B300",
    url="https://glennklockwood.com/garden/processors/B300",
    locator="list of properties; Performance, HGX variant, columns VFMA and Matrix",
    checked="2026-11-20",
    note="dense. fp4 is 12.6 PFLOP/s in Bekman's table and 14 in Verda's; Verda prints 7.7 TB/s",
)
B300_MLPERF = Source(
    title="MLPerf Training v6.0, results of Quanta Cloud Technology",
    url="https://raw.githubusercontent.com/mlcommons/training_results_v6.0/main/Quanta_Cloud_Technology/summary.json",
    locator="accelerator_model_name of D75H-10U",
    checked="2026-11-20",
    note="B300-SXM-270GB; Verda prints 270 too, and NVIDIA's blog the announced 288",
)
ULTRA_VERDA = Source(
    title="Verda, NVIDIA GB300 NVL72: GPU Architecture & Performance",
    url="https://verda.com/blog/gb300-nvl72-architecture",
    locator="Per-GPU specifications, columns GB300 and B300",
    checked="2026-11-20",
    note="dense. int8: Lockwood and Bekman print that of the B200; Tom's Hardware prints 0.319 "
    "POPS, which is this with sparsity. Power of the B300: Bekman prints 1,000 W, Lockwood 1,400 W",
)
ULTRA_TOMS = Source(
    title="Nvidia shares Blackwell Ultra's secrets",
    url="https://www.tomshardware.com/pc-components/gpus/nvidia-shares-blackwell-ultras-secrets-nvfp4-boost-detailed-and-pcie-6-0-support",
    locator="table Blackwell vs Blackwell Ultra, FP64/FP64 Tensor",
    checked="2026-11-20",
)
B300_LAUNCH = Source(
    title="AI Wiki, NVIDIA DGX B300",
    url="https://aiwiki.ai/wiki/nvidia_dgx_b300",
    locator="introduction",
    checked="2026-11-20",
    note="announced in March 2025, shipping from January 2026",
)
GB200_LAUNCH = Source(
    title="AI Wiki, NVIDIA GB200 NVL72",
    url="https://aiwiki.ai/wiki/nvidia_gb200_nvl72",
    locator="introduction",
    checked="2026-11-20",
    note="first racks in late 2024, in volume through 2025",
)
GB300_LAUNCH = Source(
    title="AI Wiki, NVIDIA GB300 NVL72",
    url="https://aiwiki.ai/wiki/nvidia_gb300_nvl72",
    locator="introduction",
    checked="2026-11-20",
    note="first unit in July 2025, widely through the second half of 2025",
)
