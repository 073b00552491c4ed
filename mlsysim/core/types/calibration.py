"""Constants for the share of a datasheet's rates that a training step reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Literal, Self, TypeAlias, get_args

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, constant, derived, number, record, require
from mlsysim.core.numeric import Value, zero_like
from mlsysim.core.types.fitted import STATE_EFFICIENCY, Band, Banded, Rates
from mlsysim.core.types.precision import PRECISIONS
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.units import Quantity

Basis: TypeAlias = Literal["family", "unseen"]
"""Which band applies: that of runs like the measured ones, or that of an unmeasured system."""
UNSEEN_BAND = Band(low=0.802, high=1.349)
"""Band of a step's time on systems without a measured run: ``python -m research.fits.training``
predicts each family without its own runs. It is defined here because a calibration that you combine
by hand has this band too."""
_ROUNDING = 1e-9
_DERIVED: Any = None
"""A field that is computed from others if it is not given."""


@record
class Machine(Rates):
    """The share of its datasheet that the hardware reaches, independent of software."""

    gemm_efficiency: float = constant(
        usual=0.75, expected=0.75, spread=0.1, low=0.4, high=0.92, most=1
    )
    """Share of the peak rate that large matrix products reach in 16 bits."""
    gemm_efficiency_fp8: float = constant(
        usual=0.65, expected=0.68, spread=0.12, low=0.3, high=0.92, most=1
    )
    """The same in 8 bits."""
    gemm_efficiency_fp4: float = constant(
        usual=0.55, expected=0.57, spread=0.15, low=0.2, high=0.92, most=1
    )
    """The same in 4 bits."""
    state_efficiency: float = constant(usual=STATE_EFFICIENCY, most=1)
    """Share of the 16-bit peak rate that scans of states reach over a whole sequence."""
    memory_efficiency: float = constant(usual=0.8, most=1)
    """Share of the memory bandwidth that streams reach."""
    attention_efficiency: float = constant(usual=0.5, spread=0.3, low=0.1, high=0.85, most=1)
    """Share of the 16-bit peak rate that fused attention reaches on long sequences, forward."""
    attention_half: float = constant(
        "token", usual=500.0, spread=0.5, low=50.0, high=5000.0, plain=True, zero=True
    )
    """Sequence length, in tokens, at which fused attention reaches half of that."""
    attention_backward: float = constant(usual=0.75)
    """Arithmetic rate of its backward pass, relative to the forward pass."""
    link_efficiency: float = constant(usual=0.77, spread=0.08, low=0.4, high=0.97, most=1)
    """Share of the bandwidth that collectives reach within a node."""
    nic_efficiency: float = constant(usual=0.85, spread=0.12, low=0.3, high=0.97, most=1)
    """Share of the bandwidth that collectives reach between nodes."""


@record
class Software(Entry):
    """Behavior of a framework's release on any machine: fusion, launches, overlap.

    Attributes
    ----------
    release : str
        The framework and its date.
    """

    release: str
    gemm_speed: float = constant(
        usual=1.0, expected=0.97, spread=0.1, low=0.4, high=1.0, default=1.0
    )
    """Rate of its matrix products, relative to the machine's."""
    attention_speed: float = constant(
        usual=1.0, expected=0.9, spread=0.3, low=0.2, high=1.0, default=1.0
    )
    """Rate of its attention kernels, relative to the machine's."""
    gemm_overhead: Quantity = constant("us", usual=0.0, zero=True)
    """Fixed time of a matrix product."""
    hidden_bytes: Quantity = constant("byte", usual=20.0, spread=0.7, low=6.0, high=150.0)
    """Memory traffic of element-wise operators in 16 bits, forward, per element of the residual
    stream."""
    ffn_bytes: Quantity = constant("byte", usual=4.0)
    """The same per element of the feed-forward block's inner width."""
    score_bytes: Quantity = constant("byte", usual=12.2, spread=0.2, low=6.0, high=30.0, zero=True)
    """Memory traffic per attention score that is not fused, forward."""
    cast_bytes: Quantity = constant(
        "byte", usual=2.0, expected=3.0, spread=0.7, low=0.3, high=12.0, zero=True
    )
    """Memory traffic of conversion to a narrow format, per element of a product's input."""
    elementwise_backward: float = constant(usual=1.5)
    """Backward relative to forward, in element-wise operators and in kernels launched."""
    loss_bytes: Quantity = constant("byte", usual=30.0, spread=0.6, low=8.0, high=120.0)
    """Memory traffic per logit, forward and backward."""
    optimizer_bytes: Quantity = constant("byte", usual=30.0)
    """Memory traffic of the update, per parameter."""
    gather_overlap: float = constant(usual=0.5, spread=0.5, low=0.02, high=1.0, zero=True, most=1)
    """Share of the shorter of computation and weight gathers that is hidden."""
    gradient_overlap: float = constant(usual=0.8, spread=0.2, low=0.02, high=1.0, zero=True, most=1)
    """Share of the gradient reduction that is hidden if the optimizer is sharded."""
    plain_overlap: float = constant(usual=0.8, default=0.0, zero=True, most=1)
    """Share of the gradient reduction that is hidden if nothing is sharded."""
    gradient_scatters: float = constant(usual=2.0)
    """Volume of the gradients' reduce-scatter, relative to one weight gather."""
    collective_overhead: Quantity = constant(
        "us", usual=20.0, expected=50.0, spread=1.2, low=1.0, high=1000.0, zero=True
    )
    """Fixed time of an all-reduce for which all devices of a tensor-parallel group wait."""
    layer_launch: Quantity = constant("ms", usual=0.5, spread=0.6, low=0.02, high=3.0, zero=True)
    """Time for the host to launch the forward pass of a layer."""
    expert_launch: Quantity = constant("ms", usual=2.5, spread=0.5, low=0.05, high=8.0, zero=True)
    """Time for the host to launch the routing and the experts of a layer, forward."""
    expert_efficiency: float = constant(usual=0.8, spread=0.2, low=0.2, high=1.0, most=1)
    """Share of a product's rate that the grouped products of experts reach."""
    routing_bytes: Quantity = constant("byte", usual=8.7, spread=0.4, low=2.0, high=80.0, zero=True)
    """Memory traffic per element that is routed to experts, forward."""
    bias_bytes: Quantity = constant("byte", usual=158.0, spread=0.7, low=5.0, high=400.0, zero=True)
    """Memory traffic per element that is routed, to add experts' biases, forward."""
    launch_exposed: float = constant(usual=0.1, spread=0.4, low=0.005, high=0.6, zero=True, most=1)
    """Share of the shorter of launch and device time that is not hidden."""
    exchange_overlap: float = constant(
        usual=0.0, expected=0.8, spread=0.2, low=0.02, high=0.99, zero=True, most=1
    )
    """Share of the exchanges with experts that overlaps with computation."""
    tensor_overlap: float = constant(usual=0.5, spread=0.4, low=0.02, high=0.99, zero=True, most=1)
    """Share of a tensor-parallel group's collectives that overlaps with computation."""
    copies_per_node: float = constant(usual=0.0, default=0.0, zero=True, most=1)
    """1 if an exchange sends a token once per node, 0 if once per expert."""
    step_overhead: Quantity = constant(
        "ms", usual=1.0, expected=2.0, spread=1.5, low=0.05, high=100.0, zero=True
    )
    """Fixed time per step."""

    def cast(self, precision: str) -> Value:
        """Memory traffic of conversion to a number format, per element."""
        return self.cast_bytes if PRECISIONS[precision].bits < 16 else zero_like(self.cast_bytes)


