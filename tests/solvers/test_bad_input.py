"""Every argument of every solver, given badly, is refused in words that help.

A refusal is a ConfigError. Its text names the argument, what was asked, and a way out.
"""

import dataclasses
import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pint
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DisaggregatedSolver,
    DistributedSolver,
    EconomicsSolver,
    Hardware,
    Infra,
    Models,
    OpenLoopSolver,
    ParallelismError,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
    Systems,
)
from mlsysim.core.errors import shown
from mlsysim.solvers.arguments import (
    Amount,
    Choice,
    Factor,
    Noun,
    Number,
    Portion,
    PrecisionName,
    Ratio,
    Share,
    Stage,
    Switch,
    Whole,
)
from tests.networks import fleet_of
from tools.sweep_questions import SOLVERS

GOOD = {
    DistributedSolver: {
        "model": Models.Llama3_70B,
        "fleet": Systems.Clusters.Research_256,
        "batch_size": 256,
        "tp_size": 8,
        "pp_size": 4,
        "microbatch_count": 16,
    },
    SingleNodeSolver: {"model": Models.ResNet50, "hardware": Hardware.A100},
    ServingSolver: {"model": Models.Llama3_8B, "hardware": Hardware.H100},
    DisaggregatedSolver: {"model": Models.Llama3_8B, "hardware": Systems.Nodes.DGX_H100},
    OpenLoopSolver: {"model": Models.Llama3_8B, "hardware": Hardware.H100, "arrival_rate": 4},
    SustainabilitySolver: {
        "fleet": Systems.Clusters.Research_256,
        "duration_days": 30,
        "datacenter": Infra.Quebec,
    },
    EconomicsSolver: {
        "fleet": Systems.Clusters.Research_256,
        "duration_days": 30,
        "grid": Infra.Quebec,
    },
    ReliabilitySolver: {
        "fleet": Systems.Clusters.Research_256,
        "job_duration_hours": 720,
        "checkpoint_time_s": 60,
    },
}

OTHER = pint.UnitRegistry()
# Values of other libraries and of odd magnitudes, which no argument takes
FOREIGN = [
    Decimal(3),
    Fraction(3, 2),
    datetime.timedelta(days=1),
    3 + 0j,
    np.complex64(3),
    np.array("3"),
    np.array(Decimal(3), dtype=object),
    np.timedelta64(3, "D"),
    np.void(b"abc"),
    10**400,
    10**5000,
    OTHER.Quantity(3, "day"),
    OTHER.Quantity(3, ""),
    Q_(10**400, "day"),
    Q_(10**400, ""),
    Q_(3 + 1j, "day"),
    Q_(Decimal(3), "day"),
    "x" * 10**6,
]
NO_NUMBER = ["8", b"8", True, [1], {}, 1j, object, -1, math.nan, math.inf, -math.inf]
NEVER_A_NUMBER = [*NO_NUMBER, (1,), Q_(1, "GB"), Q_(1, "s")]
NEVER_A_WHOLE = [-8.0, 1.5, np.nan, np.float64(2.5)]
NEVER_A_SHARE = [-0.1, 1.0001, 50, np.float64(2), 1e-300]
BAD = {
    Amount: [*NO_NUMBER, "8 GB", 1e300, 1e-300, Q_(1, "GB*USD"), Q_(1, "m")],
    Factor: [*NEVER_A_NUMBER, 0, 0.99, 1e300],
    Portion: [*NEVER_A_NUMBER, *NEVER_A_SHARE],
    Whole: [*NEVER_A_NUMBER, *NEVER_A_WHOLE],
    Ratio: [*NEVER_A_NUMBER, -0.01, 1e300],
    Share: [*NEVER_A_NUMBER, *NEVER_A_SHARE, 0, 0.0],
    Stage: [*NEVER_A_NUMBER, *NEVER_A_WHOLE, 4],
    Switch: [0, 1, "yes", "True", [], math.nan],
    Choice: ["ful", "FULL", "", 1, 0, [], {}, math.nan],
    PrecisionName: ["fp17", "FP16", "float16", "", 16, [], {}, math.nan],
    Noun: ["Llama3_70B", 1, [], Models, Systems, Hardware, Models.DLRM.source, math.nan],
}
WAYS_OUT = re.compile(r"\b(give|choose|pass one such as|must be True or False|create it with)\b")


def never(kind):
    """Values that an argument of a kind does not take."""
    values = [*BAD[type(kind)], *FOREIGN]
    if isinstance(kind, Whole) and kind.minimum == 1:
        values += [0, Q_(0, "")]
    if isinstance(kind, Amount):
        extremes = (-1, math.nan, math.inf, 1e300, 1e-300)
        values += [Q_(number, kind.unit) for number in extremes]
        values += [] if kind.zero else [0, Q_(0, kind.unit)]
        # Where the name states no unit, a plain number says too little.
        values += [] if kind.plain else [1]
    return values if kind.optional else [*values, None]


ARGUMENTS = [(solver, *item) for solver in GOOD for item in solver.parameters.items()]


def refusal(solver, changes):
    try:
        solver.solve(**GOOD[solver] | changes)
    except ConfigError as fault:
        return fault
    return None


@pytest.mark.parametrize("solver", GOOD, ids=lambda solver: solver.__name__)
def test_refused_in_words(solver):
    for name, kind in solver.parameters.items():
        for value in never(kind):
            fault, given = refusal(solver, {name: value}), f"{name} = {shown(value)}"
            assert fault is not None, given
            assert fault.argument == name, given
            assert str(fault).startswith(name), given
            assert WAYS_OUT.search(str(fault)), f"{given}: {fault}"
            assert len(str(fault)) < 600, given


