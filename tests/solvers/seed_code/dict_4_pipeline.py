# The first edition's distributed-training tutorial, as printed. Readers hold this code in their
# hands: it must run unchanged. Neither formatted nor linted.
# ruff: noqa
# fmt: off
print(f"{'PP stages':>10} {'Microbatches':>13} {'Bubble %':>9} {'Comm (ms)':>10} {'Efficiency':>11}")
print("-" * 60)
for pp_size in [1, 2, 4, 8]:
    for m in [1, 4, 16]:
        # Only show interesting combinations
        if pp_size == 1 and m > 1:
            continue
        tp = min(8, cluster.total_accelerators // (pp_size * 4))
        r = solver.solve(
            model=model,
            fleet=cluster,
            batch_size=256,
            precision="fp16",
            tp_size=1,
            pp_size=pp_size,
            microbatch_count=m
        )
        bubble_pct = r["bubble_fraction"] * 100
        print(
            f"{pp_size:>10} "
            f"{m:>13} "
            f"{bubble_pct:>9.1f}% "
            f"{r['pipeline_bubble_latency'].to('ms'):>10.1f~} "
            f"{r['scaling_efficiency']:>11.1%}"
        )
