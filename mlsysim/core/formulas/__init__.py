"""Formulas: the physics of the package, one closed form each.

Every formula takes and returns quantities, plain numbers in SI base units, or NumPy arrays of
these, and documents its equation, symbols, units and source.
"""

from mlsysim.core.formulas import (
    collectives,
    exchange,
    experts,
    operators,
    percentiles,
    pipeline,
    placement,
    prompts,
    reliability,
    roofline,
    running,
    serving,
    serving_memory,
    traffic,
    training_memory,
    transformer,
)

# Taken before the names are imported, because a formula may have the name of its module.
__all__: list[str] = []
__all__ += collectives.__all__
__all__ += exchange.__all__
__all__ += experts.__all__
__all__ += operators.__all__
__all__ += percentiles.__all__
__all__ += pipeline.__all__
__all__ += placement.__all__
__all__ += prompts.__all__
__all__ += reliability.__all__
__all__ += roofline.__all__
__all__ += running.__all__
__all__ += serving.__all__
__all__ += serving_memory.__all__
__all__ += traffic.__all__
__all__ += training_memory.__all__
__all__ += transformer.__all__

from mlsysim.core.formulas.collectives import *
from mlsysim.core.formulas.exchange import *
from mlsysim.core.formulas.experts import *
from mlsysim.core.formulas.operators import *
from mlsysim.core.formulas.percentiles import *
from mlsysim.core.formulas.pipeline import *
from mlsysim.core.formulas.placement import *
from mlsysim.core.formulas.prompts import *
from mlsysim.core.formulas.reliability import *
from mlsysim.core.formulas.roofline import *
from mlsysim.core.formulas.running import *
from mlsysim.core.formulas.serving import *
from mlsysim.core.formulas.serving_memory import *
from mlsysim.core.formulas.traffic import *
from mlsysim.core.formulas.training_memory import *
from mlsysim.core.formulas.transformer import *