@record
class Covered(Record):
    """Which plans the runs of one cluster covered; its narrow band applies only to these.

    Attributes
    ----------
    seq_len_least, seq_len_most : int
        Range of the runs' tokens per sequence.
    devices_least, devices_most : int
        Range of their numbers of devices.
    tp_size_least, tp_size_most : int
        Range of their tensor-parallel sizes.
    pp_size_least, pp_size_most : int
        Range of their pipeline stages.
    cp_size_least, cp_size_most : int
        Range of their context-parallel sizes.
    ep_size_least, ep_size_most : int
        Range of their expert-parallel sizes.
    virtual_stages_least, virtual_stages_most : int
        Range of their chunks per stage.
    precision, attention, schedule, optimizer, cp_kind : tuple of str
        Values that occurred in the runs. The two 16-bit formats count as one.
    networks : tuple of str
        ``"dense"``, ``"experts"``, or both.
    """

    seq_len_least: int = number(whole=True, unit="token")
    seq_len_most: int = number(whole=True, unit="token")
    devices_least: int = number(whole=True)
    devices_most: int = number(whole=True)
    tp_size_least: int = number(whole=True)
    tp_size_most: int = number(whole=True)
    pp_size_least: int = number(whole=True)
    pp_size_most: int = number(whole=True)
    cp_size_least: int = number(whole=True)
    cp_size_most: int = number(whole=True)
    ep_size_least: int = number(whole=True)
    ep_size_most: int = number(whole=True)
    virtual_stages_least: int = number(whole=True)
    virtual_stages_most: int = number(whole=True)
    precision: tuple[str, ...]
    networks: tuple[str, ...]
    attention: tuple[str, ...]
    schedule: tuple[str, ...]
    optimizer: tuple[str, ...]
    cp_kind: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, **dict.fromkeys(self.choices(), tuple))
        for name, least, most in self.ranges():
            if least > most:
                raise ConfigError(
                    f"Covered.{name}_least = {least} is above {name}_most = {most}: give the "
                    "smaller number first",
                    argument=f"{name}_least",
                )

    @classmethod
    def sizes(cls) -> tuple[str, ...]:
        """Return the names of the sizes that have a range."""
        every = (item.name for item in fields(cls))
        return tuple(name.removesuffix("_least") for name in every if name.endswith("_least"))

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """Return the names of the options that are chosen by name."""
        return tuple(item.name for item in fields(cls) if "unit" not in item.metadata)

    def ranges(self) -> Iterator[tuple[str, Value, Value]]:
        """Yield each size with its smallest and largest value in the runs."""
        for name in self.sizes():
            yield name, getattr(self, f"{name}_least"), getattr(self, f"{name}_most")


