"""Sources of the hardware registry: datasheets, vendors' pages, and comparisons.

If a vendor's document is cited through a transcription, the note names its author.
"""

from mlsysim.core.types import Source
from mlsysim.registry.sources.repositories import BEKMAN_ACCELERATORS, BEKMAN_NETWORK

ASSUMPTION = Source(
    title="Assumption",
    note="not looked up, or not published; the row's note explains the assumption",
)

# NVIDIA data center GPUs

NVIDIA_AMPERE = Source(
    title="NVIDIA Ampere Architecture In-Depth",
    url="https://developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth/",
    locator="Table 3, columns Tesla V100 (SXM2) and A100 (SXM4)",
    checked="2026-11-20",
    note="pairs such as 312/624 are dense/sparse; the row holds the dense one",
)
A100_LOCKWOOD = Source(
    title="Glenn K. Lockwood, A100",
    url="https://glennklockwood.com/garden/processors/A100",
    locator="Specifications, A100 40G SXM4 and A100 80G SXM4",
    checked="2026-11-20",
    note="transcribes NVIDIA's A100 datasheet; links printed per direction (300+300 GB/s)",
)
REPORTED_MEMORY = Source(
    title="Modal, pull request: totals that nvidia-smi reports",
    url="https://github.com/modal-labs/modal-client/pull/2797",
    locator="description",
    checked="2026-11-22",
    note="H100: 81559MiB, A100 80GB: 81920MiB, A100 40GB: 40960MiB",
)
REPORTED_BY_MODAL = Source(
    title="Belotti (2025), Why does an NVIDIA H100 80GB card offer 85.52 GB?",
    url="https://thundergolfer.com/blog/nvidia-gpu-memory-capacity",
    locator="table of product and reported sizes",
    checked="2026-11-22",
    note="T4: 15,360 MiB, L4: 23,034 MiB, L40S: 46,068 MiB, H200: 143,771 MiB",
)
V100_REPORTED_MEMORY = Source(
    title="GLM-130B, issue 32: a printout of nvidia-smi on V100 SXM2",
    url="https://github.com/zai-org/GLM-130B/issues/32",
    checked="2026-11-22",
    locator="first comment",
    note="32510MiB per device",
)
B200_REPORTED_MEMORY = Source(
    title="TensorRT-LLM, issue 10278: a printout of nvidia-smi on eight B200",
    url="https://github.com/NVIDIA/TensorRT-LLM/issues/10278",
    locator="first comment",
    checked="2026-11-22",
    note="183359MiB per device",
)
H100_WHITEPAPER = Source(
    title="NVIDIA H100 Tensor Core GPU Architecture",
    url="https://nvdam.widen.net/s/95bdhpsgrs/nvidia_h100_tensor_core_gpu_architecture_whitepaper_v1.03",
    locator="Table 1, p. 20, column H100 SXM5",
    checked="2026-11-20",
    note="dense column; formats other than bf16 from Lockwood's transcription",
)
H100_LOCKWOOD = Source(
    title="Glenn K. Lockwood, H100",
    url="https://glennklockwood.com/garden/processors/h100",
    locator="Performance, columns VFMA and Matrix",
    checked="2026-11-20",
    note="transcribes NVIDIA's white paper; the column Sparse is not used",
)
H100_PAGE = Source(
    title="NVIDIA H100 GPU, product specifications",
    url="https://www.nvidia.com/en-us/data-center/h100/",
    locator="table Product Specifications, column H100 SXM",
    checked="2026-11-20",
    note="from transcriptions; tensor rates there are with sparsity, links count both directions",
)
H200_MLPERF = Source(
    title="MLPerf Inference v4.1, NVIDIA's system description of 8 x H200-SXM-141GB",
    url="https://raw.githubusercontent.com/mlcommons/inference_results_v4.1/198fc46/closed/NVIDIA/systems/H200-SXM-141GBx8_TRT_MaxQ.json",
    locator="accelerator_memory_capacity, accelerator_interconnect, hw_notes",
    checked="2026-11-20",
    note="900 GB/s NVLink is both directions together",
)
H800_COMPARISON = Source(
    title="NVIDIA H800 vs H100: A Technical Deep Dive",
    url="https://www.philisun.com/technical-analysis/nvidia-h800-vs-h100-a-technical-deep-dive-into-politically-defined-ai-chips",
    locator="table of differences; NVLink and FP64 sections",
    checked="2026-11-20",
    note="NVLink 400 GB/s both directions together, fp64 1 TFLOP/s, the rest as the H100",
)
H800_PAGE = Source(
    title="Hugging Face, hardware page of the H800",
    url="https://huggingface.co/hardware/h800",
    locator="Power, Released",
    checked="2026-11-20",
)
H100_HBM2E = Source(
    title="torchtitan, benchmarks of Llama 3 on H100",
    url="https://github.com/pytorch/torchtitan/blob/31a17bfdb70bab6f62a13d21816a5339b911d6e3/benchmarks/llama3_h100_202412_torchtitan.md",
    locator="Hardware",
    checked="2026-11-22",
    note="8 GPUs per host, 96 GB HBM2e, 2.4 TB/s, 400 Gbit/s per GPU, power limit of 500 W",
)
H100_PCIE = Source(
    title="HPC Tech, NVIDIA H100",
    url="https://archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html",
    locator="table of specifications, column H100 PCIe",
    checked="2026-11-22",
    note="transcribes NVIDIA's page; tensor rates there are with sparsity, links count both "
    "directions. Bekman states the same rates as dense",
)
H200_NVL = Source(
    title="NVIDIA H200 GPU, product specifications",
    url="https://www.nvidia.com/en-us/data-center/h200/",
    locator="table of specifications, column H200 NVL",
    checked="2026-11-23",
    note="from transcriptions; tensor rates there are with sparsity (835 in tf32, 1,671 in bf16, "
    "3,341 in fp8), and the bridge's 900 GB/s count both directions",
)
H20_RATES = Source(
    title="Comparison of the H20 with the H100",
    url="https://zangshuxian.com/new/674733024499207168",
    locator="paragraph on arithmetic",
    checked="2026-11-22",
    note="dense rates in int8, fp16, tf32, fp32 and fp64; other sources also state 296 TFLOP/s in "
    "fp8",
)
H20_TWEAKTOWN = Source(
    title="TweakTown, NVIDIA's tweaked H20 AI GPU enters mass production",
    url="https://www.tweaktown.com/news/95224/nvidias-tweaked-h20-ai-gpu-enters-mass-production-in-q2-2024-destined-for-china/index.html",
    locator="second and third paragraphs",
    checked="2026-11-22",
    note="before the launch: 96 GB, 4.0 TB/s; 900 GB/s of NVLink are both directions together. "
    "Its 400 W are wrong",
)
H20_PAGE = Source(
    title="Hugging Face, hardware page of the H20",
    url="https://huggingface.co/hardware/h20",
    locator="Released",
    checked="2026-11-22",
    note="it also states 148 TFLOPS, 96 GB and 400 W",
)
T4_LAUNCH = Source(
    title="NVIDIA presenta la nueva Tesla T4",
    url="https://geektopia.es/es/technology/2018/09/13/noticias/nvidia-presenta-la-nueva-tesla-t4-basada-en-turing-orientada-a-inteligencia-artificial.html",
    locator="second paragraph",
    checked="2026-11-20",
    note="report of the launch; Turing has no structured sparsity, so the rates are dense",
)
T4_SPECS = Source(
    title="NVIDIA T4 specifications",
    url="https://www.aiminingco.com/gpu/t4/specs",
    locator="second and third paragraphs",
    checked="2026-11-20",
    note="320 GB/s is 256 bits at 10 Gbit/s; one edition of NVIDIA's datasheet prints 300",
)
T4_FP64 = Source(
    title="NVIDIA Tesla T4 graphics card",
    url="https://sysrqmts.com/en/gpus/nvidia/tesla/t4",
    locator="Performance, FP64",
    checked="2026-11-20",
    note="254.4 GFLOP/s, 1/32 of the fp32 rate",
)

