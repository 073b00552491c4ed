"""Traffic: a rate of arrivals, and means and spreads of lengths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.calls import expects
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, number, quantity, record
from mlsysim.core.units import Q_, Quantity
from mlsysim.registry.operations import CHAT_LENGTHS
from mlsysim.solvers.arguments import Whole
from mlsysim.traffic.trace import Trace, read_trace

_MOST_REQUESTS = 10_000_000


@record
class Traffic(Record):
    """Requests to a service: how many arrive, how regularly, and how long they are.

    Examples
    --------
    >>> from mlsysim import Q_, Traffic
    >>> chat = Traffic(arrival_rate=Q_(5.5, "1/s"), seq_len=1155, output_len=211)
    >>> chat.arguments()["output_len"]
    211.0
    """

    arrival_rate: Quantity = quantity("1/s")
    """Requests per second."""
    seq_len: float = number(least=1, unit="token")
    """Mean tokens of a prompt."""
    output_len: float = number(least=1, unit="token")
    """Mean tokens of an answer."""
    burstiness: float = number(default=1.0, zero=True)
    """Squared coefficient of variation of the times between arrivals: 0 if they are evenly spaced,
    1 for Poisson arrivals, more for bursts."""
    input_variation: float = number(default=CHAT_LENGTHS.input_variation, zero=True)
    """Standard deviation of the lengths of prompts, divided by their mean; 0 if all are equal. With
    a `cached_share`, that of the tokens that are not cached. The default is that of conversations
    in a public trace of Azure."""
    output_variation: float = number(default=CHAT_LENGTHS.output_variation, zero=True)
    """Standard deviation of the lengths of answers, divided by their mean. The default comes from
    the same trace."""
    cached_share: float | None = number(default=None, zero=True, most=1)
    """Share of the tokens of prompts that are in the prefix cache; `None` leaves it to the
    arguments of the engine."""
    turns: int = number(default=1, whole=True, least=1)
    """Requests per session; prompts repeat everything before them, and `seq_len` is their mean."""
    turn_tokens: float | None = number(default=None, unit="token")
    """Mean new tokens per prompt after the first; needed with `turns`."""
    think_time: Quantity | None = quantity("s", default=None)
    """Mean time from an answer to the session's next request; needed with `turns`."""
    name: str = "traffic"
    """A name for the service."""

    @classmethod
    def from_trace(
        cls, path: str | Path, only: Mapping[str, str] | None = None, **reading: Any
    ) -> Traffic:
        """Summarize a trace in a file: `arrival_s`, `input_tokens`, `output_tokens`.

        If the trace also has `cached_tokens` or `hash_ids`, the traffic has a `cached_share`.

        Parameters
        ----------
        path
            The file.
        only
            Values of other columns, by column name: only rows with these values count.
        **reading
            Other arguments of `read_trace`, such as `time_unit`.

        Raises
        ------
        ConfigError
            If the file cannot be read, or a row is wrong; the message names the line.
        """
        return cls.of(read_trace(path, only, **reading), name=Path(path).stem)

    @classmethod
    @expects(trace=Trace, name=str)
    def of(cls, trace: Trace, name: str = "trace") -> Traffic:
        """Summarize a trace.

        Raises
        ------
        ConfigError
            If all requests arrive at the same time, so that there is no rate.
        """
        gaps = np.diff(trace.arrivals)
        span = float(gaps.sum())
        if span <= 0:
            raise ConfigError(
                f"the trace {shown(name)} has no duration: all {len(trace)} requests arrive at "
                "once; give at least two that arrive at different times",
                argument="trace",
            )
        return cls(
            name=name,
            arrival_rate=Q_(len(gaps) / span, "1/s"),
            burstiness=_variation(gaps) ** 2,
            seq_len=float(trace.prompts.mean()),
            input_variation=_variation(trace.new_tokens),
            output_len=float(trace.answers.mean()),
            output_variation=_variation(trace.answers),
            cached_share=None
            if trace.cached is None
            else float(trace.cached.sum() / trace.prompts.sum()),
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `OpenLoopSolver` that describe traffic."""
        names = ("seq_len", "output_len", "burstiness", "input_variation", "output_variation")
        found = {"arrival_rate": self.arrival_rate} | {n: float(getattr(self, n)) for n in names}
        if self.cached_share is not None:
            found["cached_share"] = float(self.cached_share)
        if self.turns == 1:
            return found
        sessions = ("turns", "turn_tokens", "think_time")
        return found | {name: getattr(self, name) for name in sessions}

    def sample(self, requests: int, seed: int = 0) -> Trace:
        """Draw requests for the simulator.

        Times between arrivals have a Gamma distribution, lengths a lognormal one. The same share of
        every prompt is cached.

        Parameters
        ----------
        requests
            Number of requests.
        seed
            Seed of the random numbers.

        Raises
        ------
        ConfigError
            If the number of requests is out of range.
        """
        requests = Whole(maximum=_MOST_REQUESTS).admit("requests", requests)
        random = np.random.default_rng(Whole(minimum=0).admit("seed", seed))
        mean, burst = 1 / self.si("arrival_rate"), self.burstiness
        gaps = (
            np.full(requests, mean)
            if burst == 0
            else random.gamma(1 / burst, burst * mean, requests)
        )
        prompts = _lengths(random, self.seq_len, self.input_variation, requests)
        return Trace(
            np.cumsum(gaps),
            prompts,
            _lengths(random, self.output_len, self.output_variation, requests),
            None if self.cached_share is None else self.cached_share * prompts,
        )


def _variation(values: NDArray[Any]) -> float:
    return float(values.std() / values.mean())


def _lengths(
    random: np.random.Generator, mean: float, variation: float, count: int
) -> NDArray[Any]:
    """Return integer lengths; a draw below one token becomes one token."""
    if variation == 0:
        return np.full(count, round(mean))
    spread = np.log1p(variation * variation)
    drawn = random.lognormal(np.log(mean) - spread / 2, np.sqrt(spread), count)
    return np.maximum(np.round(drawn), 1)
