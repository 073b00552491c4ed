"""Pipeline schedules simulated event by event, as an order of passes for each stage.

A schedule is the order in which each stage runs its passes. Times follow from the
orders by one loop, in which a pass starts when its stage is free and its inputs have arrived.
"""

from mlsysim.schedules.orders import Pass, pipeline_orders
from mlsysim.schedules.simulation import play, simulate_pipeline
from mlsysim.schedules.timeline import Event, Timeline

__all__ = ["Event", "Pass", "Timeline", "pipeline_orders", "play", "simulate_pipeline"]