# One book compares the vendors' figures and states directions and sparsity.

ML_ENGINEERING_RATES = Source(
    title="Stas Bekman, Machine Learning Engineering Open Book, Accelerators",
    url=BEKMAN_ACCELERATORS,
    locator="TFLOPS comparison table",
    checked="2026-11-22",
    note="dense, without sparsity",
)
ML_ENGINEERING_MEMORY = Source(
    title="Stas Bekman, Machine Learning Engineering Open Book, Accelerators",
    url=BEKMAN_ACCELERATORS,
    locator="Accelerator memory size and speed, table of recent accelerators",
    checked="2026-11-22",
)
ML_ENGINEERING_POWER = Source(
    title="Stas Bekman, Machine Learning Engineering Open Book, Accelerators",
    url=BEKMAN_ACCELERATORS,
    locator="Power consumption, table with vendor terms",
    checked="2026-11-22",
)
ML_ENGINEERING_LINKS = Source(
    title="Stas Bekman, Machine Learning Engineering Open Book, Networking",
    url=BEKMAN_NETWORK,
    locator="tables All-to-all bandwidth and NVLink, column unidirectional",
    checked="2026-11-22",
    note="per direction; vendors print twice this",
)
ML_ENGINEERING_PCIE = Source(
    title="Stas Bekman, Machine Learning Engineering Open Book, Networking",
    url=BEKMAN_NETWORK,
    locator="section PCIe, and note 3 of All-to-all bandwidth",
    checked="2026-11-22",
    note="generation and lanes; rows hold the nominal rate per direction, 64 GB/s for 5.0 x16",
)

