"""Traffic: how requests arrive and how long they are, from a trace or from a few numbers."""


from mlsysim.traffic.simulator import Simulated, simulate


__all__ = ["Simulated", "simulate"]
