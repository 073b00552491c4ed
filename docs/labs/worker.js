// Runs the unmodified package in Python in a worker: Pyodide, from the site's own files.
const LOADER = "pyodide.mjs";
const PAUSE = 100; // milliseconds between two reports of the download
const here = (path) => new URL(path, import.meta.url).href;
const tell = (progress) => postMessage({ progress });

// A file whose name ends in .bin is within gzip, so that it is small from every server.
const PACKED = /\.bin$/;
const opened = (answer, name) => {
  if (!PACKED.test(name)) return answer;
  const type = name.includes(".mjs") ? "text/javascript" : "application/wasm"; // no other file needs its type
  return new Response(answer.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": type } });
};

// What Pyodide fetches is on its way already; each answer can be read once.
const request = fetch;
const answers = new Map();
globalThis.fetch = (asked, ...options) => {
  const address = new URL(asked.url ?? asked, import.meta.url).href;
  const answer = answers.get(address);
  answers.delete(address);
  return answer ?? request(asked, ...options);
};

const arrived = async (name) => {
  const answer = await request(here(`runtime/${name}`));
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer;
};

// Requests all files at once and counts their bytes as they arrive. The sizes are those of the files
// themselves, so the count is also right for a compressed transfer and for a cache.
const download = ({ files }) => {
  const total = Object.values(files).reduce((sum, size) => sum + size, 0);
  let [loaded, told] = [0, -PAUSE];
  const count = (bytes) => {
    loaded += bytes;
    if (loaded < total && performance.now() - told < PAUSE) return;
    told = performance.now();
    tell({ loaded, total });
  };
  const load = async (name) => {
    const asked = arrived(name);
    // The loader is imported from the browser's cache. Of every other file, one copy is counted and one used.
    if (name !== LOADER) {
      const copy = asked.then((answer) => opened(answer.clone(), name));
      copy.catch(() => {}); // the count reports it
      answers.set(here(`runtime/${name.replace(PACKED, "")}`), copy);
    }
    const reader = await asked.then((answer) => answer.body.getReader());
    for (let part = await reader.read(); !part.done; part = await reader.read()) count(part.value.byteLength);
  };
  return new Map(Object.keys(files).map((name) => [name, load(name).catch((error) => {
    throw new Error(`${name}: ${error.message}`);
  })]));
};

// The zip archives as Python imports from them.
const bytes = async (answer) => new Uint8Array(await (await answer).arrayBuffer());

let ask;
let loadRest;

// Python's memory after the imports. A browser that has kept it starts in a fraction of the time.
const PAGE = 65536; // bytes in a page of WebAssembly's memory
const place = (build) => here(`runtime/memory-${build}`);
const kept = async (build) => {
  try {
    return await (await (await caches.open("mlsysim-memory")).match(place(build)))?.arrayBuffer();
  } catch {
    return null; // some browsers keep nothing in a private window
  }
};
const keep = async (build, memory) => {
  const cache = await caches.open("mlsysim-memory");
  for (const old of await cache.keys()) await cache.delete(old);
  await cache.put(place(build), new Response(memory));
};

// Pyodide restores a memory that fits in the one it starts with, so that one has to grow first.
const growing = async (bytes, work) => {
  const { instantiateStreaming, instantiate } = WebAssembly;
  const grown = (start) => async (...given) => {
    const made = await start.apply(WebAssembly, given);
    const memory = Object.values((made.instance ?? made).exports).find((one) => one instanceof WebAssembly.Memory);
    if (memory) memory.grow(Math.max(0, Math.ceil((bytes - memory.buffer.byteLength) / PAGE)));
    return made;
  };
  Object.assign(WebAssembly, { instantiateStreaming: grown(instantiateStreaming), instantiate: grown(instantiate) });
  try {
    return await work();
  } finally {
    Object.assign(WebAssembly, { instantiateStreaming, instantiate });
  }
};

const IMPORTS = "import mlsysim_course.bridge, mlsysim_course.explorers";
const HOME = "/lib/archives/";
const begin = async ({ archives: names, rest, build, extras }, files, withExtras) => {
  // Everything that has to be read is on its way before anything waits. Memory is kept without extras,
  // because what imports them behaves differently from then on.
  const reading = withExtras ? null : kept(build);
  const stems = names.map((name) => name.replace(PACKED, ""));
  const archives = Promise.all(stems.map((stem) => bytes(fetch(here(`runtime/${stem}`)))));
  archives.catch(() => {}); // the download reports it
  const program = fetch(here("runtime/pyodide.asm.mjs")).then((answer) => answer.blob());
  program.catch(() => {});
  await files.get(LOADER);
  const { loadPyodide } = await import(here(`runtime/${LOADER}`));
  const { default: createPyodideModule } = await import(URL.createObjectURL(await program));
  const options = { indexURL: here("runtime/"), packageBaseUrl: here("runtime/"), createPyodideModule, env: { HOME: "/home/pyodide", MPLBACKEND: "agg" } };
  const memory = await reading;
  const restored = memory && await growing(memory.byteLength, () => loadPyodide({ ...options, _loadSnapshot: memory })).catch(() => null);
  const loaded = restored ?? await loadPyodide({ ...options, _makeSnapshot: !withExtras });
  tell({ text: "Loading mlsysim." });
  // Python imports from the archives as they are. Files are not part of the memory, and derivations
  // read formulas from their source, so a restored Python needs them as well.
  const paths = stems.map((stem) => HOME + stem);
  loaded.FS.mkdirTree(HOME);
  (await archives).forEach((content, i) => loaded.FS.writeFile(paths[i], content));
  let adding = null;
  loadRest = () => {
    adding ??= bytes(arrived(rest).then((answer) => opened(answer, rest))).then((content) => {
      loaded.FS.writeFile(HOME + rest, content);
      loaded.pyimport("mlsysim_course.archives").also_import_from(HOME + rest);
    }).catch((error) => {
      adding = null;
      throw error;
    });
    return adding;
  };
  if (!restored) {
    loaded.runPython(`import sys; sys.path += ${JSON.stringify(paths)}`);
    if (withExtras) {
      await loadRest(); // they import more of the library
      await loaded.loadPackage(extras.names, { messageCallback: () => {} });
    }
    loaded.runPython(IMPORTS);
  }
  if (!restored && !withExtras) {
    try {
      keep(build, loaded.makeMemorySnapshot()).catch(() => {}); // no room: the next start takes as long
    } catch {
      // A browser in which Pyodide cannot write its memory down starts slowly each time.
    }
  }
  const bridge = loaded.pyimport("mlsysim_course.bridge");
  ask = (about, details) => JSON.parse(bridge.ask(about, JSON.stringify(details)));
  return { value: loaded.runPython("import sys; sys.version.split()[0]") };
};

const questions = {
  start: async ({ manifest, withExtras }) => {
    const files = download(withExtras ? { ...manifest, files: { ...manifest.files, ...manifest.extras.files } } : manifest);
    const all = Promise.all(files.values());
    all.then(() => tell({ text: "Starting Python." }), () => {});
    // Pyodide waits forever for a file that does not arrive, so a failed download ends the start.
    return Promise.race([begin(manifest, files, withExtras), new Promise((_, reject) => { all.catch(reject); })]);
  },
  // Labs, explorers, blocks of code and exercises; `about` is which of these. Explorers of tutorials need
  // only the first archive, and a block of code may need anything.
  ask: async ({ about, details }) => {
    if (about === "run") await loadRest();
    const answer = ask(about, details);
    if (about === "run" || !answer.needs) return answer;
    await loadRest();
    return ask(about, details);
  },
};

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, ...(await questions[data.question](data)) });
  } catch (error) {
    postMessage({ id: data.id, broken: String(error?.message ?? error) });
  }
};