@record
class Calibration(Banded):
    """A machine and its software, with the errors of their predictions.

    If you combine them by hand, as in ``Calibration(machine=machine, software=software)``, the
    calibration takes its name and its source from the two, and has the band of unmeasured systems.

    Attributes
    ----------
    machine : Machine
        Constants of the device and its links.
    software : Software
        Constants of the framework's release.
    basis : {"family", "unseen"}
        Which of the two bands applies.
    band : Band
        Band of a step's time, for runs of the families to which the constants were fitted.
    unseen_band : Band
        The same for unmeasured systems: each family is predicted by constants that were fitted
        without it.
    device : str
        The one device of the runs; empty if `machine` describes all devices of a kind.
    covered : Covered or None
        Which plans the runs on that device covered. Other plans have the band of unseen systems, as
        do all plans if `device` is given without this.
    """

    name: str = ""
    source: Source = _DERIVED
    machine: Machine
    software: Software
    basis: Basis = "family"
    band: Band = Band()
    unseen_band: Band = UNSEEN_BAND
    device: str = ""
    covered: Covered | None = None

    def __post_init__(self) -> None:
        require(self, machine=Machine, software=Software)
        if not self.name:
            self._keep("name", f"{self.machine.name}, {self.software.name}")
        stated: Any = self.source
        if stated is None:
            self._keep("source", _source_of(self.machine, self.software))
        super().__post_init__()
        if self.covered is not None:
            require(self, covered=Covered)
        self._check_rates()
        if self.basis not in get_args(Basis):
            raise ConfigError(
                f"Calibration.basis = {shown(self.basis)}: choose one of "
                f"{', '.join(get_args(Basis))}",
                argument="basis",
            )

    def _check_rates(self) -> None:
        """Reject software that makes the machine faster than its datasheet."""
        machine, software = self.machine, self.software
        fused = machine.attention_efficiency
        for speed, share, reached in (
            *(
                ("gemm_speed", name, getattr(machine, name))
                for name in ("gemm_efficiency", "gemm_efficiency_fp8", "gemm_efficiency_fp4")
            ),
            ("attention_speed", "attention_efficiency", fused),
            (
                "attention_speed",
                "attention_efficiency x attention_backward",
                fused * machine.attention_backward,
            ),
        ):
            factor = getattr(software, speed)
            if factor * reached > 1 + _ROUNDING:
                raise ConfigError(
                    f"Calibration: {speed} = {factor:g} times {share} = {reached:g} is "
                    f"{factor * reached:.3g} of the peak rate, which cannot exceed 1: give a "
                    f"{speed} of at most {1 / reached:.4g}, or a lower {share}",
                    argument=speed,
                )

    def but(self, **constants: Any) -> Self:
        """Return the same calibration with other constants of its machine or its software.

        No run was measured with such a combination, so it has no family band.

        Parameters
        ----------
        constants
            Fields of `Machine` or `Software`, with their values.

        Raises
        ------
        ConfigError
            If a name is a field of neither, or a value is beyond its physical limit.

        Examples
        --------
        >>> from mlsysim import Calibrations
        >>> Calibrations.H100_Megatron.but(tensor_overlap=0).software.tensor_overlap
        0
        """
        parts: dict[str, dict[str, Any]] = {"machine": {}, "software": {}}
        for name, value in constants.items():
            owner = next((part for part in parts if hasattr(getattr(self, part), name)), None)
            if owner is None:
                known = [f.name for part in (Machine, Software) for f in fields(part) if f.metadata]
                raise UnknownEntryError.build(name, "constant of a calibration", known)
            parts[owner][name] = value
        made: dict[str, Any] = {
            part: replace(getattr(self, part), **changes)
            for part, changes in parts.items()
            if changes
        }
        return replace(self, **made, basis="unseen", band=Band())

    @derived
    def familiar(self) -> float:
        """1 if the band of measured families applies, 0 if that of unseen systems does."""
        return float(self.basis == "family" and self.band.known)


def _source_of(machine: Machine, software: Software) -> Source:
    """Return the source of constants that were combined from these two."""
    titles = dict.fromkeys(part.source.title for part in (machine, software))
    return Source(
        title="; ".join(titles),
        locator=f"machine {machine.name}, software {software.name}",
        note=f"combined by hand; machine: {machine.source}; software: {software.source}",
    )
