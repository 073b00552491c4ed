"""Calibrations of networks of fixed shape: one row per kind of device, engine and format.

``python -m research.fits.networks`` fits the constants to the rows marked ``calibrate`` in
``research/measurements/tiny.csv`` (microcontrollers) and ``research/measurements/passes.csv``
(GPUs), and prints them.
"""

from collections.abc import Mapping

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, NetworkCalibration, Source
from mlsysim.core.units import Q_
from mlsysim.registry.conventions import TEXTBOOK_EFFICIENCY
from mlsysim.registry.hardware import Hardware
from mlsysim.registry.hardware.tiny import Tiny
from mlsysim.registry.models import Models

__all__ = ["CORES", "NetworkCalibrations", "network_calibration_for"]

CORES: Mapping[str, str] = {
    Hardware.STM32L4R5.name: "Cortex-M4",
    Hardware.PSoC_62.name: "Cortex-M4",
    Hardware.STM32U575.name: "Cortex-M33",
    Hardware.STM32H7A3.name: "Cortex-M7",
    Hardware.STM32F746.name: "Cortex-M7",
    Hardware.STM32G0B1.name: "Cortex-M0+",
    Hardware.RA8D1.name: "Cortex-M85",
    Hardware.RH850_F1KM.name: "RH850G3KH",
    Hardware.NDP120_30MHz.name: "Syntiant Core 2",
    Hardware.NDP120_98MHz.name: "Syntiant Core 2",
    Hardware.ESP32_S3.name: "Xtensa LX7",
}
"""The core of each device that has constants."""

_FITTED = Source(
    title="Fitted by research/fits/networks.py",
    locator="32 calibrate rows of MLPerf Tiny v1.2",
    checked="2026-11-22",
    note="research/measurements/tiny.csv; check rows are held out. Constants that the rows of a "
    "core do not identify stay near those of the other cores and engines.",
)
_BAND = (0.843, 1.312)


def _row(
    engine: str,
    core: str,
    precision: str,
    efficiency: float,
    output_flops: float,
    weight_flops: float,
) -> NetworkCalibration:
    low, high = _BAND
    return NetworkCalibration(
        name=f"{core}, {engine}, {precision}",
        source=_FITTED,
        engine=engine,
        core=core,
        precision=precision,
        efficiency=efficiency,
        output_flops=Q_(output_flops, "flop"),
        weight_flops=Q_(weight_flops, "flop"),
        pass_band_low=low,
        pass_band_high=high,
    )


_GPU_RUNS = Source(
    title="Fitted by research/fits/networks.py",
    locator="calibrate rows of ResNet-50 in MLPerf Inference v1.1 to v4.1",
    checked="2026-11-23",
    note="research/measurements/passes.csv; check rows are held out. The band comes from leaving "
    "devices out, one at a time.",
)


