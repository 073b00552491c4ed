"""Nodes: servers, racks with one domain of fast links, and pods."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Node, cite
from mlsysim.core.units import Q_
from mlsysim.registry.catalogs import Links
from mlsysim.registry.hardware import Hardware

__all__ = ["Nodes"]


class Nodes(Catalog):
    """Servers."""

    DGX_H100 = Node(
        name="DGX H100",
        source=cite("dgx_h100_reference"),
        field_sources={
            "scale_up": cite("nvlink"),
            "power": cite("dgx_h100_power"),
            "unit_price": cite("dgx_h100_price"),
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
        source=cite("dgx_a100_network"),
        field_sources={
            "scale_up": cite("nvlink"),
            "power": cite("dgx_a100_power"),
        },
        accelerator=Hardware.A100,
        accelerators_per_node=8,
        scale_up=Links.NVLink3,
        nics_per_node=8,
        power=Q_(6.5, "kW"),
    )
    """Eight A100 on NVLink 3, one 200 Gbit/s port each."""

    DGX_A100_40GB = Node(
        name="DGX A100 40GB",
        source=cite("dgx_a100_network"),
        field_sources={
            "scale_up": cite("nvlink"),
            "power": cite("dgx_a100_power"),
            "unit_price": cite("dgx_a100_price"),
        },
        estimated=frozenset({"unit_price"}),
        accelerator=Hardware.A100_40GB,
        accelerators_per_node=8,
        scale_up=Links.NVLink3,
        nics_per_node=8,
        power=Q_(6.5, "kW"),
        unit_price=Q_(200_000, "USD"),
    )
    """The DGX A100 of the launch, with GPUs of 40 GB. Its price is the published one."""

    HGX_H200 = Node(
        name="HGX H200",
        source=cite("dgx_h100_reference"),
        field_sources={
            "scale_up": cite("nvlink"),
            "power": cite("dgx_h100_power"),
        },
        estimated=frozenset({"power"}),
        accelerator=Hardware.H200,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
        power=Q_(10.2, "kW"),
    )
    """Eight H200 on NVLink 4, one 400 Gbit/s port each. The power is assumed to be that of its
    predecessor, the DGX H100."""

    DGX_B200 = Node(
        name="DGX B200",
        source=cite("dgx_blackwell"),
        field_sources={
            "scale_up": cite("nvlink5"),
            "power": cite("dgx_blackwell_power"),
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
        source=cite("dgx_blackwell"),
        field_sources={
            "scale_up": cite("nvlink5"),
            "power": cite("dgx_blackwell_power"),
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
        source=cite("gb200_network"),
        field_sources={
            "scale_up": cite("nvlink5"),
            "power": cite("gb200_power"),
            "unit_price": cite("gb200_price"),
        },
        estimated=frozenset({"power", "unit_price"}),
        accelerator=Hardware.GB200,
        accelerators_per_node=72,
        devices_per_host=4,
        scale_up=Links.NVLink5,
        nics_per_node=72,
        power=Q_(120, "kW"),
        unit_price=Q_(3_000_000, "USD"),
    )
    """A rack of 72 GPUs on one NVLink domain, one 400 Gbit/s port each."""

    GB300_NVL72 = Node(
        name="GB300 NVL72",
        source=cite("gb300_network"),
        field_sources={
            "scale_up": cite("nvlink5"),
            "power": cite("gb300_power"),
        },
        estimated=frozenset({"power"}),
        accelerator=Hardware.GB300,
        accelerators_per_node=72,
        devices_per_host=4,
        scale_up=Links.NVLink5,
        nics_per_node=72,
        power=Q_(142, "kW"),
    )
    """A rack of 72 GPUs on one NVLink domain, one 800 Gbit/s port each."""

    VR_NVL72 = Node(
        name="Vera Rubin NVL72",
        source=cite("vera_rubin_nvl72"),
        accelerator=Hardware.Rubin,
        accelerators_per_node=72,
        devices_per_host=4,
        scale_up=Links.NVLink6,
        nics_per_node=144,
    )
    """A rack of 72 GPUs on one NVLink domain, two 800 Gbit/s ports each."""

    Helios = Node(
        name="AMD Helios",
        source=cite("helios"),
        accelerator=Hardware.MI455X,
        accelerators_per_node=72,
        devices_per_host=4,
        scale_up=Links.UALoE,
        nics_per_node=216,
    )
    """A rack of 72 MI455X on one domain of switched links, three 800 Gbit/s ports each."""

    Grand_Teton = Node(
        name="Grand Teton",
        source=cite("h100_hbm2e"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.H100_HBM2e,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
    )
    """Eight H100 with HBM2e on NVLink 4, one 400 Gbit/s port for each."""

    HGX_H800 = Node(
        name="HGX H800",
        source=cite("h800_server"),
        accelerator=Hardware.H800,
        accelerators_per_node=8,
        scale_up=Links.NVLink4_H800,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight H800 on NVLink 4. One 400 Gbit/s port each is assumed, one per plane of DeepSeek's
    network."""

    HGX_H20 = Node(
        name="HGX H20",
        source=cite("h20_tweaktown"),
        field_sources={"nics_per_node": cite("dgx_h100_reference")},
        accelerator=Hardware.H20,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight H20 on NVLink 4. The network is assumed to be that of the DGX H100."""

    H100_PCIe_Server = Node(
        name="Server of H100 PCIe",
        source=cite("h100_pcie"),
        field_sources={"scale_up": cite("pcie")},
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
        source=cite("h200_nvl"),
        field_sources={"nics_per_node": cite("dgx_h100_reference")},
        accelerator=Hardware.H200_NVL,
        accelerators_per_node=4,
        scale_up=Links.NVLink4,
        nics_per_node=4,
        estimated=frozenset({"nics_per_node"}),
    )
    """Four H200 cards on one NVLink 4 bridge. One network port per card is assumed."""

    MI300X_Platform = Node(
        name="MI300X Platform",
        source=cite("vllm_cluster"),
        field_sources={"scale_up": cite("amd_links")},
        accelerator=Hardware.MI300X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric3,
        nics_per_node=8,
    )
    """Eight MI300X, each linked to every other one, and one 400 Gbit/s port for each."""

    MI325X_Platform = Node(
        name="MI325X Platform",
        source=cite("vllm_cluster"),
        field_sources={"scale_up": cite("amd_links")},
        accelerator=Hardware.MI325X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric3,
        nics_per_node=8,
    )
    """Eight MI325X, each linked to every other one, and one 400 Gbit/s port for each."""

    MI350X_Platform = Node(
        name="MI350X Platform",
        source=cite("sglang_cluster"),
        accelerator=Hardware.MI350X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric4,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight MI350X, each linked to every other one. The network is assumed to be that of the MI355X
    platform."""

    MI355X_Platform = Node(
        name="MI355X Platform",
        source=cite("sglang_cluster"),
        accelerator=Hardware.MI355X,
        accelerators_per_node=8,
        scale_up=Links.InfinityFabric4,
        nics_per_node=8,
    )
    """Eight MI355X, each linked to every other one, and one 400 Gbit/s port for each."""

    TPUv5p_Pod = Node(
        name="TPU v5p pod",
        source=cite("cloud_tpu_v5p"),
        field_sources={"nics_per_node": cite("cloud_tpu_v7x")},
        accelerator=Hardware.TPUv5p,
        accelerators_per_node=8_960,
        devices_per_host=4,
        scale_up=Links.ICI_v5p,
        nics_per_node=4_480,
        estimated=frozenset({"devices_per_host"}),
    )
    """8,960 chips in a 3D torus; a job takes a slice. Each chip has 50 Gbit/s of the data center's
    network, which counts as half of a 100 Gbit/s port."""

    TPUv6e_Pod = Node(
        name="TPU v6e pod",
        source=cite("cloud_tpu_v6e"),
        field_sources={"nics_per_node": cite("cloud_tpu_v7x")},
        accelerator=Hardware.TPUv6e,
        accelerators_per_node=256,
        devices_per_host=8,
        scale_up=Links.ICI_v6e,
        nics_per_node=256,
        estimated=frozenset({"devices_per_host"}),
    )
    """256 chips in a 2D torus. A job takes a slice of a pod, or several pods. Each chip has 100
    Gbit/s of the data center's network."""

    TPUv7x_Pod = Node(
        name="TPU7x pod",
        source=cite("cloud_tpu_v7x"),
        accelerator=Hardware.TPUv7x,
        accelerators_per_node=9_216,
        devices_per_host=4,
        scale_up=Links.ICI_v7x,
        nics_per_node=9_216,
        estimated=frozenset({"devices_per_host"}),
    )
    """9,216 chips in a 3D torus; a job takes a slice. Each chip has 100 Gbit/s of the data center's
    network."""

    DGX2_V100 = Node(
        name="DGX-2",
        source=cite("dgx_2"),
        field_sources={"scale_up": cite("nvlink5")},
        accelerator=Hardware.V100,
        accelerators_per_node=16,
        scale_up=Links.NVLink2,
        nics_per_node=8,
    )
    """Sixteen V100 on one switched NVLink 2, with eight ports of 100 Gbit/s."""

    L40S_Server = Node(
        name="Server of L40S",
        source=cite("l40s_aic"),
        accelerator=Hardware.L40S,
        accelerators_per_node=8,
        scale_up=Links.PCIe4,
        nics_per_node=8,
    )
    """Eight L40S on PCIe 4.0, with one 400 Gbit/s port for each."""

    RTX_PRO_6000_Server = Node(
        name="Server of RTX PRO 6000",
        source=cite("rtx_pro_6000_aic"),
        accelerator=Hardware.RTX_PRO_6000,
        accelerators_per_node=8,
        scale_up=Links.PCIe5,
        nics_per_node=8,
        estimated=frozenset({"nics_per_node"}),
    )
    """Eight cards on PCIe 5.0. One 400 Gbit/s port per card is assumed."""

    MI250_Server = Node(
        name="Server of MI250",
        source=cite("mi250_links"),
        accelerator=Hardware.MI250,
        accelerators_per_node=4,
        scale_up=Links.InfinityFabric2,
        nics_per_node=4,
        estimated=frozenset({"accelerators_per_node", "nics_per_node"}),
    )
    """Four MI250, each linked to every other one. Their number and one 400 Gbit/s port per card are
    assumed."""

    Max_1550_Server = Node(
        name="Server of Data Center GPU Max 1550",
        source=cite("max_1550"),
        field_sources={"scale_up": cite("pcie")},
        accelerator=Hardware.Max_1550,
        accelerators_per_node=4,
        scale_up=Links.PCIe5,
        nics_per_node=4,
        estimated=frozenset({"accelerators_per_node", "nics_per_node", "scale_up"}),
    )
    """Four cards on PCIe 5.0. The source does not state the rate of Xe Link, so it is left out."""

    Gaudi2_Server = Node(
        name="Server of Gaudi 2",
        source=cite("gaudi_ports"),
        accelerator=Hardware.Gaudi2,
        accelerators_per_node=8,
        scale_up=Links.Gaudi2_Ethernet,
        nics_per_node=24,
    )
    """Eight chips that reach each other over 21 of their 24 ports. The other three of 100 Gbit/s
    lead out of the server."""

    Gaudi3_Server = Node(
        name="Server of Gaudi 3",
        source=cite("gaudi_ports"),
        accelerator=Hardware.Gaudi3,
        accelerators_per_node=8,
        scale_up=Links.Gaudi3_Ethernet,
        nics_per_node=24,
    )
    """Eight chips that reach each other over 21 of their 24 ports. The other three of 200 Gbit/s
    lead out of the server."""

    Trn2 = Node(
        name="AWS trn2",
        source=cite("trainium2"),
        field_sources={"scale_up": cite("bekman_links"), "nics_per_node": cite("efa")},
        accelerator=Hardware.Trainium2,
        accelerators_per_node=16,
        scale_up=Links.NeuronLink3,
        nics_per_node=16,
        estimated=frozenset({"accelerators_per_node"}),
    )
    """Sixteen Trainium2, with 16 ports of 200 Gbit/s of EFA v3."""

    P5 = Node(
        name="AWS p5",
        source=cite("efa"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.H100,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=32,
    )
    """Eight H100 with 32 ports of 100 Gbit/s of EFA v2."""

    P5en = Node(
        name="AWS p5en",
        source=cite("efa"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.H200,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=16,
    )
    """Eight H200 with 16 ports of 200 Gbit/s of EFA v3."""

    P6_B200 = Node(
        name="AWS p6-b200",
        source=cite("efa"),
        field_sources={"scale_up": cite("nvlink5")},
        accelerator=Hardware.B200,
        accelerators_per_node=8,
        scale_up=Links.NVLink5,
        nics_per_node=8,
    )
    """Eight B200 with 8 ports of 400 Gbit/s of EFA v4."""

    P6_B300 = Node(
        name="AWS p6-b300",
        source=cite("efa"),
        field_sources={"scale_up": cite("nvlink5")},
        accelerator=Hardware.B300,
        accelerators_per_node=8,
        scale_up=Links.NVLink5,
        nics_per_node=16,
    )
    """Eight B300 with 16 ports of 400 Gbit/s of EFA v4."""

    P5e = Node(
        name="AWS p5e",
        source=cite("efa"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.H200,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=32,
    )
    """Eight H200 with 32 ports of 100 Gbit/s of EFA v2."""

    P4d = Node(
        name="AWS p4d",
        source=cite("efa"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.A100_40GB,
        accelerators_per_node=8,
        scale_up=Links.NVLink3,
        nics_per_node=4,
    )
    """Eight A100 with 40 GB, and 4 ports of 100 Gbit/s of EFA v1."""

    A3_Mega = Node(
        name="Google A3 Mega",
        source=cite("google_a3"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.H100,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=8,
    )
    """Eight H100 with 8 ports of 200 Gbit/s."""

    A3_High = Node(
        name="Google A3 High",
        source=cite("google_a3"),
        field_sources={"scale_up": cite("nvlink")},
        accelerator=Hardware.H100,
        accelerators_per_node=8,
        scale_up=Links.NVLink4,
        nics_per_node=4,
    )
    """Eight H100 with 4 ports of 200 Gbit/s."""

    TPUv5e_Pod = Node(
        name="TPU v5e pod",
        source=cite("cloud_tpu_v5e"),
        accelerator=Hardware.TPUv5e,
        accelerators_per_node=256,
        devices_per_host=8,
        scale_up=Links.ICI_v5e,
        nics_per_node=64,
    )
    """256 chips in a 2D torus; a job takes a slice. The pod has 6.4 Tbit/s of the data center's
    network, as 64 ports of 100 Gbit/s."""
