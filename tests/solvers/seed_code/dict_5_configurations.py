# The first edition's distributed-training tutorial, as printed. Readers hold this code in their
# hands: it must run unchanged. Neither formatted nor linted.
# ruff: noqa
# fmt: off
configs = [
    # (description, tp, pp, m)
    ("DP only", 1, 1, 1),
    ("DP + TP=2", 2, 1, 1),
    ("DP + PP=4, M=16", 1, 4, 16),
    ("DP + TP=2 + PP=4, M=16", 2, 4, 16),
    ("DP + TP=8 + PP=4, M=16", 8, 4, 16),
]
print(f"{'Config':<26} {'DP':>4} {'TP':>4} {'PP':>4} {'Efficiency':>11} {'Throughput':>14}")
print("-" * 72)
for desc, tp, pp, m in configs:
    try:
        r = solver.solve(
            model=model,
            fleet=cluster,
            batch_size=256,
            precision="fp16",
            tp_size=tp,
            pp_size=pp,
            microbatch_count=m
        )
        print(
            f"{desc:<26} "
            f"{r['parallelism']['dp']:>4} "
            f"{r['parallelism']['tp']:>4} "
            f"{r['parallelism']['pp']:>4} "
            f"{r['scaling_efficiency']:>11.1%} "
            f"{r['effective_throughput'].magnitude:>14.1f}"
        )
    except ValueError as e:
        print(f"{desc:<26} {'INFEASIBLE':>44} ({e})")
