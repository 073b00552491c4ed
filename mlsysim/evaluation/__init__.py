"""Evaluation: does it fit, is it fast enough, and what does it cost?"""

from mlsysim.evaluation.checks import Check, Level
from mlsysim.evaluation.evaluate import evaluate
from mlsysim.evaluation.plain import plain
from mlsysim.evaluation.scorecard import Scorecard

__all__ = ["Check", "Level", "Scorecard", "evaluate", "plain"]
