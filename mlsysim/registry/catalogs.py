"""Catalogs whose rows are in the files of `mlsysim/registry/data`.

`catalogs.pyi` names the rows for editors and type checkers: `python -m tools.stubs` writes it.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import ServingCalibration
from mlsysim.registry.tables import constants

__all__ = ["ServingCalibrations"]


class ServingCalibrations(Catalog, rows=constants("serving.toml", ServingCalibration)):
    """Constants of serving engines, fitted to published runs, per generation of devices.

    ``python -m research.fits.serving`` fits the constants to the rows marked ``calibrate`` in
    ``research/measurements/serving.csv`` and ``serving_2.csv``. Constants that an engine's runs
    cannot determine are those of a similar engine or usual ones, and are marked as estimates. The
    two rows of libraries describe single passes, and ``python -m research.fits.passes`` fits them
    to ``research/measurements/passes.csv``. Constants of `Hopper_vLLM_Open` come from
    ``python -m research.fits.open_loop``.
    """
