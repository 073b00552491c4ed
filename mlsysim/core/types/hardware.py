"""Devices: compute, memory, links and power."""

from __future__ import annotations

from typing import Literal, get_args

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, number, quantity, record, require
from mlsysim.core.types.precision import PRECISIONS, find_precision
from mlsysim.core.types.source import Entry
from mlsysim.core.units import Quantity

Generation = Literal[
    "volta",
    "turing",
    "ampere",
    "hopper",
    "blackwell",
    "blackwell_rtx",
    "ada",
    "ga10x",
    "rubin",
    "cdna2",
    "cdna3",
    "cdna4",
    "cdna5",
    "xe_hpc",
    "gaudi2",
    "gaudi3",
    "trainium1",
    "trainium2",
    "trainium3",
    "tpu_v4",
    "tpu_v5e",
    "tpu_v5p",
    "tpu_v6e",
    "tpu_v7x",
    "tpu_8t",
    "tpu_8i",
    "ascend_950",
]
"""Generations of data center chips. All devices of a generation share the constants fitted to its
runs."""
GENERATIONS: tuple[Generation, ...] = get_args(Generation)


@record
class Compute(Record):
    """Peak arithmetic rates, dense (no structured sparsity), one field per number format.

    `None` means that the device has no native support for the format, or that no figure was found.
    Integer formats count one multiply-accumulate as two operations, as vendors do.

    Attributes
    ----------
    fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4, mxfp4, int4 : Quantity or None
        Dense peak rate in the number format of that name.
    """

    fp64: Quantity | None = quantity("TFLOP/s", default=None)
    fp32: Quantity | None = quantity("TFLOP/s", default=None)
    tf32: Quantity | None = quantity("TFLOP/s", default=None)
    fp16: Quantity | None = quantity("TFLOP/s", default=None)
    bf16: Quantity | None = quantity("TFLOP/s", default=None)
    fp8: Quantity | None = quantity("TFLOP/s", default=None)
    int8: Quantity | None = quantity("TFLOP/s", default=None)
    fp4: Quantity | None = quantity("TFLOP/s", default=None)
    mxfp4: Quantity | None = quantity("TFLOP/s", default=None)
    int4: Quantity | None = quantity("TFLOP/s", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.precisions:
            raise ConfigError(
                f"Compute has no rate: give one of {', '.join(PRECISIONS)}", argument="compute"
            )

    @property
    def precisions(self) -> tuple[str, ...]:
        """Names of the formats that the device computes in."""
        return tuple(name for name in PRECISIONS if getattr(self, name) is not None)

    @property
    def default_precision(self) -> str:
        """The format of `peak_flops`: fp16 or bf16 if the device has one."""
        order = ("fp16", "bf16", "fp32", "int8")
        return next(name for name in (*order, *self.precisions) if name in self.precisions)

    def wide_precision(self, precision: str) -> str:
        """The format of operations that stay wide when products are narrow (attention, logits)."""
        wanted = find_precision(precision)
        if wanted.bits >= 16:
            return wanted.name
        wide = (name for name in ("bf16", "fp16", "fp32", precision) if name in self.precisions)
        return next(wide)

    @property
    def peak_flops(self) -> Quantity:
        """Peak rate in the device's default precision."""
        return self.rate(self.default_precision)

    def rate(self, precision: str) -> Quantity:
        """Return the dense peak rate in `precision`.

        Raises
        ------
        ConfigError
            If the precision is unknown, or the device cannot compute in it.
        """
        name = find_precision(precision).name
        value: Quantity | None = getattr(self, name)
        if value is None:
            raise ConfigError(
                f"precision = {shown(name)} is not supported by this device; it has "
                f"{', '.join(self.precisions)}",
                argument="precision",
            )
        return value


@record
class Memory(Record):
    """The memory that holds weights and activations."""

    capacity: Quantity = quantity("GB")
    """Size as the vendor states it. Vendors print GB for sizes in GiB, so the rows hold GiB, or the
    printed GB and what the driver reports."""
    bandwidth: Quantity = quantity("GB/s")
    """Peak bandwidth of one device, reads and writes together."""
    reported: Quantity | None = quantity("GB", default=None)
    """Size that the driver reports to programs; `None` if unknown. An H100 with 80 GB reports
    81,559 MiB, which is 85.5 GB."""


@record
class Accelerator(Entry):
    """One device: a GPU, a TPU, a phone's neural engine, a microcontroller.

    Attributes
    ----------
    release_year : int
        Year of general availability.
    generation : str or None
        Generation of data center chips, one of `GENERATIONS`. The solvers choose fitted constants
        by it. `None` for any other device: a Jetson Orin has a GPU of the Ampere architecture, but
        it is a different chip, and an A100's constants do not describe it.
    compute : Compute
        Dense peak rates per number format.
    memory : Memory
        Capacity and bandwidth.
    tdp : Quantity or None
        Thermal design power, or the board's power limit.
    interconnect_bandwidth : Quantity or None
        Rate to peers over the device's own links (NVLink, ICI, Infinity Fabric), per direction,
        all links together.
    host_bandwidth : Quantity or None
        Rate to the host (PCIe), per direction.
    unit_price : Quantity or None
        Price of one device.
    """

    release_year: int = number(whole=True)
    generation: Generation | None = None
    compute: Compute
    memory: Memory
    tdp: Quantity | None = quantity("W", default=None)
    interconnect_bandwidth: Quantity | None = quantity("GB/s", default=None)
    host_bandwidth: Quantity | None = quantity("GB/s", default=None)
    unit_price: Quantity | None = quantity("USD", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, compute=Compute, memory=Memory)
        if self.generation is not None and self.generation not in GENERATIONS:
            raise UnknownEntryError.build(self.generation, "Accelerator.generation", GENERATIONS)

    def ridge_point(self, precision: str | None = None) -> Quantity:
        """Arithmetic intensity at which compute and memory take equally long.

        Williams, Waterman and Patterson (2009), "Roofline", section 3.
        """
        rate = self.compute.rate(self.compute.default_precision if precision is None else precision)
        balance: Quantity = (rate / self.memory.bandwidth).to("flop/byte")
        return balance
