"""The public names: sorted, importable, documented, and stable for readers of the first edition."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import subprocess
import sys

import pytest

import mlsysim
from mlsysim import compat, solvers
from mlsysim.core import units


def attribute_docstrings(module) -> set[str]:
    """Names that a module assigns and explains in a string right below."""
    found = set()
    body = ast.parse(inspect.getsource(module)).body
    for statement, following in itertools.pairwise(body):
        explained = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if not explained:
            continue
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        found |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return found


def test_names_are_sorted_and_unique():
    assert mlsysim.__all__ == sorted(set(mlsysim.__all__))


def test_every_name_is_there():
    for name in mlsysim.__all__:
        assert getattr(mlsysim, name) is not None, name
        assert name in dir(mlsysim)
        assert not name.startswith("_")


def test_every_name_is_documented():
    explained = attribute_docstrings(units)
    for name in mlsysim.__all__:
        found = getattr(mlsysim, name)
        # Pint's classes are explained where they are named.
        if name in ("Q_", "Quantity") or not (
            inspect.getmodule(found) and (inspect.isclass(found) or inspect.isroutine(found))
        ):
            assert name in explained, name
            continue
        text = found.__dict__.get("__doc__") if inspect.isclass(found) else found.__doc__
        assert text, f"{name} has no docstring of its own"
        assert not text.startswith(f"{name}("), f"{name} has only the docstring of a dataclass"
        assert text.strip().splitlines()[0].endswith((".", "?")), name


def test_public_functions_and_methods_are_documented():
    for name in mlsysim.__all__:
        found = getattr(mlsysim, name)
        if not inspect.isclass(found) or not found.__module__.startswith("mlsysim."):
            continue
        for key, member in vars(found).items():
            routine = inspect.isroutine(member) or isinstance(member, property)
            if key.startswith("_") or not routine:
                continue
            if isinstance(member, classmethod | staticmethod):
                member = member.__func__
            assert inspect.getdoc(member), f"{name}.{key}"


def test_star_import_brings_exactly_these():
    names: dict[str, object] = {}
    exec("from mlsysim import *", names)
    names.pop("__builtins__")
    assert sorted(names) == mlsysim.__all__


LATER = {"DisaggregatedSolver", "OpenLoopSolver"}
"""Solvers that the first edition did not have."""


@pytest.mark.parametrize(
    "name", sorted({name for name in mlsysim.__all__ if name.endswith("Solver")} - LATER)
)
def test_a_solver_has_both_its_names(name):
    alias = name.removesuffix("Solver") + "Model"
    assert alias in mlsysim.__all__
    assert getattr(mlsysim, alias) is getattr(mlsysim, name)


def test_names_of_the_first_edition():
    """What its tutorials import."""
    printed = "DistributedSolver DistributedModel SingleNodeSolver SingleNodeModel ServingSolver "
    printed += "ServingModel Engine Fleet NetworkFabric Node Systems Models Hardware Infra "
    printed += "ureg Q_ plot_roofline"
    assert set(printed.split()) <= set(mlsysim.__all__)
    assert mlsysim.Engine is mlsysim.SingleNodeSolver


@pytest.mark.parametrize("name", compat.__all__)
def test_old_names_are_kept_in_one_module(name):
    assert getattr(mlsysim, name) is getattr(compat, name)
    assert not hasattr(solvers, name)


def test_a_quantity_can_be_told_from_a_number():
    assert isinstance(mlsysim.Q_(1, "GB"), mlsysim.Quantity)
    assert not isinstance(1.0, mlsysim.Quantity)
    assert mlsysim.ureg.GB == mlsysim.ureg("GB") == mlsysim.Q_(1, "GB")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSolver"):
        mlsysim.NoSolver  # noqa: B018 - the look-up is the test


def test_the_version_is_a_semantic_one():
    assert re.fullmatch(r"\d+\.\d+\.\d+", mlsysim.__version__)


def test_the_package_says_that_it_is_typed():
    from importlib.resources import files

    assert (files("mlsysim") / "py.typed").is_file()
    assert (files("mlsysim.core") / "units.txt").is_file()


def test_importing_it_prints_and_warns_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import mlsysim"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