# AMD and Google data center devices

AMD_MI300 = Source(
    title="AMD Instinct MI300 series microarchitecture",
    url="https://rocm.docs.amd.com/en/docs-6.2.2/conceptual/gpu-arch/mi300.html",
    locator="table Peak-performance capabilities of the MI300X, and the text below it",
    checked="2026-11-20",
    note="dense; fp64 and fp32 are the matrix rates",
)
CLOUD_TPU_V5P = Source(
    title="Google Cloud, TPU v5p",
    url="https://docs.cloud.google.com/tpu/docs/v5p",
    locator="System architecture, table of key specifications",
    checked="2026-11-20",
    note="capacity printed in GiB; the inter-chip rate of 1200 GB/s is both directions together",
)
CLOUD_TPU_V4 = Source(
    title="Google Cloud, TPU v4",
    url="https://docs.cloud.google.com/tpu/docs/v4",
    locator="System architecture, table of key specifications",
    checked="2026-11-20",
    note="capacity printed in GiB; power measured, 90/170/192 W as minimum, mean and maximum",
)
CLOUD_TPU_V6E = Source(
    title="Google Cloud, TPU v6e",
    url="https://docs.cloud.google.com/tpu/docs/v6e",
    locator="System architecture, table of key specifications",
    checked="2026-11-22",
    note="the inter-chip rate of 800 GB/s is both directions together",
)
CLOUD_TPU_V7X = Source(
    title="Google Cloud, TPU7x (Ironwood)",
    url="https://docs.cloud.google.com/tpu/docs/tpu7x",
    locator="System architecture, table of key specifications, with columns for v5p and v6e",
    checked="2026-11-22",
    note="capacity printed in GiB; the inter-chip rates are both directions together",
)
SCALING_BOOK_TPU = Source(
    title="How to Scale Your Model, chapter 2: How to think about TPUs",
    url="https://jax-ml.github.io/scaling-book/tpus/",
    locator="table TPU specs, row TPU v5p, column int8",
    checked="2026-11-20",
)

# Prices: the makers of these devices publish no list price.

LISTED_PRICES = Source(
    title="Hugging Face, hardware pages",
    url="https://huggingface.co/hardware",
    locator="page of the device, MSRP",
    checked="2026-11-20",
    note="MSRP according to that list, rounded to thousands: neither the maker's list price nor a "
    "price paid",
)

