// The package in the reader's browser: what it takes to start it, and one worker for the page.
import { make } from "./dom.js";

const STOPPED = "Python was stopped";

// Every question to the worker gets one answer.
const open = () => {
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  let [count, closed] = [0, false];
  const end = (text) => {
    waiting.forEach(({ answer }) => answer({ broken: text }));
    waiting.clear();
  };
  worker.onmessage = ({ data }) => {
    if (data.progress) return waiting.forEach(({ hear }) => hear?.(data.progress));
    waiting.get(data.id)?.answer(data);
    return waiting.delete(data.id);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    end(event.message || "the browser could not start it");
  };
  return {
    ask: (question, details, hear) => new Promise((answer) => {
      if (closed) return answer({ broken: STOPPED });
      waiting.set((count += 1), { answer, hear });
      return worker.postMessage({ id: count, question, ...details });
    }),
    close: () => worker.terminate(),
    // Questions that have no answer yet, or come later, are answered as well.
    stop: () => {
      closed = true;
      worker.terminate();
      end(STOPPED);
    },
  };
};

export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

// A bar with bytes for the eye; for screen readers, the quarters and the steps that follow.
export const loading = (what) => {
  const meter = make("progress", { max: 1, value: 0, "aria-label": `Loading ${what}` });
  const words = make("p", { class: "mls-bytes" }, "Connecting.");
  const spoken = make("p", { class: "visually-hidden", role: "status" }, `Loading ${what}.`);
  let quarter = 0;
  return {
    node: make("div", { class: "mls-loading" }, meter, words, spoken),
    hear: ({ loaded, total, text }) => {
      if (text) {
        meter.removeAttribute("value");
        words.textContent = spoken.textContent = text;
        return;
      }
      meter.value = loaded / total;
      words.textContent = `${megabytes(loaded)} of ${megabytes(total)} MB`;
      if (Math.floor(4 * meter.value) <= quarter) return;
      quarter = Math.floor(4 * meter.value);
      spoken.textContent = `${25 * quarter}% of ${megabytes(total)} MB loaded.`;
    },
  };
};

// The build says whether it includes Python for the browser.
export const findRuntime = async () => {
  const answer = await fetch(new URL("runtime/manifest.json", import.meta.url));
  if (!answer.ok) throw new Error(`runtime/manifest.json: the server answered ${answer.status}`);
  return answer.json();
};

// Whether an earlier start left Python's memory in this browser, so that nothing has to be downloaded.
export const remembered = async ({ build }) => {
  try {
    return Boolean(await caches.match(new URL(`runtime/memory-${build}`, import.meta.url), { cacheName: "mlsysim-memory" }));
  } catch {
    return false; // a page that was not served safely, or a private window
  }
};

// From the first start on, a service worker at the root of the site keeps what the reader opens.
const PATIENCE = 2000; // milliseconds; without it everything works except without a network
const keepOffline = async () => {
  const { serviceWorker } = navigator;
  if (!serviceWorker || serviceWorker.controller) return;
  const keeping = async () => {
    const made = await serviceWorker.register(new URL("../../offline.js", import.meta.url));
    if (!made) return;
    const { active } = await serviceWorker.ready;
    const opened = performance.getEntriesByType("resource").map(({ name }) => name);
    active.postMessage({ keep: [location.href.split("#")[0], ...opened.filter((name) => name.startsWith(location.origin))] });
  };
  await Promise.race([keeping().catch(() => {}), new Promise((over) => { setTimeout(over, PATIENCE); })]);
};

export const size = ({ files }) => Object.values(files).reduce((sum, bytes) => sum + bytes, 0);

// Explorers, blocks of code and exercises of a page share one worker. A start that failed may be tried again.
let started = null;
let worker = null;
const listeners = new Set();
// NumPy and matplotlib are loaded once a block needs them, and from then on. They have to be there before
// the package is imported, so Python starts again.
let withExtras = false;
export const python = (hear, extras = false) => {
  if (extras && !withExtras) stop();
  withExtras ||= extras;
  listeners.add(hear);
  if (!started) {
    const start = begin((progress) => listeners.forEach((one) => one(progress))).catch((error) => {
      if (started === start) started = null;
      throw error;
    }).finally(() => listeners.clear());
    started = start;
  }
  return started;
};

// Ends whatever Python is doing, such as a loop without an end. The next question starts it again,
// without what blocks of code had defined.
export const stop = () => {
  worker?.stop();
  [started, worker] = [null, null];
};
export const wasStopped = (error) => error.message === STOPPED;

const answered = ({ id, broken, ...answer }) => {
  if (broken) throw new Error(broken);
  return answer;
};

const begin = async (hear) => {
  const manifest = await findRuntime();
  if (manifest.missing) throw new Error(manifest.missing);
  await keepOffline();
  const made = open();
  worker = made;
  try {
    answered(await made.ask("start", { manifest, withExtras: withExtras && Boolean(manifest.extras) }, hear));
  } catch (error) {
    made.close();
    throw error;
  }
  // Resolves to `value`, `refused` or `needs`; rejects when the program itself fails.
  return { ask: async (about, details) => answered(await made.ask("ask", { about, details })) };
};

// Blocks of code that are running. One that takes long keeps the explorers of its page waiting.
let running = 0;
export const isRunning = () => running > 0;
export const counted = async (work) => {
  running += 1;
  try {
    return await work();
  } finally {
    running -= 1;
  }
};