@pytest.mark.parametrize("solver", GOOD, ids=lambda solver: solver.__name__)
def test_the_good_arguments_are_good(solver):
    assert solver.solve(**GOOD[solver])


def test_every_solver_and_kind_of_argument_is_tried():
    assert set(GOOD) == set(SOLVERS)
    kinds = [kind for _, _, kind in ARGUMENTS]
    assert {type(kind) for kind in kinds} == set(BAD)
    assert sum(isinstance(kind, Number) for kind in kinds) > 30


def test_arrays_are_sent_to_sweep():
    for solver, name, kind in ARGUMENTS:
        several = [
            np.array([1, 1]),
            np.array([0.5, 0.5]),
            np.array([]),
            [1, 2],
            (1, 2),
            range(1, 3),
        ]
        several += [Q_(np.array([1.0, 2.0]), kind.unit)] if isinstance(kind, Amount) else []
        for values in several if isinstance(kind, Number) else ():
            fault = refusal(solver, {name: values})
            assert fault.argument == name
            assert str(fault).startswith(f"{name} = ")
            assert "use sweep" in str(fault)


def test_a_plain_number_is_one_of_the_unit():
    for _, name, kind in ARGUMENTS:
        if isinstance(kind, Amount):
            dressed = kind.admit(name, Q_(2, kind.unit))
            assert dressed == pytest.approx(Q_(2, kind.unit).to_base_units().magnitude), name
            assert kind.plain or not name.endswith(("_days", "_hours", "_s", "_price"))
        if isinstance(kind, Amount) and kind.plain:
            assert kind.admit(name, 2) == pytest.approx(dressed), name
            numbers, accepted = kind.admit_array(np.array([2, -2]))
            assert numbers.tolist() == [kind.admit(name, 2), -kind.admit(name, 2)]
            assert accepted.tolist() == [True, False]


@pytest.mark.parametrize("kind", [int, float, np.int64, np.float32, np.array, lambda n: Q_(n, "")])
def test_numbers_of_other_makes_are_welcome(kind):
    good = GOOD[DistributedSolver]
    expected = dict(DistributedSolver.solve(**good))
    assert dict(DistributedSolver.solve(**good | {"batch_size": kind(256)})) == expected


@pytest.mark.parametrize("solver", GOOD, ids=lambda solver: solver.__name__)
def test_misspelt_and_missing_arguments_are_type_errors(solver):
    with pytest.raises(TypeError, match="batchsize"):
        solver.solve(**GOOD[solver], batchsize=1)
    first, *others = GOOD[solver]
    with pytest.raises(TypeError, match=first):
        solver.solve(**{name: GOOD[solver][name] for name in others})
    with pytest.raises(TypeError):
        solver.solve(*GOOD[solver].values())


# Arguments that are each in range and contradict each other: who is named.

SMALL = dataclasses.replace(Systems.Nodes.DGX_H100, accelerators_per_node=6)
CLASHES = [
    # Sizes that do not tile the fleet of 256, or are more than it has
    ({"tp_size": 3}, "tp_size"),
    ({"tp_size": 8, "pp_size": 64}, "tp_size"),
    # More ranks than the 64 heads, and ranks that do not divide them
    ({"tp_size": 128, "pp_size": 2}, "tp_size"),
    ({"tp_size": 6, "pp_size": 1, "fleet": fleet_of(2, SMALL)}, "tp_size"),
    # More stages or chunks than the 80 layers
    ({"tp_size": 1, "pp_size": 128}, "pp_size"),
    ({"pp_size": 32, "microbatch_count": 32, "virtual_stages": 4}, "pp_size"),
    # Chunks without a pipeline, or without whole rounds
    ({"pp_size": 1, "virtual_stages": 2}, "virtual_stages"),
    ({"virtual_stages": 2, "microbatch_count": 15}, "microbatch_count"),
    # Parts of tokens
    ({"tp_size": 1, "cp_size": 16, "seq_len": 1000}, "cp_size"),
]


@pytest.mark.parametrize(("changes", "argument"), CLASHES)
def test_sizes_that_contradict_each_other(changes, argument):
    with pytest.raises(ParallelismError) as caught:
        DistributedSolver.solve(**GOOD[DistributedSolver] | changes)
    assert isinstance(caught.value, ValueError)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("solver", "changes", "argument"),
    [
        (DistributedSolver, {"precision": "int8"}, "precision"),
        (DistributedSolver, {"precision": "fp4"}, "precision"),
        (SingleNodeSolver, {"precision": "fp8"}, "precision"),
        (SingleNodeSolver, {"hardware": Hardware.Coral, "precision": "fp16"}, "precision"),
        (SingleNodeSolver, {"seq_len": 128}, "seq_len"),
        (DistributedSolver, {"model": Models.ResNet50}, "model"),
        (SingleNodeSolver, {"hardware": Systems.Nodes.DGX_A100}, "hardware"),
        (ServingSolver, {"kv_precision": "fp17"}, "kv_precision"),
        (ServingSolver, {"model": Models.BERT_Base}, "model"),
        (ServingSolver, {"tp_size": 2}, "tp_size"),
    ],
)
def test_arguments_that_contradict_each_other(solver, changes, argument):
    with pytest.raises(ConfigError) as caught:
        solver.solve(**GOOD[solver] | changes)
    assert caught.value.argument == argument


def test_a_refusal_leaves_nothing_behind():
    """No trace or cache of a refused call disturbs the next."""
    before = dict(SingleNodeSolver.solve(**GOOD[SingleNodeSolver]))
    with pytest.raises(ConfigError):
        SingleNodeSolver.solve(**GOOD[SingleNodeSolver] | {"batch_size": 0})
    assert dict(SingleNodeSolver.solve(**GOOD[SingleNodeSolver])) == before
