"""What keeps the package honest: imports in one direction, NumPy late.

Layers within the package are contracts of import-linter, which `dev.py check` runs.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

from mlsysim.core.formula import FORMULAS

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "mlsysim").rglob("*.py"))


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def imported(tree: ast.Module) -> set[str]:
    """Full names of all modules that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def test_the_preview_renderer_stays_small():
    files = [p for p in (ROOT / "tools/preview").rglob("*") if p.suffix in {".py", ".lua"}]
    assert len(files) > 5
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 700


def test_the_package_stands_alone():
    outside = {}
    for path, tree in TREES.items():
        allowed = {
            "mlsysim",
            "pint",
            "numpy",
            "matplotlib",
            "yaml",
            "jsonschema",
            "click",
            "pandas",
            "pyarrow",
        }
        # A relative import has an empty root, which is not allowed either.
        roots = {name.split(".")[0] for name in imported(tree)}
        outside[label(path)] = roots - set(sys.stdlib_module_names) - allowed
    assert not {name: found for name, found in outside.items() if found}


def test_no_assert_guards_an_input():
    """`python -O` removes them."""
    found = [
        f"{label(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]
    assert not found


def test_formulas_are_short_and_well_documented():
    assert FORMULAS
    wrong = []
    for name, formula in FORMULAS.items():
        _, manual, body = re.split(r'r?"""', inspect.getsource(formula.function))
        lines = len(body.strip().splitlines())
        if lines > 8 or len(manual.splitlines()) <= lines:
            wrong.append(name)
    assert not wrong


SCALAR_PATH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numpy", "matplotlib", "pandas"}:
            raise ModuleNotFoundError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
sys.modules["dask"] = None  # Pint loads it where there is one
from mlsysim import DistributedSolver, Hardware, Models, SingleNodeSolver, Systems

step = DistributedSolver.solve(
    model=Models.Llama3_70B,
    fleet=Systems.Clusters.Research_256,
    batch_size=256,
    tp_size=8,
    pp_size=4,
    microbatch_count=16,
)
one = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100)
two = SingleNodeSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100)
print(step, step.explain(), one, one.explain(), two)
assert not {"numpy", "matplotlib", "pandas", "yaml", "jsonschema"} & set(sys.modules)
"""


def test_one_answer_needs_no_numpy():
    """NumPy takes longer to import than a thousand answers take to compute."""
    done = subprocess.run(
        [sys.executable, "-c", SCALAR_PATH], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "step_latency_total" in done.stdout


def test_importing_the_package_loads_nothing_heavy():
    # Pint loads Dask where there is one, and Dask much else.
    code = (
        "import sys; sys.modules['dask'] = None; import mlsysim; "
        "print(sorted({n.split('.')[0] for n in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(ast.literal_eval(done.stdout))
    heavy = {"matplotlib", "pandas", "yaml", "jsonschema", "IPython", "tools", "hypothesis"}
    assert not heavy & loaded


MISSPELLED = """
from mlsysim.solvers.training.inputs import TrainingInputs


def model(i: TrainingInputs) -> object:
    right = i.tp_size, i.fleet.node.scale_up.bandwidth
    return right, i.tp_sizee, i.fleet.node.scale_up.bandwith, i.calibration.gemm("fp8", 1)
"""


def test_a_misspelled_input_fails_the_type_check(tmp_path):
    """As `dev.py check` runs it: what a model reads is followed to where it is declared."""
    planted = tmp_path / "planted.py"
    planted.write_text(MISSPELLED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(planted)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    faults = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(faults) == 3, done.stdout
    assert '"tp_sizee"' in faults[0]
    assert '"bandwith"' in faults[1]
    assert "gemm" in faults[2]
