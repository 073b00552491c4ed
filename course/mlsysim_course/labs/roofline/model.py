"""The model behind both acts: tokens from a language model, one pass of the batch at a time.

Every pass reads all weights and computes one token per sequence. The KV cache is left out.
Arithmetic reaches half of its peak, the textbook's value, and memory reaches its full bandwidth.
Prices are those of one cloud on one day, so that devices can be compared.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

from mlsysim.core import formulas as f
from mlsysim.core.types import RentalOffer, TransformerModel
from mlsysim.registry import Models, Systems
from mlsysim.registry.conventions import TEXTBOOK_EFFICIENCY
from mlsysim.solvers import SingleNodeResult, SingleNodeSolver

__all__ = [
    "BATCHES",
    "BUDGET",
    "DEVICES",
    "LONGEST_MS",
    "MAIL",
    "MODELS",
    "PRECISIONS",
    "RATE",
    "Setup",
    "accepted",
    "cheapest",
    "crossing",
    "devices",
    "dollars_per_hour",
    "dollars_per_million",
    "milliseconds",
    "roof",
    "solve",
    "tokens",
]

DEVICES: dict[str, RentalOffer] = {
    "t4": Systems.Offers.Modal_T4,
    "l4": Systems.Offers.Modal_L4,
    "l40s": Systems.Offers.Modal_L40S,
    "a100": Systems.Offers.Modal_A100,
    "h100": Systems.Offers.Modal_H100,
}
MODELS: dict[str, TransformerModel] = {
    "1b": Models.Llama3_2_1B,
    "3b": Models.Llama3_2_3B,
    "8b": Models.Llama3_8B,
}
PRECISIONS = {"fp16": "16 bits (FP16)", "int8": "8 bits (INT8)"}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
RATE = 200_000
"""Tokens per second that the email of Act II requires."""
LONGEST_MS = 20
"""Milliseconds between two tokens of a user that the email allows."""
BUDGET = 16.0
"""Dollars per hour that the email allows."""
_MOST = 2**20


@dataclass(frozen=True)
class Setup:
    """A device and what runs on it: keys of the tables above, and sequences per batch."""

    device: str = "h100"
    model: str = "8b"
    precision: str = "fp16"
    batch: int = 8

    @property
    def offer(self) -> RentalOffer:
        """The rented device."""
        return DEVICES[self.device]


MAIL = Setup()


@functools.lru_cache(maxsize=2048)
def solve(setup: Setup) -> SingleNodeResult:
    """Time one pass, which gives each sequence its next token."""
    return SingleNodeSolver.solve(
        model=MODELS[setup.model],
        hardware=setup.offer.accelerator,
        batch_size=setup.batch,
        precision=setup.precision,
        efficiency=float(TEXTBOOK_EFFICIENCY.value),
        seq_len=1,
    )


def crossing(setup: Setup) -> int:
    """Return the smallest batch that is compute-bound."""
    return _crossing(replace(setup, batch=1))


@functools.lru_cache(maxsize=64)
def _crossing(setup: Setup) -> int:
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        bound = solve(replace(setup, batch=middle)).bottleneck == "compute"
        low, high = (low, middle) if bound else (middle, high)
    return high


def roof(setup: Setup, intensity: float) -> float:
    """Return the rate in TFLOP/s that a device reaches at an intensity in FLOP/byte."""
    device = setup.offer.accelerator
    peak = TEXTBOOK_EFFICIENCY.value * device.compute.rate(setup.precision).m_as("FLOP/s")
    reached = f.attainable_rate(intensity, peak, device.memory.bandwidth.m_as("byte/s"))
    return float(reached) / 1e12


def tokens(setup: Setup) -> float:
    """Return the tokens per second of one device."""
    return float(solve(setup).throughput.m_as("sample/s"))


def milliseconds(setup: Setup) -> float:
    """Return the time between two tokens of a user."""
    return float(solve(setup).latency.m_as("ms"))


def devices(setup: Setup) -> int:
    """Return the number of devices that deliver the email's rate."""
    return math.ceil(RATE / tokens(setup))


def price(setup: Setup) -> float:
    """Return the rent of one device in dollars per hour."""
    return float(setup.offer.price.m_as("USD/h"))


def dollars_per_hour(setup: Setup) -> float:
    """Return the rent in dollars per hour of the devices that deliver the email's rate."""
    return devices(setup) * price(setup)


def dollars_per_million(setup: Setup) -> float:
    """Return dollars per million tokens on a device that is always busy."""
    return price(setup) / (3600 * tokens(setup)) * 1e6


def fast_enough(setup: Setup) -> bool:
    """Return whether the model fits and no user waits too long for a token."""
    return solve(setup).feasible and milliseconds(setup) <= LONGEST_MS


def accepted(setup: Setup) -> bool:
    """Return whether a setup meets the requirements of the email."""
    return fast_enough(setup) and dollars_per_hour(setup) <= BUDGET


@functools.lru_cache(maxsize=8)
def cheapest(device: str) -> Setup | None:
    """Return the cheapest setup of a device for the rate; none if all are too slow."""
    setups = [Setup(device, "8b", one, batch) for one in PRECISIONS for batch in BATCHES]
    return min(filter(fast_enough, setups), key=dollars_per_hour, default=None)
