"""Pipeline schedules as orders of passes per stage, simulated event by event.

A schedule is the order in which each stage runs its passes. One loop computes the times: a pass
starts when its stage is free and its inputs have arrived.
"""

from mlsysim.schedules.orders import Pass, pipeline_orders
from mlsysim.schedules.simulation import play, simulate_pipeline
from mlsysim.schedules.timeline import Event, Timeline

__all__ = ["Event", "Pass", "Timeline", "pipeline_orders", "play", "simulate_pipeline"]
