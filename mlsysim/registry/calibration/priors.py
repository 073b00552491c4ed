"""Priors of the training constants.

``python -m research.fits.training`` and `mlsysim.calibrate` both start from these.
"""

from __future__ import annotations

__all__ = ["PRIORS", "SPREAD"]

SPREAD = 0.06
"""Relative error of a run with known constants: the spread between runs."""
PRIORS: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "machine": {
        "gemm_efficiency": (0.75, 0.1, 0.4, 0.92),
        "gemm_efficiency_fp8": (0.68, 0.12, 0.3, 0.92),
        "gemm_efficiency_fp4": (0.57, 0.15, 0.2, 0.92),
        "attention_efficiency": (0.5, 0.3, 0.1, 0.85),
        "attention_half": (500.0, 0.5, 50.0, 5000.0),
        "link_efficiency": (0.77, 0.08, 0.4, 0.97),
        "nic_efficiency": (0.85, 0.12, 0.3, 0.97),
    },
    "software": {
        "gemm_speed": (0.97, 0.1, 0.4, 1.0),
        "attention_speed": (0.9, 0.3, 0.2, 1.0),
        "hidden_bytes": (20.0, 0.7, 6.0, 150.0),
        "cast_bytes": (3.0, 0.7, 0.3, 12.0),
        "score_bytes": (12.2, 0.2, 6.0, 30.0),
        "loss_bytes": (30.0, 0.6, 8.0, 120.0),
        "collective_overhead": (50.0, 1.2, 1.0, 1000.0),
        "layer_launch": (0.5, 0.6, 0.02, 3.0),
        "launch_exposed": (0.1, 0.4, 0.005, 0.6),
        "expert_launch": (2.5, 0.5, 0.05, 8.0),
        "expert_efficiency": (0.8, 0.2, 0.2, 1.0),
        "routing_bytes": (8.7, 0.4, 2.0, 80.0),
        "bias_bytes": (158.0, 0.7, 5.0, 400.0),
        "exchange_overlap": (0.8, 0.2, 0.02, 0.99),
        "tensor_overlap": (0.5, 0.4, 0.02, 0.99),
        "gather_overlap": (0.5, 0.5, 0.02, 1.0),
        "gradient_overlap": (0.8, 0.2, 0.02, 1.0),
        "step_overhead": (2.0, 1.5, 0.05, 100.0),
    },
}
"""For each constant, in the registry's units: the expected value, the spread between machines or
frameworks (standard deviation of the logarithm), and the physical bounds."""
