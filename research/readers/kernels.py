"""Measured kernels as formulas: matrix products, collectives and copies within a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlsysim.core import formulas as f
from mlsysim.core.errors import shown
from mlsysim.core.numeric import Value, is_known, minimum
from mlsysim.core.types import Accelerator, LinkCalibration, NetworkFabric, ProductCalibration
from mlsysim.registry import Hardware, Systems
from mlsysim.registry.catalogs import LinkCalibrations, ProductCalibrations
from mlsysim.registry.conventions import CONVENTIONS
from mlsysim.validation.report import Comparison
from research.readers.aliases import accelerator_named
from research.rows import Row, Skip, count_of

_LARGE = 1e12
"""Bytes of a message if a measurement states none: large enough for the full bandwidth."""


@dataclass(frozen=True)
class Product:
    """A matrix product on a device."""

    chip: str
    precision: str
    rows: Value
    inner: Value
    columns: Value
    peak_rate: Value
    memory_bandwidth: Value
    bytes_per_element: Value

    def time(self, constants: Mapping[str, Value]) -> Value:
        """Return its time in seconds; `constants` are a `ProductCalibration`'s, in SI units."""
        compute = f.gemm_compute_time(
            self.rows,
            self.inner,
            self.columns,
            constants["efficiency"] * self.peak_rate,
            CONVENTIONS.si("flops_per_mac"),
        )
        memory = f.gemm_memory_time(
            self.rows,
            self.inner,
            self.columns,
            1,
            constants["memory_efficiency"] * self.memory_bandwidth,
            self.bytes_per_element,
            self.bytes_per_element,
        )
        return constants["overhead"] + f.roofline_time(compute, memory)


@dataclass(frozen=True)
class Collective:
    """A collective within a server."""

    link: str
    operation: str
    algorithm: str
    """``"ring"``, ``"switch"``, or empty for the faster of them."""
    ranks: Value
    message_size: Value
    bandwidth: Value
    """Bandwidth in the link's datasheet."""


# The chip and the server links with the constants for a device.
_CONSTANTS: Mapping[str, tuple[str, str]] = {
    Hardware.A100.name: ("A100", "NVLink3"),
    Hardware.A100_40GB.name: ("A100", "NVLink3"),
    Hardware.H100.name: ("H100", "NVLink4"),
    Hardware.H200.name: ("H200", "NVLink4"),
    Hardware.B200.name: ("B200", "NVLink5"),
    Hardware.B300.name: ("B200", "NVLink5"),
    Hardware.GB200.name: ("B200", "NVLink5"),
    Hardware.GB300.name: ("B200", "NVLink5"),
}
_FORMATS = {"bfloat16": "bf16", "bf16": "bf16", "fp8": "fp8"}


def _device(row: Row) -> tuple[Accelerator, str, str]:
    """Return the device of a row, and the keys of its chip's and its links' constants."""
    device = accelerator_named(row.text("hardware"))
    if device.name not in _CONSTANTS:
        raise Skip(f"no constants for {shown(row.text('hardware'))}")
    return (device, *_CONSTANTS[device.name])


def product_of(row: Row) -> Product:
    """Return the product that a row measures.

    Raises
    ------
    Skip
        If its device, format or shape is not known.
    """
    accelerator, chip, _ = _device(row)
    precision = _FORMATS.get(row.text("dtype"))
    if precision is None:
        raise Skip(f"number format {shown(row.text('dtype'))}")
    shape = re.search(r"([0-9]+)x([0-9]+)x([0-9]+)", row.text("op"))
    m, n, k = map(count_of, shape.groups()) if shape else (row.whole(name) for name in "mnk")
    return Product(
        chip=chip,
        precision=precision,
        rows=m,
        inner=k,
        columns=n,
        peak_rate=accelerator.compute.si(precision),
        memory_bandwidth=accelerator.memory.si("bandwidth"),
        bytes_per_element=1 if precision == "fp8" else 2,
    )


_OPERATIONS = {"alltoall": "all_to_all"}


