# The first edition's distributed-training tutorial, as printed. Readers hold this code in their
# hands: it must run unchanged. Neither formatted nor linted.
# ruff: noqa
# fmt: off
from mlsysim import Fleet, NetworkFabric, Systems
fabrics = [
    ("100GbE", Systems.Fabrics.Ethernet_100G),
    ("IB HDR", Systems.Fabrics.InfiniBand_HDR),
    ("IB NDR", Systems.Fabrics.InfiniBand_NDR),
]
print(f"{'Fabric':>10} {'BW (GB/s)':>10} {'Comm overhead':>14} {'Efficiency':>11}")
print("-" * 52)
for fab_name, fabric in fabrics:
    custom_cluster = Fleet(
        name="Custom",
        node=Systems.Nodes.DGX_H100,
        count=32,
        fabric=fabric
    )
    r = solver.solve(
        model=model,
        fleet=custom_cluster,
        batch_size=256,
        precision="fp16"
    )
    print(
        f"{fab_name:>10} "
        f"{fabric.bandwidth.to('GB/s'):>10.0f~} "
        f"{r['dp_communication_latency'].to('ms'):>14.2f~} "
        f"{r['scaling_efficiency']:>11.1%}"
    )
