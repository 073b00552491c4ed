"""One model on three devices: how long does a forward pass take, and what limits it?"""

from mlsysim import Hardware, Models, SingleNodeSolver

print(f"{'device':<28} {'latency':>10}  {'images/s':>9}  limited by")
for device in (Hardware.T4, Hardware.A100, Hardware.H100):
    answer = SingleNodeSolver.solve(model=Models.ResNet50, hardware=device, batch_size=32)
    rate = answer.throughput.magnitude
    print(f"{device.name:<28} {answer.latency.to('ms'):>10.2f}  {rate:>9,.0f}  {answer.bottleneck}")

print("\nWhere the last latency comes from:\n")
print(answer.explain("latency"))
