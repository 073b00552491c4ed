"""Systems: links, nodes, clusters and the tiers in which models are deployed.

Bandwidths are per port and direction. Latencies are end to end, for an empty message.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import DeploymentTier, Fleet, NetworkFabric, Node
from mlsysim.core.units import Q_
from mlsysim.registry.hardware import Hardware
from mlsysim.registry.sources import amd, hardware
from mlsysim.registry.sources import systems as src

__all__ = ["Systems"]


class Fabrics(Catalog):
    """Networks between nodes."""

    Ethernet_10G = NetworkFabric(
        name="Ethernet 10G",
        source=src.ETHERNET,
        field_sources={"latency": src.KERNEL_LATENCY},
        bandwidth=Q_(10, "Gbit/s"),
        latency=Q_(50, "us"),
    )
    """10 Gbit/s Ethernet under TCP."""

    Ethernet_100G = NetworkFabric(
        name="Ethernet 100G",
        source=src.ETHERNET,
        field_sources={"latency": src.KERNEL_LATENCY},
        bandwidth=Q_(100, "Gbit/s"),
        latency=Q_(50, "us"),
    )
    """100 Gbit/s Ethernet under TCP."""

    InfiniBand_HDR = NetworkFabric(
        name="InfiniBand HDR",
        source=src.INFINIBAND,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(200, "Gbit/s"),
        latency=Q_(2.7, "us"),
    )
    """InfiniBand of the A100 generation."""

    InfiniBand_NDR = NetworkFabric(
        name="InfiniBand NDR",
        source=src.INFINIBAND,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(400, "Gbit/s"),
        latency=Q_(2.7, "us"),
    )
    """InfiniBand of the H100 generation."""

    InfiniBand_XDR = NetworkFabric(
        name="InfiniBand XDR",
        source=src.DGX_BLACKWELL,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(800, "Gbit/s"),
        latency=Q_(2.7, "us"),
    )
    """InfiniBand of the Blackwell Ultra generation."""

    RoCE_400G = NetworkFabric(
        name="RoCE 400G",
        source=src.DGX_H100_REFERENCE,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(400, "Gbit/s"),
        latency=Q_(2.7, "us"),
    )
    """400 Gbit/s Ethernet that bypasses the kernel; NCCL plans with one latency for both nets."""


class Links(Catalog):
    """Links between the devices of one node: all links of a device together, per direction."""

    NVLink3 = NetworkFabric(
        name="NVLink 3",
        source=src.NVLINK,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(300, "GB/s"),
        latency=Q_(0.6, "us"),
    )
    """Twelve links of an A100, through NVSwitch."""

    NVLink4 = NetworkFabric(
        name="NVLink 4",
        source=src.NVLINK,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(450, "GB/s"),
        latency=Q_(0.6, "us"),
    )
    """Eighteen links of an H100, through NVSwitch."""

    NVLink5 = NetworkFabric(
        name="NVLink 5",
        source=src.NVLINK5,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(900, "GB/s"),
        latency=Q_(0.6, "us"),
    )
    """Eighteen links of a Blackwell GPU, among the eight of a server or the 72 of a rack."""

    NVLink4_H800 = NetworkFabric(
        name="NVLink 4 of an H800",
        source=hardware.H800_COMPARISON,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(200, "GB/s"),
        latency=Q_(0.6, "us"),
    )
    """Eight links of an H800, through NVSwitch."""

    PCIe5 = NetworkFabric(
        name="PCIe 5.0 x16",
        source=src.PCIE,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(64, "GB/s"),
        latency=Q_(0.6, "us"),
        estimated=frozenset({"latency"}),
    )
    """Cards of one server that only the host connects."""

    InfinityFabric3 = NetworkFabric(
        name="Infinity Fabric of CDNA 3",
        source=src.AMD_LINKS,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(448, "GB/s"),
        latency=Q_(0.6, "us"),
        estimated=frozenset({"latency"}),
    )
    """Seven links of 64 GB/s, one to each of the other seven GPUs of a server. Groups of fewer than
    eight use fewer of them."""

    InfinityFabric4 = NetworkFabric(
        name="Infinity Fabric of CDNA 4",
        source=amd.CDNA4_LINKS,
        field_sources={"latency": src.NCCL_TUNING},
        bandwidth=Q_(535.5, "GB/s"),
        latency=Q_(0.6, "us"),
        estimated=frozenset({"latency"}),
    )
    """Seven links of 76.5 GB/s, one to each of the other seven GPUs of a server. Groups of fewer
    than eight use fewer of them."""

    ICI_v5p = NetworkFabric(
        name="ICI of TPU v5p",
        source=hardware.CLOUD_TPU_V5P,
        field_sources={"latency": src.ICI_LATENCY},
        bandwidth=Q_(600, "GB/s"),
        latency=Q_(1, "us"),
        estimated=frozenset({"latency"}),
    )
    """Six links of a chip in a 3D torus. A group along one axis uses two of them."""

    ICI_v6e = NetworkFabric(
        name="ICI of TPU v6e",
        source=hardware.CLOUD_TPU_V6E,
        field_sources={"latency": src.ICI_LATENCY},
        bandwidth=Q_(400, "GB/s"),
        latency=Q_(1, "us"),
        estimated=frozenset({"latency"}),
    )
    """Four links of a chip in a 2D torus. A group along one axis uses two of them."""

    ICI_v7x = NetworkFabric(
        name="ICI of TPU7x",
        source=hardware.CLOUD_TPU_V7X,
        field_sources={"latency": src.ICI_LATENCY},
        bandwidth=Q_(600, "GB/s"),
        latency=Q_(1, "us"),
        estimated=frozenset({"latency"}),
    )
    """Six links of a chip in a 3D torus. A group along one axis uses two of them."""


class Nodes(Catalog):
    """Servers."""

    DGX_H100 = Node(
        name="DGX H100",
        source=src.DGX_H100_REFERENCE,
        field_sources={
            "scale_up": src.NVLINK,
            "power": src.DGX_H100_POWER,
            "unit_price": src.DGX_H100_PRICE,
        },
        estimated=frozenset({"unit_price"}),
        accelerator=Hardware.H100,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
        power=Q_(10.2, "kW"),
        unit_price=Q_(270_000, "USD"),
    )
    """Eight H100 on NVLink 4, one 400 Gbit/s port each."""

    DGX_A100 = Node(
        name="DGX A100",
        source=src.DGX_A100_NETWORK,
        field_sources={
            "scale_up": src.NVLINK,
            "power": src.DGX_A100_POWER,
            "unit_price": src.DGX_A100_PRICE,
        },
        estimated=frozenset({"unit_price"}),
        accelerator=Hardware.A100,
        accelerators_per_node=8,
        scale_up=Links.NVLink3,
        nics_per_node=8,
        power=Q_(6.5, "kW"),
        unit_price=Q_(200_000, "USD"),
    )
    """Eight A100 on NVLink 3, one 200 Gbit/s port each."""

    HGX_H200 = Node(
        name="HGX H200",
        source=src.DGX_H100_REFERENCE,
        field_sources={
            "scale_up": src.NVLINK,
            "power": src.DGX_H100_POWER,
        },
        estimated=frozenset({"power"}),
        accelerator=Hardware.H200,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
        power=Q_(10.2, "kW"),
    )
    """Eight H200 on NVLink 4, one 400 Gbit/s port each. Assumed power: that of its
    predecessor, the DGX H100."""

    DGX_B200 = Node(
        name="DGX B200",
        source=src.DGX_BLACKWELL,
        field_sources={
            "scale_up": src.NVLINK5,
            "power": src.DGX_BLACKWELL_POWER,
        },
        accelerator=Hardware.B200,
        accelerators_per_node=8,
        scale_up=Links.NVLink5,
        nics_per_node=8,
        power=Q_(14.3, "kW"),
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight B200 on NVLink 5, one network port each."""

    DGX_B300 = Node(
        name="DGX B300",
        source=src.DGX_BLACKWELL,
        field_sources={
            "scale_up": src.NVLINK5,
            "power": src.DGX_BLACKWELL_POWER,
        },
        accelerator=Hardware.B300,
        accelerators_per_node=8,
        scale_up=Links.NVLink5,
        nics_per_node=8,
        power=Q_(14.5, "kW"),
    )
    """Eight B300 on NVLink 5, one 800 Gbit/s port each."""

    GB200_NVL72 = Node(
        name="GB200 NVL72",
        source=src.GB200_NETWORK,
        field_sources={
            "scale_up": src.NVLINK5,
            "power": src.GB200_POWER,
        },
        estimated=frozenset({"power"}),
        accelerator=Hardware.GB200,
        accelerators_per_node=72,
        trays=18,
        scale_up=Links.NVLink5,
        nics_per_node=72,
        power=Q_(120, "kW"),
    )
    """A rack of 72 GPUs on one NVLink domain, one 400 Gbit/s port each."""

    GB300_NVL72 = Node(
        name="GB300 NVL72",
        source=src.GB300_NETWORK,
        field_sources={
            "scale_up": src.NVLINK5,
            "power": src.GB300_POWER,
        },
        estimated=frozenset({"power"}),
        accelerator=Hardware.GB300,
        accelerators_per_node=72,
        trays=18,
        scale_up=Links.NVLink5,
        nics_per_node=72,
        power=Q_(142, "kW"),
    )
    """A rack of 72 GPUs on one NVLink domain, one 800 Gbit/s port each."""

    Grand_Teton = Node(
        name="Grand Teton",
        source=hardware.H100_HBM2E,
        field_sources={"scale_up": src.NVLINK},
        accelerator=Hardware.H100_HBM2e,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
    )
    """Eight H100 with HBM2e on NVLink 4, one 400 Gbit/s port for each."""

    HGX_H800 = Node(
        name="HGX H800",
        source=src.H800_SERVER,
        accelerator=Hardware.H800,
        accelerators_per_node=8,
        scale_up=Links.NVLink4_H800,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight H800 on NVLink 4, one 400 Gbit/s port for each, as one per plane of
    DeepSeek's network suggests."""

    HGX_H20 = Node(
        name="HGX H20",
        source=hardware.H20_TWEAKTOWN,
        field_sources={"nics_per_node": src.DGX_H100_REFERENCE},
        accelerator=Hardware.H20,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight H20 on NVLink 4. Network assumed: that of the DGX H100."""

    H100_PCIe_Server = Node(
        name="Server of H100 PCIe",
        source=hardware.H100_PCIE,
        field_sources={"scale_up": src.PCIE},
        accelerator=Hardware.H100_PCIe,
        accelerators_per_node=8,
        scale_up=Links.PCIe5,
        nics_per_node=8,
        estimated=frozenset({"accelerators_per_node", "nics_per_node"}),
    )
    """Eight H100 cards on PCIe 5.0. Bridges join pairs of them, but larger groups are only as fast
    as PCIe. The numbers of cards and ports are assumed."""

    H200_NVL_Server = Node(
        name="Server of H200 NVL",
        source=hardware.H200_NVL,
        field_sources={"nics_per_node": src.DGX_H100_REFERENCE},
        accelerator=Hardware.H200_NVL,
        accelerators_per_node=4,
        scale_up=Links.NVLink4,
        nics_per_node=4,
        estimated=frozenset({"nics_per_node"}),
    )
    """Four H200 cards on one bridge of NVLink 4. Network assumed: one port for each."""

    MI300X_Platform = Node(
        name="MI300X Platform",
        source=amd.VLLM_CLUSTER,
        field_sources={"scale_up": src.AMD_LINKS},
        accelerator=Hardware.MI300X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric3,
        nics_per_node=8,
    )
    """Eight MI300X, each linked to every other one, and one 400 Gbit/s port for each."""

    MI325X_Platform = Node(
        name="MI325X Platform",
        source=amd.VLLM_CLUSTER,
        field_sources={"scale_up": src.AMD_LINKS},
        accelerator=Hardware.MI325X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric3,
        nics_per_node=8,
    )
    """Eight MI325X, each linked to every other one, and one 400 Gbit/s port for each."""

    MI350X_Platform = Node(
        name="MI350X Platform",
        source=amd.SGLANG_CLUSTER,
        accelerator=Hardware.MI350X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric4,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight MI350X, each linked to every other one. Network assumed: as the MI355X platform."""

    MI355X_Platform = Node(
        name="MI355X Platform",
        source=amd.SGLANG_CLUSTER,
        accelerator=Hardware.MI355X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric4,
        nics_per_node=8,
    )
    """Eight MI355X, each linked to every other one, and one 400 Gbit/s port for each."""

    TPUv5p_Pod = Node(
        name="TPU v5p pod",
        source=hardware.CLOUD_TPU_V5P,
        field_sources={"nics_per_node": hardware.CLOUD_TPU_V7X},
        accelerator=Hardware.TPUv5p,
        accelerators_per_node=8_960,
        scale_up=Links.ICI_v5p,
        nics_per_node=4_480,
    )
    """8,960 chips in a 3D torus, of which a job takes a slice. Each chip has 50 Gbit/s of the data
    center's network, which counts as half of a 100 Gbit/s port."""

    TPUv6e_Pod = Node(
        name="TPU v6e pod",
        source=hardware.CLOUD_TPU_V6E,
        field_sources={"nics_per_node": hardware.CLOUD_TPU_V7X},
        accelerator=Hardware.TPUv6e,
        accelerators_per_node=256,
        scale_up=Links.ICI_v6e,
        nics_per_node=256,
    )
    """256 chips in a 2D torus. A job takes a slice of it, or several pods. Each chip has 100 Gbit/s
    of the data center's network."""

    TPUv7x_Pod = Node(
        name="TPU7x pod",
        source=hardware.CLOUD_TPU_V7X,
        accelerator=Hardware.TPUv7x,
        accelerators_per_node=9_216,
        scale_up=Links.ICI_v7x,
        nics_per_node=9_216,
    )
    """9,216 chips in a 3D torus, of which a job takes a slice. Each chip has 100 Gbit/s of the data
    center's network."""


class Clusters(Catalog):
    """Fleets for the tutorials; not published systems."""

    Research_256 = Fleet(
        name="Research 256",
        node=Nodes.DGX_H100,
        count=32,
        fabric=Fabrics.Ethernet_100G,
        note="A university's budget: fast nodes on a slow network.",
    )
    """256 H100 on 100 Gbit/s Ethernet."""

    Frontier_8K = Fleet(
        name="Frontier 8K",
        node=Nodes.DGX_H100,
        count=1024,
        fabric=Fabrics.InfiniBand_NDR,
        note="Of the size that trains frontier models.",
    )
    """8,192 H100 on InfiniBand NDR."""


class Tiers(Catalog):
    """Places where models run, with the budgets of one deployment."""

    Cloud = DeploymentTier(
        name="Cloud",
        source=src.TIER_BUDGETS,
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(80, "GB"),
        power=Q_(700, "W"),
        latency=Q_(200, "ms"),
    )
    """One data center GPU; the answer crosses the internet."""

    Edge = DeploymentTier(
        name="Edge",
        source=src.TIER_BUDGETS,
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(16, "GB"),
        power=Q_(25, "W"),
        latency=Q_(33, "ms"),
    )
    """A module in a car or on a factory floor; one frame of video."""

    Mobile = DeploymentTier(
        name="Mobile",
        source=src.TIER_BUDGETS,
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(8, "GB"),
        power=Q_(5, "W"),
        latency=Q_(50, "ms"),
    )
    """A phone, in the hand."""

    Tiny = DeploymentTier(
        name="Tiny",
        source=src.TIER_BUDGETS,
        estimated=frozenset({"memory", "power", "latency"}),
        memory=Q_(512, "KiB"),
        power=Q_(100, "mW"),
        latency=Q_(200, "ms"),
    )
    """A microcontroller on a battery."""


class Systems(Fabrics, Links, Nodes, Clusters, Tiers):
    """All systems, by name and by kind."""

    Fabrics = Fabrics
    Links = Links
    Nodes = Nodes
    Clusters = Clusters
    Tiers = Tiers
