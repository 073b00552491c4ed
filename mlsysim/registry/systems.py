"""Systems: links, nodes, clusters, rents, and the tiers in which models are deployed."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import DeploymentTier, Fleet, cite
from mlsysim.core.units import Q_
from mlsysim.registry.catalogs import Fabrics, Links, Offers
from mlsysim.registry.nodes import Nodes

__all__ = ["Systems"]


class Clusters(Catalog):
    """Fleets for the tutorials, and published systems."""

    Research_256 = Fleet(
        name="Research 256",
        node=Nodes.DGX_H100,
        count=32,
        fabric=Fabrics.Ethernet_100G,
        note="A cluster within a university's budget: fast nodes on a slow network.",
    )
    """256 H100 on 100 Gbit/s Ethernet."""

    Frontier_8K = Fleet(
        name="Frontier 8K",
        node=Nodes.DGX_H100,
        count=1024,
        fabric=Fabrics.InfiniBand_NDR,
        note="A cluster of the size used to train frontier models.",
    )
    """8,192 H100 on InfiniBand NDR."""

    Selene = Fleet(
        name="Selene",
        node=Nodes.DGX_A100,
        count=384,
        fabric=Fabrics.InfiniBand_HDR,
        source=cite("selene"),
        note="NVIDIA's own cluster, on which Megatron-LM was measured up to 3,072 GPUs.",
    )
    """3,072 A100 with 80 GB on InfiniBand HDR, used in Megatron-LM's largest run."""

    Meta_24K = Fleet(
        name="Meta 24K",
        node=Nodes.DGX_H100,
        count=3072,
        fabric=Fabrics.RoCE_400G,
        source=cite("meta_24k"),
        note="One of the two clusters on which Llama 3 was trained. Racks of Grand Teton with H100 "
        "of 80 GB; the node is the DGX H100, which has the same GPUs, links and ports.",
    )
    """24,576 H100 on RoCE at 400 Gbit/s: 3,072 GPUs in each of eight pods, with 7:1
    oversubscription at the spine. The model ignores this and assumes a nonblocking network."""

    DeepSeek_2048 = Fleet(
        name="DeepSeek 2048",
        node=Nodes.HGX_H800,
        count=256,
        fabric=Fabrics.InfiniBand_NDR,
        source=cite("h800_server"),
        note="The cluster on which DeepSeek-V3 was trained.",
    )
    """2,048 H800 on a fat tree of InfiniBand with several planes."""


class Tiers(Catalog):
    """Classes of places where models run, with the budgets of one deployment."""

    Cloud = DeploymentTier(
        name="Cloud",
        source=cite("tier_budgets"),
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(80, "GB"),
        power=Q_(700, "W"),
        latency=Q_(200, "ms"),
    )
    """One data center GPU; answers travel over the internet."""

    Edge = DeploymentTier(
        name="Edge",
        source=cite("tier_budgets"),
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(16, "GB"),
        power=Q_(25, "W"),
        latency=Q_(33, "ms"),
    )
    """A module in a car or on a factory floor; one frame of video."""

    Mobile = DeploymentTier(
        name="Mobile",
        source=cite("tier_budgets"),
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(8, "GB"),
        power=Q_(5, "W"),
        latency=Q_(50, "ms"),
    )
    """A phone, in the hand."""

    Tiny = DeploymentTier(
        name="Tiny",
        source=cite("tier_budgets"),
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(512, "KiB"),
        power=Q_(100, "mW"),
        latency=Q_(200, "ms"),
    )
    """A microcontroller on a battery."""


class Systems(Fabrics, Links, Nodes, Clusters, Tiers, Offers):
    """All systems, by name and by kind."""

    Fabrics = Fabrics
    Links = Links
    Nodes = Nodes
    Clusters = Clusters
    Tiers = Tiers
    Offers = Offers
