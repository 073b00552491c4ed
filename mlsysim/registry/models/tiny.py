"""Tiny: networks for microcontrollers."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import FixedShapeModel, cite
from mlsysim.core.units import Q_

__all__ = ["Tiny"]


class Tiny(Catalog):
    """Networks for microcontrollers."""

    DS_CNN = FixedShapeModel(
        name="DS-CNN",
        source=cite("tiny_keywords"),
        parameters=Q_(23_756, "param"),
        flops_per_sample=Q_(2 * 2_656_768, "flop"),
        activations_per_sample=Q_(72_012, "count"),
        input_shape=(1, 49, 10),
        layers=10,
    )
    """Keyword spotting: one second of speech, 12 classes."""

    WakeVision = FixedShapeModel(
        name="Wake Vision",
        source=cite("wake_vision"),
        parameters=Q_(240_674, "param"),
        flops_per_sample=Q_(2 * 35_923_872, "flop"),
        activations_per_sample=Q_(2_277_914, "count"),
        input_shape=(3, 224, 224),
    )
    """Person detection: is a person in the picture?"""

    AnomalyDetector = FixedShapeModel(
        name="Anomaly detector",
        source=cite("tiny_anomaly"),
        parameters=Q_(267_928, "param"),
        flops_per_sample=Q_(2 * 264_192, "flop"),
        activations_per_sample=Q_(1672, "count"),
        input_shape=(640,),
        layers=10,
    )
    """Machine sounds: an autoencoder that cannot reproduce unfamiliar sounds."""

    ResNet8 = FixedShapeModel(
        name="ResNet-8",
        source=cite("tiny_images"),
        parameters=Q_(78_186, "param"),
        flops_per_sample=Q_(2 * 12_501_632, "flop"),
        activations_per_sample=Q_(86_026, "count"),
        input_shape=(3, 32, 32),
        layers=10,
    )
    """Image classification: small pictures, ten classes (CIFAR-10)."""

    MobileNetV1_Quarter = FixedShapeModel(
        name="MobileNetV1 0.25",
        source=cite("tiny_persons"),
        parameters=Q_(216_322, "param"),
        flops_per_sample=Q_(2 * 7_489_664, "flop"),
        activations_per_sample=Q_(231_554, "count"),
        input_shape=(3, 96, 96),
        layers=28,
    )
    """Visual wake words: is a person in the picture?"""
