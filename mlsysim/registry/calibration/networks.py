"""Calibrations of networks of fixed shape on microcontrollers: one row per core, engine and format.

``python -m tools.calibrate_tiny`` fits the constants to the rows marked ``calibrate`` in
``measurements/tiny.csv`` and prints them.
"""

from collections.abc import Mapping

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, NetworkCalibration, Source
from mlsysim.core.units import Q_
from mlsysim.registry.hardware import Hardware

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
}
"""The core of each device that has constants."""

_FITTED = Source(
    title="Fitted by tools/calibrate_tiny.py",
    locator="32 calibrate rows of MLPerf Tiny v1.2",
    checked="2026-11-22",
    note="measurements/tiny.csv; check rows are held out. Constants that the rows of a core do not "
    "identify stay near those of the other cores and engines.",
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


class NetworkCalibrations(Catalog):
    """Constants per core, engine and number format."""

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


_ALL: tuple[NetworkCalibration, ...] = tuple(NetworkCalibrations)  # type: ignore[arg-type]


def network_calibration_for(
    accelerator: Accelerator, precision: str, engine: str | None = None
) -> NetworkCalibration | None:
    """Return the constants of a device's core in a format, or None if no run is known.

    Without an engine, it returns the first row in the catalog, which lists freely available engines
    first.
    """
    core = CORES.get(accelerator.name)
    for row in _ALL:
        if row.core == core and row.precision == precision and engine in (None, row.engine):
            return row
    return None