# Phones

A17_PRO = Source(
    title="Apple A17 Pro",
    url="https://grokipedia.com/page/Apple_A17",
    locator="introduction: neural processing unit, memory",
    checked="2026-11-20",
    note="35 trillion operations per second; Apple names no number format",
)
IPHONE_PRICE = Source(
    title="Apple Event 2023: pricing and features of iPhone 15 models",
    url="https://dazeinfo.com/2023/09/13/apple-event-2023-unveiling-pricing-and-features-of-iphone-15-models-apple-watch-series-9-and-more/",
    locator="Major Highlights, 128 GB model",
    checked="2026-11-20",
)
PIXEL_8_MEMORY = Source(
    title="Tensor G3 and Pixel 8 specifications",
    url="https://www.phonearena.com/news/tensor-g3-specs-leaked_id151181",
    locator="paragraph on the Pixel 8",
    checked="2026-11-20",
    note="Google publishes neither arithmetic rate nor memory bandwidth",
)
SNAPDRAGON_MEMORY = Source(
    title="Comparison of Snapdragon mobile platforms",
    url="https://gist.github.com/EwoutH/754fa40ad9ddc93d55084fc46569c759",
    locator="row Memory Controller, column Snapdragon 8 Gen 3 (SM8650)",
    checked="2026-11-20",
    note="4 x 16-bit LPDDR5X at 4800 MHz",
)
SNAPDRAGON_NPU = Source(
    title="Qualcomm Snapdragon 8 Gen 3",
    url="https://runlocalai.co/hardware/snapdragon-8-gen-3",
    locator="introduction",
    checked="2026-11-20",
    note="45 TOPS int8; Qualcomm itself publishes no rate for this chip",
)

# Edge devices

ORIN_NX_DATASHEET = Source(
    title="NVIDIA Jetson Orin NX Series Data Sheet, DS-10712-001 v1.0",
    url="https://files.waveshare.com/wiki/common/Jetson_Orin_NX_DS-10712-001_v1.0.pdf",
    locator="p. 1, Ampere GPU and Operating Requirements; p. 9, Memory",
    checked="2026-11-20",
    note=(
        "1024 CUDA cores and 32 tensor cores at 918 MHz; a tensor core does 1,024 dense int8 "
        "operations a clock (AGX Orin sheet: 64 cores, 1.3 GHz, 170 sparse TOPS)"
    ),
)
CORAL_FAQ = Source(
    title="Coral, Frequently asked questions",
    url="https://coral.ai/docs/edgetpu/faq",
    locator="What is the Edge TPU's processing speed?",
    checked="2026-11-20",
    note="4 TOPS (int8) using 2 W",
)
CORAL_DEV_BOARD = Source(
    title="Google Coral Dev Board",
    url="https://cnblogs.com/siahekai/p/11000783.html",
    locator="Features, Edge TPU Module",
    checked="2026-11-20",
    note="transcribes Google's datasheet",
)
MYRIAD_X = Source(
    title="Optimize Networks for the Intel Neural Compute Stick 2",
    url="https://software.intel.com/en-us/articles/neural-compute-stick-2-optimizing-networks",
    locator="Overview",
    checked="2026-11-20",
    note="1 TOPS on the two neural compute engines; the 4 TOPS of advertisements count all units",
)

# Microcontrollers

