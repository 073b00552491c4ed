"""A lab, as a marimo app: `python -m mlsysim.labs` opens it."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="A lab of mlsysim")


@app.cell
def _():
    from pathlib import Path

    import marimo as mo

    from mlsysim.labs import catalog, desk

    return Path, catalog, desk, mo


@app.cell
def _(Path, catalog, desk, mo):
    name = str(mo.cli_args().get("lab") or catalog.LABS[0])
    lab = catalog.find(name)
    given = mo.cli_args().get("ledger") or f"{name}_ledger.json"
    keeper = desk.Keeper(Path(str(given)).absolute(), lab.restore)
    done, set_done = mo.state(keeper.load())
    start, set_start = mo.state(0)
    return done, keeper, lab, set_done, set_start, start


@app.cell
def _(desk, keeper, lab, set_done, start):
    # Created again only when the lab restarts, so that an element keeps the focus.
    begin = keeper.load() if start() == 0 else {}
    elements = desk.elements(
        lab.controls,
        begin,
        lambda name, value: set_done(lambda state: lab.change(state, name, value)),
    )
    return (elements,)


@app.cell
def _(desk, done, elements, lab):
    answer = lab.view(done())
    desk.draw(answer, elements)
    return (answer,)


@app.cell
def _(answer, desk, keeper, mo, set_done, set_start):
    def again(_):
        set_done({})
        set_start(lambda number: number + 1)

    restart = mo.ui.button(label="Start again", on_change=again)
    desk.footer(keeper, answer["ledger"], restart)
    return


if __name__ == "__main__":
    app.run()
