"""Functions of the course refuse objects and arrays of the wrong kind with an error."""

import numpy as np
import pytest

from mlsysim import ConfigError, Models
from mlsysim_course.assign import assign
from mlsysim_course.grading import grade
from mlsysim_course.ranks import ColumnParallelLinear, Group, TransformerLayer, functions
from tests.core.test_calls import JUNK


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
@pytest.mark.parametrize(
    "call",
    {
        "attention": lambda junk: functions.attention(junk, junk, junk, 2, True),
        "gelu": lambda junk: functions.gelu_backward(np.zeros(2), {"a": junk}),
        "group": lambda junk: Group(3).all_reduce(junk),
        "split": lambda junk: Group(4).split(junk),
        "layer": lambda junk: TransformerLayer(Models.GPT2, junk, junk),
        "linear": lambda junk: ColumnParallelLinear(Group(2), junk, junk),
        "grade": grade,
        "assign": lambda junk: assign("ana", junk),
    }.values(),
)
def test_junk_is_refused(call, junk):
    with pytest.raises(ConfigError):
        call(junk)
