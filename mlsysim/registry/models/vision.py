"""Vision: convolutional networks for images."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import FixedShapeModel, cite
from mlsysim.core.units import Q_

__all__ = ["Vision"]


class Vision(Catalog):
    """Convolutional networks for images."""

    ResNet50 = FixedShapeModel(
        name="ResNet-50",
        source=cite("resnet50"),
        parameters=Q_(25_557_032, "param"),
        flops_per_sample=Q_(2 * 4_089_184_256, "flop"),
        activations_per_sample=Q_(11_114_984, "count"),
        input_shape=(3, 224, 224),
        layers=54,
    )
    """ResNet-50 (v1.5) for 1,000 classes."""

    MobileNetV2 = FixedShapeModel(
        name="MobileNetV2",
        source=cite("mobilenet_v2"),
        parameters=Q_(3_504_872, "param"),
        flops_per_sample=Q_(2 * 300_774_272, "flop"),
        activations_per_sample=Q_(6_679_112, "count"),
        input_shape=(3, 224, 224),
        layers=53,
    )
    """MobileNetV2 of width 1.0 for 1,000 classes."""

    YOLOv8_Nano = FixedShapeModel(
        name="YOLOv8-Nano",
        source=cite("yolov8"),
        parameters=Q_(3_157_200, "param"),
        flops_per_sample=Q_(2 * 4_371_993_600, "flop"),
        activations_per_sample=Q_(15_131_200, "count"),
        input_shape=(3, 640, 640),
        layers=64,
    )
    """YOLOv8n, a detector for 80 classes."""

    AlexNet = FixedShapeModel(
        name="AlexNet",
        source=cite("alexnet_definition"),
        parameters=Q_(61_100_840, "param"),
        flops_per_sample=Q_(2 * 714_188_480, "flop"),
        activations_per_sample=Q_(494_184, "count"),
        input_shape=(3, 224, 224),
        layers=8,
    )
    """AlexNet: most parameters are in linear layers, but most work is in convolutions."""
