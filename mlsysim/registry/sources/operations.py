"""Publications that the rows of `mlsysim.registry.operations` cite."""

from mlsysim.core.types import Source
from mlsysim.registry.sources.repositories import ECOLOGITS_METHOD

__all__ = [
    "AZURE_CONVERSATIONS",
    "B200_IDLE",
    "ECOLOGITS",
    "ECOLOGITS_LIFE",
    "EIA_2024",
    "HGX_B200_CARBON",
    "HGX_H100_CARBON",
    "IDLE_POWER",
    "LLAMA3",
    "LLAMA3_STORAGE",
    "MAINTENANCE",
    "MODEL_CARDS",
    "NODE_POWER",
    "RESEARCH_CLUSTERS",
]


MODEL_CARDS = Source(
    title="Touvron et al. (2023), LLaMA",
    url="https://arxiv.org/abs/2302.13971",
    locator="section 6 and Table 15",
    checked="2026-11-20",
    note="Energy is device-hours times design power times PUE, with every device at its limit all "
    "the time. The model cards of Llama 2 and 3.1 do the same. An upper bound.",
)
IDLE_POWER = Source(
    title="SerialAlice, GPU Energy Benchmark",
    url="http://api.serialalice.pt/alice-benchmark",
    locator="H200: 80.3 W idle",
    checked="2026-11-20",
    note="11% of the 700 W of an H200. Public logs of an idle H100 (70 W) and A100 (58 W) give 10 "
    "and 15%. The makers publish no figure; 10% is assumed.",
)
NODE_POWER = Source(
    title="Latif et al. (2025), Single-Node Power Demand During AI Training",
    url="https://arxiv.org/abs/2412.08602",
    locator="abstract",
    checked="2026-11-20",
    note="An H100 server rated at 10.2 kW drew 8.4 kW at most, its GPUs near full utilization. The "
    "eight GPUs are 5.6 kW of the rating, so the rest drew 2.8 kW of its 4.6 kW, or 61%.",
)
B200_IDLE = Source(
    title="TensorRT-LLM, issue 10278: a printout of nvidia-smi on eight B200",
    url="https://github.com/NVIDIA/TensorRT-LLM/issues/10278",
    locator="first comment",
    checked="2026-11-22",
    note="192 and 196 W of 1,000 W with a model in memory and no work; printouts without a model "
    "show 136 to 145 W. A sixth is assumed.",
)
HGX_H100_CARBON = Source(
    title="NVIDIA, Product Carbon Footprint summary for HGX H100",
    url="https://images.nvidia.com/aem-dam/Solutions/documents/HGX-H100-PCF-Summary.pdf",
    locator="cradle to gate",
    checked="2026-11-20",
    note="1,312 kg for a baseboard of eight GPUs, its switches and heat sinks: 164 kg per GPU. "
    "Quoted from secondary sources. Boavizta estimates 143 kg for an A100.",
)
HGX_B200_CARBON = Source(
    title="NVIDIA, HGX B200 Reduces Embodied Carbon Emissions Intensity",
    url="https://developer.nvidia.com/blog/?p=106112",
    locator="comparison of product carbon footprints",
    checked="2026-11-22",
    note="0.50 against 0.66 g per exaflop of the HGX H100, at 2.3 times its throughput: 1,312 kg "
    "times 1.74 is 2,286 kg. The footprint's own sheet, quoted from secondary sources, states "
    "2,274 kg: 284 kg per GPU.",
)
ECOLOGITS = Source(
    title="EcoLogits, methodology: LLM inference",
    url=ECOLOGITS_METHOD,
    locator="Embodied impacts, server without GPU",
    checked="2026-11-22",
    note="5,700 kg for a p5.48xlarge, a server of eight H100, without its GPUs (BoaviztAPI). It "
    "has two processors, 2 TB of memory and 30 TB of flash.",
)
ECOLOGITS_LIFE = Source(
    title="EcoLogits, methodology: LLM inference",
    url=ECOLOGITS_METHOD,
    locator="Modeling request embodied environmental impacts",
    checked="2026-11-22",
    note="Three years. Cloud providers depreciate servers over five to six years.",
)
EIA_2024 = Source(
    title="Gunkin, FLOPs export: country_electricity_prices.csv",
    url="https://github.com/sfgunkin/flops_export/blob/70373edee7b4d153fe11d99f5312426adcea0e5c/Data/country_electricity_prices.csv",
    locator="row USA",
    checked="2026-11-22",
    note="U.S. Energy Information Administration, industrial price of 2024: the average of the "
    "United States, not of a region.",
)
MAINTENANCE = Source(
    title="CTWatch Quarterly (May 2006), Designing and Supporting High-End Computational "
    "Facilities",
    url="https://icl.utk.edu/ctwatch/quarterly/articles/2006/05/designing-and-supporting-high-end-computational-facilities/2/index.html",
    locator="annual maintenance costs",
    checked="2026-11-20",
    note="4 to 8% of the purchase price per year, at supercomputing centers. 5% is assumed.",
)
LLAMA3 = Source(
    title="Llama Team (2024), The Llama 3 Herd of Models",
    url="https://arxiv.org/abs/2407.21783",
    locator="section 3.3.4 and Table 5",
    checked="2026-11-20",
    note="466 interruptions in a snapshot of 54 days, 47 of them planned. Quoted from "
    "DatacenterDynamics. Of the other 419, 148 were due to faulty GPUs and 72 to their memory.",
)
LLAMA3_STORAGE = Source(
    title="Llama Team (2024), The Llama 3 Herd of Models",
    url="https://arxiv.org/abs/2407.21783",
    locator="section 3.3.1, storage",
    checked="2026-11-22",
    note="2 TB/s sustained (7 TB/s peak), for up to 16,384 GPUs per job. Quoted from secondary "
    "sources.",
)
RESEARCH_CLUSTERS = Source(
    title="Kokolis et al. (2025), Revisiting Reliability in Large-Scale ML Research Clusters",
    url="https://arxiv.org/abs/2410.21680",
    locator="restart overhead u0: 5 to 20 minutes",
    checked="2026-11-20",
    note="Quoted from secondary sources. The geometric mean of the range is used.",
)

AZURE_CONVERSATIONS = Source(
    title="Azure LLM inference trace 2023",
    url="https://github.com/Azure/AzurePublicDataset/blob/b469a11/AzureLLMInferenceDataset2023.md",
    locator="data/AzureLLMInferenceTrace_conv.csv: ContextTokens and GeneratedTokens",
    checked="2026-11-23",
    note="Standard deviation over mean of 19,366 requests, with means of 1,155 and 211 tokens.",
)
