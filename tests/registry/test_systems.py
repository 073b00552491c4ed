"""Fabrics, links, nodes, clusters and tiers."""

import dataclasses

import pytest

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.types import COMMITMENTS, NetworkFabric
from mlsysim.registry import Systems
from mlsysim.registry.hardware import Hardware
from mlsysim.registry.operations import usual_offer

ROWS = dict(Systems.items())
PORTS = [name for name, row in ROWS.items() if isinstance(row, NetworkFabric)]


@pytest.mark.parametrize(
    ("name", "gbit_per_s"),
    [
        ("Ethernet_10G", 10),
        ("Ethernet_100G", 100),
        ("InfiniBand_HDR", 200),
        ("InfiniBand_NDR", 400),
        ("InfiniBand_XDR", 800),
        ("RoCE_400G", 400),
        ("NVLink5", 18 * 50 * 8),
        ("NVLink3", 12 * 25 * 8),
        ("NVLink4", 18 * 25 * 8),
    ],
)
def test_rates_are_those_of_one_direction(name, gbit_per_s):
    assert ROWS[name].bandwidth.to("Gbit/s").magnitude == pytest.approx(gbit_per_s)


def test_latencies_are_plausible():
    for name in PORTS:
        assert 0.1 < ROWS[name].latency.to("us").magnitude < 100, name


def test_latencies_rank_as_the_paths_do():
    link, fabric, sockets = Systems.NVLink4, Systems.InfiniBand_NDR, Systems.Ethernet_100G
    assert link.latency < fabric.latency < sockets.latency


@pytest.mark.parametrize(
    ("name", "devices", "power"),
    [
        ("DGX_A100", 8, 6500),
        ("DGX_H100", 8, 10_200),
        ("HGX_H200", 8, 10_200),
        ("DGX_B200", 8, 14_300),
        ("DGX_B300", 8, 14_500),
        ("GB200_NVL72", 72, 120_000),
        ("GB300_NVL72", 72, 142_000),
    ],
)
def test_nodes(name, devices, power):
    node = ROWS[name]
    assert node.accelerators_per_node == node.nics_per_node == devices
    assert node.si("power") == power
    # The devices alone draw most of it, and never more.
    assert 0.4 < devices * node.accelerator.si("tdp") / power < 0.9
    assert node.unit_price is None or node.is_estimated("unit_price")


@pytest.mark.parametrize(
    ("name", "devices", "gbit_per_s_of_a_device"),
    [
        ("Grand_Teton", 8, 400),
        ("HGX_H800", 8, 400),
        ("HGX_H20", 8, 400),
        ("MI300X_Platform", 8, 400),
        ("MI355X_Platform", 8, 400),
        ("TPUv5p_Pod", 8960, 50),
        ("TPUv6e_Pod", 256, 100),
        ("TPUv7x_Pod", 9216, 100),
        ("TPUv5e_Pod", 256, 25),
        ("L40S_Server", 8, 400),
    ],
)
def test_ports_of_a_node(name, devices, gbit_per_s_of_a_device):
    node = ROWS[name]
    port = 100 if name.startswith("TPU") else 400
    assert node.accelerators_per_node == devices
    assert node.nics_per_node * port == devices * gbit_per_s_of_a_device


def test_scale_up_agrees_with_the_accelerator():
    for name in Systems.Nodes.names():
        node = ROWS[name]
        # Links of a card reach one other card: beyond that, groups are as fast as PCIe.
        cards = {"H100_PCIe_Server", "L40S_Server", "RTX_PRO_6000_Server", "Max_1550_Server"}
        field = "host_bandwidth" if name in cards else "interconnect_bandwidth"
        # Three of the 24 ports of a Gaudi lead out of the server.
        share = 21 / 24 if name.startswith("Gaudi") else 1
        assert node.scale_up.si("bandwidth") == share * node.accelerator.si(field), name


def test_clusters():
    research, frontier = Systems.Research_256, Systems.Frontier_8K
    assert (research.count, research.total_accelerators) == (32, 256)
    assert (frontier.count, frontier.total_accelerators) == (1024, 8192)
    assert research.fabric is Systems.Ethernet_100G
    assert frontier.fabric is Systems.InfiniBand_NDR


