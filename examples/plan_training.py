"""Llama 3 70B on 256 H100: which sizes of the parallel groups train fastest?"""

from mlsysim import Q_, DistributedSolver, Models, ReliabilitySolver, Systems, sweep

fleet = Systems.Clusters.Research_256
plans = sweep(
    DistributedSolver,
    invalid="drop",
    model=Models.Llama3_70B,
    fleet=fleet,
    batch_size=256,
    seq_len=4096,
    precision="bf16",
    tp_size=[1, 2, 4, 8],
    pp_size=[1, 2, 4, 8, 16],
    microbatch_count=[4, 8, 16, 32, 64],
    sequence_parallel=True,
)
best = plans.best("effective_throughput")
sizes = best.parallelism
print(f"The fastest of {len(plans)} plans that fits: dp {sizes.dp}, tp {sizes.tp}, pp {sizes.pp}")
print(f"a step takes {best.step_latency_total:.1f}, at {best.mfu:.0%} of the peak rate")

tokens = Q_(100e9, "token")
duration = (tokens / best.token_throughput).to("day")
print(f"100 billion tokens take {duration:.0f}")

job = ReliabilitySolver.solve(fleet=fleet, job_duration_hours=duration, checkpoint_time_s=120)
print(f"with {job.expected_failures:.1f} failures to expect, and a checkpoint every", end=" ")
print(f"{job.optimal_checkpoint_interval:.0f}")
