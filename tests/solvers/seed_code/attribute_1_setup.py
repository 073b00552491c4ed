# The first edition's distributed-training tutorial, as printed. Readers hold this code in their
# hands: it must run unchanged. Neither formatted nor linted.
# ruff: noqa
# fmt: off
from mlsysim import DistributedModel
# Llama-3.1-70B: the model requires distributed training — too large for a single GPU
model = mlsysim.Models.Llama3_70B
# A research-scale cluster: 32 DGX H100 nodes × 8 GPUs = 256 H100s
# (DGX is NVIDIA's pre-built server containing 8 H100 GPUs connected via NVLink)
cluster = mlsysim.Systems.Clusters.Research_256
print(f"Model: {model.name} ({model.parameters.to('Gparam'):.0f} params)")
print(f"Cluster: {cluster.name}")
print(f" Nodes: {cluster.count} × {cluster.node.accelerators_per_node} GPUs/node")
print(f" Total: {cluster.total_accelerators} accelerators")
print(f" Fabric: {cluster.fabric.name} @ {cluster.fabric.bandwidth.to('GB/s'):.0f} GB/s/link")
