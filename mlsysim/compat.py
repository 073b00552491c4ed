"""Names of the printed first edition, and their current names.

They stay importable from `mlsysim`; new code should use the current names.
"""

from mlsysim.solvers import (
    DistributedResult,
    DistributedSolver,
    EconomicsSolver,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
)

__all__ = [
    "DistributedModel",
    "EconomicsModel",
    "Engine",
    "ReliabilityModel",
    "ServingModel",
    "SingleNodeModel",
    "SustainabilityModel",
]

DistributedModel = DistributedSolver
EconomicsModel = EconomicsSolver
Engine = SingleNodeSolver
ReliabilityModel = ReliabilitySolver
ServingModel = ServingSolver
SingleNodeModel = SingleNodeSolver
SustainabilityModel = SustainabilitySolver

# `mlsysim` imports this module, so every result has these names.
DistributedResult.aliases = {"node_profile": "node_performance"}
