// Runs the unmodified package in Python in a worker: Pyodide, from the site's own files.
const PAUSE = 100; // milliseconds between two reports of the download
const here = (path) => new URL(path, import.meta.url).href;
const tell = (progress) => postMessage({ progress });

// What Pyodide fetches is on its way already; each answer can be read once.
const request = fetch;
const answers = new Map();
globalThis.fetch = (asked, ...options) => {
  const address = new URL(asked.url ?? asked, import.meta.url).href;
  const answer = answers.get(address);
  answers.delete(address);
  return answer ?? request(asked, ...options);
};

// Requests all files at once and counts their bytes as they arrive. The sizes are those of the files
// themselves, so the count is also right for a compressed transfer and for a cache.
const download = ({ files, wheel }) => {
  const total = Object.values(files).reduce((sum, size) => sum + size, 0);
  let [loaded, told] = [0, -PAUSE];
  const count = (bytes) => {
    loaded += bytes;
    if (loaded < total && performance.now() - told < PAUSE) return;
    told = performance.now();
    tell({ loaded, total });
  };
  const load = async (name) => {
    const address = here(name === wheel ? `../../dist/${name}` : `runtime/${name}`);
    const asked = request(address).then((answer) => {
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      return answer;
    });
    // A module is imported from the browser's cache. Of every other file, one copy is counted and one used.
    if (!name.endsWith(".mjs")) {
      const copy = asked.then((answer) => answer.clone());
      copy.catch(() => {}); // the count reports it
      answers.set(address, copy);
    }
    const reader = await asked.then((answer) => answer.body.getReader());
    for (let part = await reader.read(); !part.done; part = await reader.read()) count(part.value.byteLength);
  };
  return new Map(Object.keys(files).map((name) => [name, load(name).catch((error) => {
    throw new Error(`${name}: ${error.message}`);
  })]));
};

let ask;
let lab;

const begin = async ({ archive, wheel }, files) => {
  await Promise.all([files.get("pyodide.mjs"), files.get("pyodide.asm.mjs")]);
  const { loadPyodide } = await import(here("runtime/pyodide.mjs"));
  const loaded = await loadPyodide({ indexURL: here("runtime/") });
  tell({ text: "Loading mlsysim." });
  const extractDir = loaded.runPython("import site; site.getsitepackages()[0]");
  for (const path of [`runtime/${archive}`, `../../dist/${wheel}`]) {
    loaded.unpackArchive(await (await fetch(here(path))).arrayBuffer(), "zip", { extractDir });
  }
  const bridge = loaded.pyimport("mlsysim.labs.bridge");
  tell({ text: "Computing the first results." });
  if (lab) bridge.prepare(lab);
  ask = bridge.ask;
  return { value: loaded.runPython("import sys; sys.version.split()[0]") };
};

const questions = {
  start: async ({ name, manifest }) => {
    lab = name;
    const files = download(manifest);
    const all = Promise.all(files.values());
    all.then(() => tell({ text: "Starting Python." }), () => {});
    // Pyodide waits forever for a file that does not arrive, so a failed download ends the start.
    return Promise.race([begin(manifest, files), new Promise((_, reject) => { all.catch(reject); })]);
  },
  view: ({ text }) => JSON.parse(ask("view", `{"lab": ${JSON.stringify(lab)}, "state": ${text}}`)),
  restore: ({ text }) => JSON.parse(ask("restore", JSON.stringify({ lab, text }))),
  // Explorers, blocks of code and exercises; `about` is which of these.
  ask: ({ about, details }) => JSON.parse(ask(about, JSON.stringify(details))),
};

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, ...(await questions[data.question](data)) });
  } catch (error) {
    postMessage({ id: data.id, broken: String(error?.message ?? error) });
  }
};