def collective_of(row: Row) -> Collective:
    """Return the collective that a row measures.

    Raises
    ------
    Skip
        If its link or size is not known.
    """
    _, _, link = _device(row)
    fabric: NetworkFabric = Systems.Links[link]
    size, elements = row.number("message_bytes"), row.number("m")
    if size is None:
        # NVIDIA's tables count elements of two bytes.
        size = _LARGE if elements is None else 2 * elements
    if size <= 0:
        raise Skip(f"a message of {size:g} bytes is invalid")
    name = row.text("algo").lower()
    return Collective(
        link=link,
        operation=_OPERATIONS.get(row.text("op"), row.text("op")),
        algorithm="ring" if "ring" in name else "switch" if name == "nvls" else "",
        ranks=row.whole("n_gpus"),
        message_size=size,
        bandwidth=fabric.si("bandwidth"),
    )


def collective_time(message: Collective, constants: Mapping[str, Value]) -> Value:
    """Return the time of a collective in seconds; `constants` are a `LinkCalibration`'s."""
    size, ranks = message.message_size, message.ranks
    reached = constants["link_efficiency"] * message.bandwidth
    start, segment = constants["start"], constants["segment_time"]
    if message.operation == "all_to_all":
        # Every pair has its own path through the switch, so no step waits for another.
        transfer = f.all_to_all_time(size, ranks, reached, 0)
        return f.segmented_collective_time(transfer, transfer, start, segment)
    if message.operation == "point_to_point":
        transfer = f.point_to_point_time(size, reached, 0)
        return f.segmented_collective_time(transfer, transfer, start, segment)
    if message.operation not in _RINGS:
        raise Skip(f"no formula for {shown(message.operation)}")
    ring = _RINGS[message.operation]
    time = f.segmented_collective_time(
        ring(size, ranks, reached, constants["hop_latency"]),
        ring(size, ranks, reached, 0),
        start,
        segment,
    )
    known = is_known(constants["switch_efficiency"])
    if message.operation != "all_reduce" or message.algorithm == "ring" or not known:
        return time
    transfer = f.switch_all_reduce_time(
        size, ranks, constants["switch_efficiency"] * message.bandwidth
    )
    switched = f.segmented_collective_time(transfer, transfer, constants["switch_start"], segment)
    return switched if message.algorithm == "switch" else minimum(time, switched)


_RINGS = {
    "all_reduce": f.ring_all_reduce_time,
    "all_gather": f.all_gather_time,
    "reduce_scatter": f.reduce_scatter_time,
}


def constants_of(entry: ProductCalibration | LinkCalibration) -> dict[str, float]:
    """Return the constants of a calibration in SI units; NaN for missing ones."""
    names = ["efficiency", "memory_efficiency", "overhead"]
    if isinstance(entry, LinkCalibration):
        names = ["link_efficiency", "start", "hop_latency", "segment_time"]
        names += ["switch_efficiency", "switch_start"]
    return {name: entry.si(name) for name in names}


def _predict(row: Row) -> float:
    """Return the predicted value in the row's unit."""
    quantity = row.text("quantity")
    if row.text("op").startswith(("gemm", "matmul")):
        product = product_of(row)
        name = f"{product.chip}_{product.precision}"
        if name not in ProductCalibrations.names():
            raise Skip(f"no constants for {product.chip} in {product.precision}")
        time = float(product.time(constants_of(ProductCalibrations[name])))
        if "TFLOP/s" in quantity:
            flops = 2.0 * product.rows * product.inner * product.columns
            return float(flops) / time / 1e12
        return time * 1e3
    message = collective_of(row)
    if message.operation.startswith("pairwise copy"):
        message = replace(message, operation="point_to_point")
    time = float(collective_time(message, constants_of(LinkCalibrations[message.link])))
    if quantity == "latency":
        return time * 1e3
    if message.operation == "point_to_point":
        return float(message.message_size) / time / 1e9
    bus = float(f.bus_bandwidth(message.message_size, message.ranks, time)) / 1e9
    return bus if message.operation == "all_reduce" else bus / 2


def compare(row: Row) -> Comparison:
    """Predict a measured kernel.

    Raises
    ------
    Skip
        If there are no constants for its device, or no formula for it.
    """
    value = row.measured()
    return row.compared(f"{row.text('quantity')} ({row.text('unit')})", value, _predict(row))