def test_tiers_shrink():
    order = [Systems.Cloud, Systems.Edge, Systems.Mobile, Systems.Tiny]
    for field in ("memory", "power"):
        values = [tier.si(field) for tier in order]
        assert values == sorted(values, reverse=True)


def test_racks_and_pods_have_several_hosts_and_servers_are_one():
    several = {name for name in Systems.Nodes.names() if ROWS[name].devices_per_host is not None}
    racks = {name for name in Systems.Nodes.names() if name.endswith(("NVL72", "_Pod"))}
    assert several == racks | {"Helios"}
    for name in several:
        assert ROWS[name].devices_per_host in {4, 8}
        assert ROWS[name].accelerators_per_node % ROWS[name].devices_per_host == 0


@pytest.mark.parametrize(
    ("name", "port", "gbit_per_s"),
    [
        ("P5", Systems.EFA_v2, 3200),
        ("P5en", Systems.EFA_v3, 3200),
        ("Trn2", Systems.EFA_v3, 3200),
        ("P6_B200", Systems.EFA_v4, 3200),
        ("DGX_B300", Systems.Ethernet_SpectrumX_800G, 6400),
    ],
)
def test_ports_of_a_rented_server_add_up(name, port, gbit_per_s):
    total = ROWS[name].nics_per_node * port.bandwidth
    assert total.to("Gbit/s").magnitude == pytest.approx(gbit_per_s)


@pytest.mark.parametrize(
    ("name", "devices"), [("Selene", 3072), ("Meta_24K", 24_576), ("DeepSeek_2048", 2048)]
)
def test_published_clusters_name_their_source(name, devices):
    assert ROWS[name].total_accelerators == devices
    assert ROWS[name].source.url.startswith("https://")


def test_links_without_a_switch_lead_to_every_other_device():
    for node in Systems.Nodes:
        if node.scale_up.peers is not None:
            assert node.scale_up.peers == node.accelerators_per_node - 1


def test_the_price_of_the_first_dgx_a100_is_that_of_its_smaller_memory():
    assert Systems.DGX_A100_40GB.unit_price.to("USD").magnitude == 200_000
    assert Systems.DGX_A100.unit_price is None


OFFERS = list(Systems.Offers)


def test_offers_are_dated_and_plausible():
    assert len(OFFERS) >= 25
    for row in OFFERS:
        assert row.date >= "2024"
        assert 0.1 < row.price.to("USD/h").magnitude < 20
        assert row.provider
        assert row.name.startswith(row.provider)
    assert {row.commitment for row in OFFERS} == set(COMMITMENTS)


@pytest.mark.parametrize(
    ("device", "price"),
    [
        (Hardware.B300, 7.89),
        (Hardware.GB300, 18),
        (Hardware.MI355X, 2.59),
        (Hardware.TPUv7x, 12),
        (Hardware.TPUv6e, 2.7),
        (Hardware.TPUv5p, 4.2),
        (Hardware.Trainium2, 14.5556 / 16),
        (Hardware.H100, 3.78),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_usual_price_of_a_device_is_the_lower_median_on_demand(device, price):
    assert usual_offer(device).price.to("USD/h").magnitude == pytest.approx(price, rel=1e-3)


@pytest.mark.parametrize("device", [Hardware.Rubin, Hardware.Trainium3, Hardware.MI350X])
def test_a_device_without_a_price_on_demand_has_no_usual_one(device):
    assert usual_offer(device) is None


@pytest.mark.parametrize("date", ["2026", "May 2026", "2026-13", "2026-02-30", ""])
def test_an_offer_without_a_day_or_month_is_refused(date):
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(Systems.Lambda_H100, date=date)
    assert caught.value.argument == "date"


def test_an_unknown_commitment_is_refused():
    with pytest.raises(UnknownEntryError):
        dataclasses.replace(Systems.Lambda_H100, commitment="forever")
