"""What the tests of several modules share: a job, and times as plain numbers."""

from mlsysim import Models, Systems

# Eight replicas of four stages of eight devices, which pass 16 microbatches of two sequences
JOB = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
}


def seconds(quantity):
    return quantity.to("s").magnitude


def ms(quantity):
    return quantity.to("ms").magnitude
