"""Pipeline schedules played through event by event, as an order of passes for each stage.

A schedule is an order: which passes a stage runs, one after the other. Times follow from the
orders by one loop, in which a pass starts once its stage is free and what it needs has arrived.
"""

from mlsysim.schedules.orders import Pass, pipeline_orders
from mlsysim.schedules.simulation import play, simulate_pipeline
from mlsysim.schedules.timeline import Event, Timeline

__all__ = ["Event", "Pass", "Timeline", "pipeline_orders", "play", "simulate_pipeline"]
