"""Publications that the rows of `mlsysim.registry.offers` cite."""

from mlsysim.core.types import Source

__all__ = [
    "AWS_BLOCKS",
    "CLIFF",
    "COMPUX",
    "PACKET",
    "SPHERON",
    "SPHERON_B200",
    "TECHBYTES",
    "YOBITEL",
]

AWS_BLOCKS = Source(
    title="Amazon EC2 Capacity Blocks for ML Pricing",
    url="https://aws.amazon.com/ec2/capacityblocks/pricing/",
    locator="Pricing Tables, effective accelerator hourly rate",
    checked="2026-11-22",
    note="prices before the update of 2025-01-01",
)
CLIFF = Source(
    title="Cliff Center, AMD inference economics",
    url="https://www.cliffcenter.com/research/amd-inference-economics",
    locator="The surface claim",
    checked="2026-11-22",
    note="research note of 2026-05-18",
)
COMPUX = Source(
    title="CompuX, GPU pricing trends in 2026",
    url="https://compux.net/docs/guides/gpu-pricing-trends-2026",
    locator="introduction",
    checked="2026-11-22",
    note="after an AWS price cut of 44 percent in June 2025; a table of AWS's prices by Vantage "
    "has 55.04 USD/h for a p5.48xlarge in us-east-1, the same",
)
PACKET = Source(
    title="packet.ai, GPU Pricing Models Compared 2026",
    url="https://packet.ai/blog/gpu-pricing-models-compared",
    locator="Key takeaways",
    checked="2026-11-22",
    note="June 2026; for AWS it states the range for H200 and B200",
)
SPHERON = Source(
    title="Spheron, NVIDIA H200 vs B200 vs GB200",
    url="https://www.spheron.network/blog/nvidia-h200-vs-b200-vs-gb200",
    locator="Which GPU Should You Choose?",
    checked="2026-11-22",
    note="as of 17 March 2026",
)
SPHERON_B200 = Source(
    title="Spheron, NVIDIA B200 guide",
    url="https://www.spheron.network/blog/nvidia-b200-complete-guide",
    locator="introduction",
    checked="2026-11-22",
    note="19 March 2026",
)
TECHBYTES = Source(
    title="Tech Bytes, Serverless GPU Pricing Matrix",
    url="https://techbytes.app/posts/serverless-gpu-pricing-matrix-modal-replicate-lambda-2026/",
    locator="Key Takeaways, table",
    checked="2026-11-22",
    note="according to the source, checked against the providers' pages on 7 May 2026",
)
YOBITEL = Source(
    title="Yobitel, NVIDIA H200",
    url="https://yobitel.com/knowledge-base/nvidia-h200",
    locator="TL;DR, market clearing pricing",
    checked="2026-11-22",
    note="for 2026; the row takes the middle of the year as its date",
)
