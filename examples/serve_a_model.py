"""Llama 3 8B on one H100: a larger batch makes more tokens, and each of them later."""

import numpy as np

from mlsysim import Hardware, Models, ServingSolver, sweep

table = sweep(
    ServingSolver,
    model=Models.Llama3_8B,
    hardware=Hardware.H100,
    seq_len=2048,
    output_len=256,
    batch_size=[1, 4, 16, 64, 256],
)
print(table.select("batch_size", "itl", "output_throughput", "memory_utilization", "feasible"))

fitting = table.where(np.asarray(table["feasible"]))
best = fitting.best("output_throughput")
print(f"\nMost tokens: {best.output_throughput:.0f}, one every {best.itl.to('ms'):.1f} per reader.")
print(f"At most {best.max_batch_size} such sequences fit.")
