"""Configurations to begin with."""

from __future__ import annotations

TRAINING = """\
name: Pretraining
description: A run on rented nodes.
task: training
model: Llama3_70B
system: {node: DGX_H100, count: 32, fabric: InfiniBand_NDR}
arguments:
  batch_size: 256
  tp_size: 8
  pp_size: 4
  microbatch_count: 16
  sequence_parallel: true
limits:
  mfu: {at_least: 0.2}
  step_latency_total: {at_most: 20 s}
macro:
  duration_days: 30
  region: Quebec
  kwh_price: 0.06 USD/kWh
  utilization: 0.8
  limits:
    carbon_footprint: {at_most: 100 tonne}
"""

CAMERA = """\
name: Camera
task: inference
model: ResNet50
system: {hardware: T4}
arguments: {batch_size: 1, precision: int8}
limits: {latency: {at_most: 10 ms}}
"""


def put(old: str, new: str) -> str:
    """Return the training file with one part replaced."""
    assert TRAINING.count(old) == 1, old
    return TRAINING.replace(old, new)


def camera(old: str, new: str) -> str:
    """Return the camera file with one part replaced."""
    assert CAMERA.count(old) == 1, old
    return CAMERA.replace(old, new)


def without(key: str) -> str:
    """Return the camera file without one line."""
    return "".join(
        line for line in CAMERA.splitlines(keepends=True) if not line.startswith(f"{key}:")
    )
