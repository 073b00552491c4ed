"""The footer of a lab: the location of its ledger, and a button to download it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from mlsysim.labs.desk.drawing import html
from mlsysim.labs.desk.keeper import Keeper

__all__ = ["footer"]


def footer(keeper: Keeper, ledger: Mapping[str, Any], restart: Any) -> Any:
    """Save the ledger and report it; offer a download and a restart.

    Parameters
    ----------
    keeper
        The ledger's file.
    ledger
        The record to save.
    restart
        The button that starts the lab again.
    """
    import marimo as mo

    saved, words = keeper.save(ledger)
    said = html(f"<p>{escape(words)}</p>")
    download = mo.download(
        json.dumps(ledger, indent=1).encode(),
        filename=keeper.path.name,
        mimetype="application/json",
        label="Download the ledger",
    )
    notice = said if saved else mo.callout(said, kind="danger")
    return mo.vstack([notice, mo.hstack([download, restart], justify="start")])
