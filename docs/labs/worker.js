// Runs the package, as it is, in a Python beside the page: Pyodide, from the site's own files.
const BRIDGE = `
import json
from importlib import import_module

from mlsysim.core.errors import MLSysError

def answer(lab, question, text):
    module = import_module("mlsysim.labs." + lab)
    try:
        value = module.restore(text) if question == "restore" else module.view(json.loads(text))
    except MLSysError as error:
        return json.dumps({"refused": str(error)})
    return json.dumps({"value": value}, allow_nan=False)

def prepare(lab):
    """Answer each prediction once: what a reveal needs is then computed before it is asked for."""
    view, state, open_ = import_module("mlsysim.labs." + lab).view, {}, True
    while open_:
        asked = [block for block in view(state)["blocks"] if block["type"] == "question"]
        open_ = [block for block in asked if block["locks"] and block["selected"] is None]
        state |= {block["id"]: block["options"][0]["value"] for block in open_}
`;
const here = (path) => new URL(path, import.meta.url).href;
const tell = (progress) => postMessage({ progress });

// Pyodide waits for ever when one of its files does not come, so each request is watched.
let giveUp;
const lost = new Promise((_, reject) => { giveUp = reject; });
const request = fetch;
globalThis.fetch = async (...asked) => {
  const file = new URL(asked[0].url ?? asked[0]).pathname.split("/").pop();
  try {
    const answer = await request(...asked);
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return answer;
  } catch (error) {
    const told = new Error(`${file}: ${error.message}`);
    giveUp(told);
    throw told;
  }
};
const fetched = async (path) => (await fetch(here(path))).arrayBuffer();
let python;
let lab;

const questions = {
  start: async ({ name, manifest }) => {
    lab = name;
    tell("Step 1 of 3: loading Python.");
    const { loadPyodide } = await import(here("runtime/pyodide.mjs"));
    const loaded = await Promise.race([loadPyodide({ indexURL: here("runtime/") }), lost]);
    tell("Step 2 of 3: loading mlsysim and the units that it computes with.");
    const [archive, wheel] = await Promise.all([
      fetched(`runtime/${manifest.archive}`),
      fetched(`../../dist/${manifest.wheel}`),
    ]);
    const extractDir = loaded.runPython("import site; site.getsitepackages()[0]");
    loaded.unpackArchive(archive, "zip", { extractDir });
    loaded.unpackArchive(wheel, "zip", { extractDir });
    tell("Step 3 of 3: computing the first answer.");
    loaded.runPython(BRIDGE);
    loaded.globals.get("prepare")(lab);
    python = loaded.globals.get("answer");
    return { value: loaded.runPython("import sys; sys.version.split()[0]") };
  },
  view: ({ text }) => JSON.parse(python(lab, "view", text)),
  restore: ({ text }) => JSON.parse(python(lab, "restore", text)),
};

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, ...(await questions[data.question](data)) });
  } catch (error) {
    postMessage({ id: data.id, broken: String(error?.message ?? error) });
  }
};