class NetworkCalibrations(Catalog):
    """Constants per kind of device, engine and number format."""

    Cortex_M33_XCubeAI = _row("X-CUBE-AI", "Cortex-M33", "int8", 0.410, 9.76, 1.09)
    """STMicroelectronics' X-CUBE-AI 9.0, int8."""
    Cortex_M4_XCubeAI = _row("X-CUBE-AI", "Cortex-M4", "int8", 0.330, 9.76, 1.09)
    """STMicroelectronics' X-CUBE-AI 9.0, int8."""
    Cortex_M7_XCubeAI = _row("X-CUBE-AI", "Cortex-M7", "int8", 0.607, 9.76, 1.09)
    """STMicroelectronics' X-CUBE-AI 9.0, int8."""
    Cortex_M85_Renesas = _row("Renesas", "Cortex-M85", "int8", 0.475, 90.4, 4.61)
    """TensorFlow Lite models on the RA8D1, as Renesas submitted them, int8."""
    Core_2_Syntiant = _row("Syntiant", "Syntiant Core 2", "int8", 0.870, 29.6, 1.62)
    """Syntiant's own program, int8."""
    Cortex_M0_Plus_HALE = _row("HALE", "Cortex-M0+", "int8", 0.155, 53.5, 0.899)
    """Bosch's Hardware-Aware Lowering Engine 1.0, int8."""
    Cortex_M33_HALE = _row("HALE", "Cortex-M33", "int8", 0.361, 53.5, 0.899)
    """Bosch's Hardware-Aware Lowering Engine 1.0, int8."""
    Cortex_M4_HALE = _row("HALE", "Cortex-M4", "int8", 0.301, 53.5, 0.899)
    """Bosch's Hardware-Aware Lowering Engine 1.0, int8."""
    Cortex_M7_HALE = _row("HALE", "Cortex-M7", "int8", 0.567, 53.5, 0.899)
    """Bosch's Hardware-Aware Lowering Engine 1.0, int8."""
    RH850_HALE = _row("HALE", "RH850G3KH", "int8", 0.267, 53.5, 0.899)
    """Bosch's Hardware-Aware Lowering Engine 1.0, int8."""
    Cortex_M4_HALE_fp32 = _row("HALE", "Cortex-M4", "fp32", 0.193, 25, 1.58)
    """Bosch's Hardware-Aware Lowering Engine 1.0, fp32."""
    Cortex_M7_HALE_fp32 = _row("HALE", "Cortex-M7", "fp32", 0.457, 25, 1.58)
    """Bosch's Hardware-Aware Lowering Engine 1.0, fp32."""
    RH850_HALE_fp32 = _row("HALE", "RH850G3KH", "fp32", 0.298, 25, 1.58)
    """Bosch's Hardware-Aware Lowering Engine 1.0, fp32."""
    Cortex_M0_Plus_HALE_Fast = _row(
        "HALE, max performance", "Cortex-M0+", "int8", 0.155, 53.5, 0.355
    )
    """The same engine, in the build that Bosch calls max performance, int8."""
    Cortex_M33_HALE_Fast = _row("HALE, max performance", "Cortex-M33", "int8", 0.361, 53.5, 0.355)
    """The same engine, in the build that Bosch calls max performance, int8."""
    Cortex_M4_HALE_Fast = _row("HALE, max performance", "Cortex-M4", "int8", 0.301, 53.5, 0.355)
    """The same engine, in the build that Bosch calls max performance, int8."""
    Cortex_M7_HALE_Fast = _row("HALE, max performance", "Cortex-M7", "int8", 0.567, 53.5, 0.355)
    """The same engine, in the build that Bosch calls max performance, int8."""
    RH850_HALE_Fast = _row("HALE, max performance", "RH850G3KH", "int8", 0.267, 53.5, 0.355)
    """The same engine, in the build that Bosch calls max performance, int8."""
    Cortex_M4_HALE_Fast_fp32 = _row("HALE, max performance", "Cortex-M4", "fp32", 0.193, 25, 0.624)
    """The same engine, in the build that Bosch calls max performance, fp32."""
    Cortex_M7_HALE_Fast_fp32 = _row("HALE, max performance", "Cortex-M7", "fp32", 0.457, 25, 0.624)
    """The same engine, in the build that Bosch calls max performance, fp32."""
    RH850_HALE_Fast_fp32 = _row("HALE, max performance", "RH850G3KH", "fp32", 0.298, 25, 0.624)
    """The same engine, in the build that Bosch calls max performance, fp32."""
    Xtensa_LX7_ESP_NN = NetworkCalibration(
        name="Xtensa LX7, ESP-NN, int8",
        source=_FITTED,
        engine="ESP-NN",
        core="Xtensa LX7",
        precision="int8",
        efficiency=0.0275,
        output_flops=Q_(32.2, "flop"),
        weight_flops=Q_(1.63, "flop"),
        estimated=frozenset({"output_flops", "weight_flops"}),
    )
    """Espressif's kernels in TFLite Micro on one of the two cores. The only published run gives the
    share of the peak of both cores; the costs are the usual ones. One run gives no band."""
    GPU_TensorRT = NetworkCalibration(
        name="NVIDIA GPU, TensorRT, int8",
        source=_GPU_RUNS,
        engine="TensorRT",
        core="NVIDIA GPU",
        precision="int8",
        efficiency=0.430,
        layer_time=Q_(7.04, "us"),
        pass_band_low=0.725,
        pass_band_high=1.419,
    )
    """ResNet-50 on A100, A100 PCIe, A30, A10, L4, L40S, H100 PCIe, T4 and Jetson Orin, with 1 to
    2,048 images."""
    GPU_Unmeasured = NetworkCalibration(
        name="not validated: half of the peak, and TensorRT's time per layer",
        source=_GPU_RUNS,
        engine="any",
        core="GPU",
        precision="",
        efficiency=TEXTBOOK_EFFICIENCY.value,
        layer_time=GPU_TensorRT.layer_time,
        estimated=frozenset({"efficiency", "layer_time"}),
    )
    """For other networks, formats and devices, which have no run in the table."""


_ALL: tuple[NetworkCalibration, ...] = tuple(NetworkCalibrations)  # type: ignore[arg-type]
_MICROCONTROLLERS = frozenset(device.name for device in Tiny)  # type: ignore[attr-defined]


def network_calibration_for(
    accelerator: Accelerator, precision: str, engine: str | None = None, network: str = ""
) -> NetworkCalibration | None:
    """Return the constants of a device in a format, or None for an unmeasured microcontroller.

    Without an engine, it returns the first row in the catalog, which lists freely available engines
    first. The constants of GPUs have a band for ResNet-50, the only network with runs.
    """
    core = CORES.get(accelerator.name)
    if core is None and accelerator.name not in _MICROCONTROLLERS:
        measured = accelerator.name.startswith("NVIDIA") and network == Models.ResNet50.name
        if measured and precision == NetworkCalibrations.GPU_TensorRT.precision:
            return NetworkCalibrations.GPU_TensorRT
        return NetworkCalibrations.GPU_Unmeasured
    for row in _ALL:
        if row.core == core and row.precision == precision and engine in (None, row.engine):
            return row
    return None
