"""Traffic: arrivals and lengths of requests, from a trace or from a few numbers."""

from mlsysim.traffic.record import Traffic
from mlsysim.traffic.simulator import Simulated, engine_for, simulate
from mlsysim.traffic.trace import Trace, read_trace

__all__ = ["Simulated", "Trace", "Traffic", "engine_for", "read_trace", "simulate"]
