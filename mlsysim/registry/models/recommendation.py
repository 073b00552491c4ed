"""Recommendation: models with large embedding tables."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import FixedShapeModel, cite
from mlsysim.core.units import Q_

__all__ = ["Recommendation"]


class Recommendation(Catalog):
    """Recommendation models. Most parameters are in tables, and a sample reads few of them."""

    DLRM = FixedShapeModel(
        name="DLRM",
        source=cite("dlrm_mlperf"),
        parameters=Q_(24_036_595_969, "param"),
        flops_per_sample=Q_(2 * (2_365_184 + 44_928), "flop"),
        activations_per_sample=Q_(7392, "count"),
        dense_parameters=Q_(2_368_897, "param"),
        gathered_parameters=Q_(26 * 128, "param"),
        input_shape=(13 + 26,),
        layers=8,
    )
    """DLRM as MLPerf first had it, retired since: 24e9 embedding parameters, 2.4e6 in the two MLPs.
    A sample reads one row of each of the 26 tables and all of the MLPs."""
