# The first edition's distributed-training tutorial, as printed. Readers hold this code in their
# hands: it must run unchanged. Neither formatted nor linted.
# ruff: noqa
# fmt: off
solver = DistributedSolver()
result_dp = solver.solve(
    model=model,
    fleet=cluster,
    batch_size=256,
    precision="fp16",
    tp_size=1, # no tensor parallelism
    pp_size=1, # no pipeline parallelism
)
node_perf = result_dp["node_performance"]
print(f"Single-GPU compute time: {node_perf.latency.to('ms'):.1f} ms/step")
print(f"DP all-reduce overhead: {result_dp['dp_communication_latency'].to('ms'):.2f} ms")
print(f"Pipeline bubble: {result_dp['pipeline_bubble_latency'].to('ms'):.2f} ms")
print(f"")
print(f"Total step latency: {result_dp['step_latency_total'].to('ms'):.1f} ms")
print(f"Scaling efficiency: {result_dp['scaling_efficiency']:.1%}")
print(f"Effective throughput: {result_dp['effective_throughput'].magnitude:.0f} samples/s")
print(f"Parallelism: DP={result_dp['parallelism']['dp']} TP={result_dp['parallelism']['tp']} PP={result_dp['parallelism']['pp']}")
