"""Parts of servers."""

import pytest

from mlsysim import ConfigError, Hardware, Node, Systems, part_of_server
from mlsysim.scenario.names import find_entry

SERVERS = [node for _, node in Systems.Nodes.items() if isinstance(node, Node)]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_part_has_the_servers_host_and_its_own_devices(server):
    held = server.accelerators_per_node
    assert part_of_server(server, held) is server
    if held == 1:
        return
    part = part_of_server(server, 1)
    assert part.accelerators_per_node == 1
    assert part.accelerator == server.accelerator
    assert part.nics_per_node == max(1, server.nics_per_node // held)
    assert part.unit_price is None
    if server.power is not None and server.accelerator.tdp is not None:
        host = server.power - held * server.accelerator.tdp
        rest = part.power - server.accelerator.tdp
        assert rest.to("W").magnitude == pytest.approx(host.to("W").magnitude, abs=1e-6)
        assert part.is_estimated("power")


def test_names_select_parts_of_servers():
    kinds = (type(Hardware.H100), Node)
    part = find_entry("l40s-server:2", kinds)
    assert part == part_of_server(Systems.Nodes.L40S_Server, 2)
    for name, argument in (("L40S_Server:9", "devices"), ("L40S:2", "server")):
        with pytest.raises(ConfigError) as fault:
            find_entry(name, kinds)
        assert fault.value.argument == argument


@pytest.mark.parametrize("devices", [0, 9, 1.0, True, "2"])
def test_a_part_has_whole_devices_of_the_server(devices):
    with pytest.raises(ConfigError) as fault:
        part_of_server(Systems.Nodes.DGX_H100, devices)
    assert fault.value.argument == "devices"
