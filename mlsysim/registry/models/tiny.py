"""Tiny: networks for microcontrollers."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import FixedShapeModel
from mlsysim.core.units import Q_
from mlsysim.registry.sources import models as src

__all__ = ["Tiny"]


class Tiny(Catalog):
    """Networks for microcontrollers."""

    DS_CNN = FixedShapeModel(
        name="DS-CNN",
        source=src.TINY_KEYWORDS,
        parameters=Q_(23_756, "param"),
        flops_per_sample=Q_(2 * 2_656_768, "flop"),
        activations_per_sample=Q_(72_012, "count"),
        input_shape=(1, 49, 10),
    )
    """Keyword spotting: one second of speech, 12 classes."""

    WakeVision = FixedShapeModel(
        name="Wake Vision",
        source=src.WAKE_VISION,
        parameters=Q_(240_674, "param"),
        flops_per_sample=Q_(2 * 35_923_872, "flop"),
        activations_per_sample=Q_(2_277_914, "count"),
        input_shape=(3, 224, 224),
    )
    """Person detection: is a person in the picture?"""

    AnomalyDetector = FixedShapeModel(
        name="Anomaly detector",
        source=src.TINY_ANOMALY,
        parameters=Q_(267_928, "param"),
        flops_per_sample=Q_(2 * 264_192, "flop"),
        activations_per_sample=Q_(1672, "count"),
        input_shape=(640,),
    )
    """Machine sounds: an autoencoder that cannot reproduce unfamiliar sounds."""
