"""Formulas: the physics of the package, one closed form each.

Every formula takes and returns quantities, plain numbers in SI base units, or NumPy arrays of
these, and documents its equation, symbols, units and source.
"""

from mlsysim.core.formulas import (
    activation_widths,
    activations,
    admission,
    all_reduce,
    backward_memory,
    carbon,
    checkpoints,
    collectives,
    context,
    cost,
    decoding,
    dispatch,
    energy,
    exchange,
    flops,
    held_parameters,
    inference,
    kv_memory,
    memory,
    operators,
    overlap,
    pipeline,
    placement,
    power,
    queueing,
    reliability,
    roofline,
    serving,
    serving_layers,
    shapes,
    sharding,
    stages,
    streams,
    traffic,
    training,
    transformer,
    unit_cost,
)

# Taken before the names themselves arrive: a formula may bear the name of its module.
__all__: list[str] = []
__all__ += activation_widths.__all__
__all__ += activations.__all__
__all__ += admission.__all__
__all__ += all_reduce.__all__
__all__ += backward_memory.__all__
__all__ += carbon.__all__
__all__ += checkpoints.__all__
__all__ += collectives.__all__
__all__ += context.__all__
__all__ += cost.__all__
__all__ += decoding.__all__
__all__ += dispatch.__all__
__all__ += energy.__all__
__all__ += exchange.__all__
__all__ += flops.__all__
__all__ += held_parameters.__all__
__all__ += inference.__all__
__all__ += kv_memory.__all__
__all__ += memory.__all__
__all__ += operators.__all__
__all__ += overlap.__all__
__all__ += pipeline.__all__
__all__ += placement.__all__
__all__ += power.__all__
__all__ += queueing.__all__
__all__ += reliability.__all__
__all__ += roofline.__all__
__all__ += serving.__all__
__all__ += serving_layers.__all__
__all__ += shapes.__all__
__all__ += sharding.__all__
__all__ += stages.__all__
__all__ += streams.__all__
__all__ += traffic.__all__
__all__ += training.__all__
__all__ += transformer.__all__
__all__ += unit_cost.__all__

from mlsysim.core.formulas.activation_widths import *
from mlsysim.core.formulas.activations import *
from mlsysim.core.formulas.admission import *
from mlsysim.core.formulas.all_reduce import *
from mlsysim.core.formulas.backward_memory import *
from mlsysim.core.formulas.carbon import *
from mlsysim.core.formulas.checkpoints import *
from mlsysim.core.formulas.collectives import *
from mlsysim.core.formulas.context import *
from mlsysim.core.formulas.cost import *
from mlsysim.core.formulas.decoding import *
from mlsysim.core.formulas.dispatch import *
from mlsysim.core.formulas.energy import *
from mlsysim.core.formulas.exchange import *
from mlsysim.core.formulas.flops import *
from mlsysim.core.formulas.held_parameters import *
from mlsysim.core.formulas.inference import *
from mlsysim.core.formulas.kv_memory import *
from mlsysim.core.formulas.memory import *
from mlsysim.core.formulas.operators import *
from mlsysim.core.formulas.overlap import *
from mlsysim.core.formulas.pipeline import *
from mlsysim.core.formulas.placement import *
from mlsysim.core.formulas.power import *
from mlsysim.core.formulas.queueing import *
from mlsysim.core.formulas.reliability import *
from mlsysim.core.formulas.roofline import *
from mlsysim.core.formulas.serving import *
from mlsysim.core.formulas.serving_layers import *
from mlsysim.core.formulas.shapes import *
from mlsysim.core.formulas.sharding import *
from mlsysim.core.formulas.stages import *
from mlsysim.core.formulas.streams import *
from mlsysim.core.formulas.traffic import *
from mlsysim.core.formulas.training import *
from mlsysim.core.formulas.transformer import *
from mlsysim.core.formulas.unit_cost import *
