"""Options of frameworks: what each one can switch on."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from mlsysim.core.types import Software
from mlsysim.registry.catalogs import Frameworks

__all__ = ["Frameworks", "Options", "options_of"]


@dataclass(frozen=True)
class Options:
    """What a framework can switch on, among which a search chooses."""

    schedules: tuple[str, ...] = ("1f1b", "gpipe")
    exchange_overlap: float | None = None
    """Share of the exchanges with experts that overlaps with other microbatches; `None` if the
    framework's constants already include it, or it has no such overlap."""
    sends_by_node: bool = False
    """Whether tokens can be sent to each node once, if that is not the default."""
    dispatch_precision: str | None = None
    """Narrowest format of tokens on the way to experts; `None` if only the stream's."""
    recomputes: tuple[str, ...] = ()
    """Modules that can be recomputed without the whole layer."""


_MODULES = ("norms", "swiglu", "mla_up")


@functools.cache
def _options() -> Mapping[str, Options]:
    """Return the options of frameworks by release."""
    return {
        # docs.nvidia.com/megatron-core/developer-guide/0.16.0/user-guide/features/moe.html: the
        # flex dispatcher (0.12), recompute-modules (0.13), and
        # overlap-moe-expert-parallel-comm (0.14).
        Frameworks.Megatron_Core.release: Options(
            exchange_overlap=Frameworks.Megatron_Core_Graphs.exchange_overlap,
            sends_by_node=True,
            recomputes=_MODULES,
        ),
        Frameworks.Megatron_Core_Graphs.release: Options(recomputes=_MODULES),
        Frameworks.HAI_LLM.release: Options(
            schedules=("1f1b", "dualpipe"), dispatch_precision="fp8", recomputes=_MODULES
        ),
    }


def options_of(software: Software) -> Options:
    """Return what a framework can switch on; only common schedules if that is not known."""
    return _options().get(software.release, Options())