ESP32_S3_BOARD = Source(
    title="Zephyr, ESP32S3-Luatos-Core",
    url="https://docs.zephyrproject.org/3.6.0/boards/xtensa/esp32s3_luatos_core/doc/index.html",
    locator="Hardware",
    checked="2026-11-20",
    note="two LX7 cores at 240 MHz, vector instructions, 512 KB (of 1,024 bytes) of SRAM",
)
ESP32_S3_DATASHEET = Source(
    title="Espressif, ESP32-S3 Series Datasheet v2.2",
    url="https://www.espressif.com/sites/default/files/documentation/esp32-s3_datasheet_en.pdf",
    locator="Table 5-9, 240 MHz, both cores in 128-bit access, peripheral clocks on",
    checked="2026-11-20",
    note="107.9 mA at 3.3 V, radio off; quoted from secondary sources",
)
HIMAX_COURSE = Source(
    title="HarvardX, Deploying TinyML, course notes",
    url="https://github.com/tinyMLx/colabs",
    locator="TinyML Development Board Comparison, row Himax WiseEye WE-I Plus EVB",
    checked="2026-11-20",
    note=(
        "HX6537-A, ARC EM9D DSP at 400 MHz, 2 MB (binary) of RAM; from a transcript; the address "
        "is that of the course's code"
    ),
)
MLPERF_TINY = Source(
    title="MLPerf Tiny v1.2, results",
    url="https://github.com/mlcommons/tiny_results_v1.2",
    locator="final_report_v1.2.xlsx: board, processor and frequency",
    checked="2026-11-22",
)
MLPERF_TINY_POWER = Source(
    title="MLPerf Tiny v1.2, results",
    url="https://github.com/mlcommons/tiny_results_v1.2",
    locator="final_report_v1.2.xlsx: energy over latency",
    checked="2026-11-22",
    note="mean of rows marked calibrate in research/measurements/tiny.csv; a measured power, not a "
    "limit",
)
STM32L4R5_BOARD = Source(
    title="RIOT, STM32 Nucleo-L4R5ZI",
    url="https://doc.riot-os.org/boards/nucleo-l4r5zi",
    locator="MCU: 640 KiB of RAM, 120 MHz",
    checked="2026-11-22",
)
STM32U575_BOARD = Source(
    title="RIOT, STM32 Nucleo-U575ZI-Q",
    url="https://doc.riot-os.org/boards/nucleo-u575zi-q",
    locator="MCU: 786 KiB of RAM, 160 MHz",
    checked="2026-11-22",
    note="the overview of the same page says 768 KiB",
)
STM32H7A3_BOARD = Source(
    title="SimpleFOC, STM32H7A3",
    url="https://docs.simplefoc.com/stm32pinouts/STM32H/STM32H7xx/H7A3Z(G-I)TxQ_H7B3ZITxQ/pinout",
    locator="Board entry info, H7A3ZITxQ: 1.4 MB of RAM",
    checked="2026-11-22",
)
STM32F746_BOARD = Source(
    title="Linux, STM32F746 overview",
    url="https://git.zx2c4.com/wireguard-linux/tree/Documentation/arch/arm/stm32/stm32f746-overview.rst",
    locator="Introduction: 320 KBytes of internal RAM, 216 MHz",
    checked="2026-11-22",
)
STM32G0B1_BOARD = Source(
    title="Zephyr, Nucleo G0B1RE",
    url="https://docs.zephyrproject.org/4.0.0/boards/st/nucleo_g0b1re/doc/index.html",
    locator="Hardware: 144 kB of SRAM, 64 MHz",
    checked="2026-11-22",
)
PSOC62_BOARD = Source(
    title="Zephyr, CY8CPROTO-062-4343W",
    url="https://docs.zephyrproject.org/4.0.0/boards/infineon/cy8cproto_062_4343w/doc/index.html",
    locator="Hardware: 1 MB of SRAM, Cortex-M4 at 150 MHz",
    checked="2026-11-22",
)
RA8D1_BOARD = Source(
    title="Qt for MCUs, EK-RA8D1",
    url="https://doc.qt.io/QtForMCUs-2.9/qtul-instructions-ek-ra8d1.html",
    locator="Board features: Cortex-M85, 1 MB of SRAM",
    checked="2026-11-22",
)
ARC_POWER = Source(
    title="ARC Processors for AI, lecture notes",
    url="https://hackmd.io/@d0u0b/SJzm9NTB_",
    locator="ARC EMxD for ML",
    checked="2026-11-20",
    note="peak 43.6 mW, average 2.5 mW at 400 MHz; the notes do not name the chip",
)
