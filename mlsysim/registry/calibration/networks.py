"""Which constants describe networks of fixed shape on a device."""

import functools
from collections.abc import Mapping

from mlsysim.core.types import Accelerator, NetworkCalibration
from mlsysim.registry.catalogs import NetworkCalibrations
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
    for row in _rows():
        if row.core == core and row.precision == precision and engine in (None, row.engine):
            return row
    return None


@functools.cache
def _rows() -> tuple[NetworkCalibration, ...]:
    return tuple(row for row in NetworkCalibrations if isinstance(row, NetworkCalibration))
