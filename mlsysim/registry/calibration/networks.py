"""Which constants describe networks of fixed shape on a device."""

import functools
from collections.abc import Mapping

from mlsysim.core.types import Accelerator, NetworkCalibration
from mlsysim.registry.catalogs import NetworkCalibrations
from mlsysim.registry.hardware import Tiny

__all__ = ["CORES", "NetworkCalibrations", "network_calibration_for"]

CORES: Mapping[str, str] = {
    "STMicroelectronics STM32L4R5": "Cortex-M4",
    "Infineon PSoC 62 (CY8C624A)": "Cortex-M4",
    "STMicroelectronics STM32U575": "Cortex-M33",
    "STMicroelectronics STM32H7A3": "Cortex-M7",
    "STMicroelectronics STM32F746": "Cortex-M7",
    "STMicroelectronics STM32G0B1": "Cortex-M0+",
    "Renesas RA8D1": "Cortex-M85",
    "Renesas RH850/F1KM-S4": "RH850G3KH",
    "Syntiant NDP120 at 30.7 MHz": "Syntiant Core 2",
    "Syntiant NDP120 at 98.7 MHz": "Syntiant Core 2",
    "Espressif ESP32-S3": "Xtensa LX7",
}
"""The core of each device that has constants."""


def network_calibration_for(
    accelerator: Accelerator, precision: str, engine: str | None = None, network: str = ""
) -> NetworkCalibration | None:
    """Return the constants of a device in a format, or None for an unmeasured microcontroller.

    Without an engine, it returns the first row in the catalog, which lists freely available engines
    first. The constants of GPUs have a band for ResNet-50, the only network with runs.
    """
    core = CORES.get(accelerator.name)
    if core is None and accelerator.name not in _microcontrollers():
        measured = accelerator.name.startswith("NVIDIA") and network == "ResNet-50"
        if measured and precision == NetworkCalibrations.GPU_TensorRT.precision:
            return NetworkCalibrations.GPU_TensorRT
        return NetworkCalibrations.GPU_Unmeasured
    for row in _rows():
        if row.core == core and row.precision == precision and engine in (None, row.engine):
            return row
    return None


@functools.cache
def _rows() -> tuple[NetworkCalibration, ...]:
    return tuple(row for row in NetworkCalibrations if isinstance(row, NetworkCalibration))


@functools.cache
def _microcontrollers() -> frozenset[str]:
    return frozenset(device.name for device in Tiny)  # type: ignore[attr-defined]
