"""How long other tools take to predict one training step, compared with this package.

`folder` contains the tools that are not installed with this project: a checkout of Calculon in
`calculon` (https://github.com/calculon-ai/calculon), and llm-analysis, installed by
``pip install --target FOLDER llm-analysis``. Missing tools are left out.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def peers(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return, for each peer found, a function that evaluates one training configuration."""
    found: dict[str, Callable[[], Any]] = {}
    for name, make in (("calculon", _calculon), ("llm-analysis", _llm_analysis)):
        try:
            found[name] = make(folder)
        except ImportError as fault:
            sys.stderr.write(f"{name}: {fault}\n")
    return found


def _calculon(folder: Path) -> Callable[[], Any]:
    root = folder / "calculon"
    with _first(root):
        llm = importlib.import_module("calculon.llm")
        system = importlib.import_module("calculon.system")

    def read(path: str) -> Any:
        return json.loads((root / path).read_text(encoding="utf-8"))

    application = llm.Llm.Application(read("models/gpt3-175B.json"))
    plan = llm.Llm.Execution.from_json(read("examples/3072_t4_p64_d12_mbs4_full.json"))
    machine = system.System(read("systems/a100_80e.json"))
    logger = logging.getLogger("calculon")
    logger.addHandler(logging.NullHandler())

    def run() -> None:
        model = llm.Llm(application, logger)
        model.compile(machine, plan)
        model.run(machine)

    return run


def _llm_analysis(folder: Path) -> Callable[[], Any]:
    with _first(folder):
        analysis = importlib.import_module("llm_analysis.analysis")
    logging.disable(logging.CRITICAL)  # it prints what it does

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            analysis.train(
                model_name="decapoda-research_llama-13b-hf",
                gpu_name="a100-sxm-80gb",
                batch_size_per_gpu=1,
                seq_len=2048,
                dp_size=8,
                tp_size=8,
                total_num_tokens=1e9,
            )

    return run


@contextlib.contextmanager
def _first(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
