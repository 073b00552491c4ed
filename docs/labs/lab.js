// A lab page: asks the package, in a worker, what to show for what the reader did, and shows it.
import { drawing } from "./blocks.js";
import { make } from "./dom.js";
import { download, keeper } from "./ledger.js";

const root = document.querySelector("[data-lab]");
const lab = root.dataset.lab;
const store = keeper(lab);
const SILENCE = 900;

// One question to the worker at a time has one answer.
const open = () => {
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  let count = 0;
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
      waiting.set((count += 1), { answer, hear });
      worker.postMessage({ id: count, question, ...details });
    }),
    close: () => worker.terminate(),
  };
};

const start = make("div", { class: "mls-lab-start" });
const stage = make("div", { class: "mls-lab-stage", tabindex: -1 });
const heard = make("p", { class: "visually-hidden", role: "status" });
const notice = make("p", { class: "mls-notice", role: "alert", hidden: true });
const saved = make("p", { role: "status" });
const version = make("p", { class: "mls-hint" });
const status = make("dl");
const bar = make("div", { class: "mls-status", role: "group", "aria-label": "Status of the lab" }, notice, status);
let state = {};
let accepted = {};
let view = null;
let worker = null;
let busy = false;
let again = false;
let changed = false;
let told = 0;
let news = [];
let unsaved = "";

// What is not saved stays said until it is; the same words are not called out twice.
const say = (words) => {
  const text = words || unsaved;
  notice.hidden = !text;
  if (notice.textContent !== text) notice.textContent = text;
};

const draw = drawing(stage, {
  value: (id, fallback) => (id in state ? state[id] : fallback),
  choose: (id, value) => {
    state = { ...state, [id]: value };
    changed = true;
    say("");
    refresh();
  },
});

const refresh = async () => {
  again = true;
  if (busy) return;
  busy = true;
  root.setAttribute("data-state", "answering");
  while (again) {
    again = false;
    const asked = state;
    const begin = performance.now();
    const answer = await worker.ask("view", { text: JSON.stringify(asked) });
    if (answer.broken) {
      busy = false;
      return fail("The lab stopped at an error that it does not know.", answer.broken);
    }
    if (answer.refused && !again) {
      // What the reader set is set back. If the very first answer is refused, there is nothing to show.
      if (view === null) {
        busy = false;
        return fail("The lab could not begin.", answer.refused);
      }
      state = accepted;
      show();
      say(`Not possible: ${answer.refused}`);
    } else if (!answer.refused) {
      accepted = asked;
      view = answer.value;
      try {
        show();
      } catch (error) {
        busy = false;
        return fail("The lab's answer cannot be shown.", error.message);
      }
      root.dataset.milliseconds = (performance.now() - begin).toFixed(1);
      if (changed) keep();
    }
  }
  busy = false;
  return root.setAttribute("data-state", "running");
};

const show = () => {
  news.push(...draw(view.blocks));
  const items = view.status.map(({ label, value }) => make("div", {}, make("dt", {}, label), make("dd", {}, String(value))));
  status.replaceChildren(...items);
  clearTimeout(told);
  // Only when the reader pauses, and only the last word on each.
  told = setTimeout(() => {
    if (news.length) heard.textContent = [...new Map(news.map((text) => [text.split(":")[0], text])).values()].join("; ");
    news = [];
  }, SILENCE);
};

const keep = () => {
  const { error } = store.save(view.ledger);
  unsaved = error ? `Not saved: this browser did not take it (${error}). Export the ledger as a file to keep it.` : "";
  saved.textContent = unsaved || "Saved in this browser.";
  saved.classList.toggle("mls-bad", Boolean(error));
  say("");
};

const fail = (what, detail) => {
  worker?.close();
  worker = null;
  root.setAttribute("data-state", "failed");
  begin([
    make("div", { class: "mls-alert", "data-tone": "bad", role: "alert" }, make("strong", {}, what), make("p", { class: "mls-detail" }, detail),
      make("p", {}, "What was saved in this browser stays saved.")),
  ], "Try again");
  start.querySelector("button")?.focus();
};

// What stands in the lab's place until it runs: words, and a button where there is hope.
const begin = (content, label) => {
  const button = make("button", { type: "button", class: "mls-button mls-first" }, label);
  button.addEventListener("click", () => run(button), { once: true });
  start.replaceChildren(...content, ...(label ? [make("p", {}, button)] : []));
  root.replaceChildren(start);
};

const run = async (button) => {
  const progress = make("p", { role: "status" });
  button.setAttribute("aria-disabled", "true");
  button.textContent = "Loading";
  start.append(progress);
  root.setAttribute("data-state", "loading");
  let manifest;
  try {
    manifest = await findRuntime();
    worker = open();
  } catch (error) {
    return fail("The lab could not be loaded.", error.message);
  }
  const first = performance.now();
  const ready = await worker.ask("start", { name: lab, manifest }, (text) => { progress.textContent = text; });
  if (ready.broken) return fail("The lab could not be loaded.", ready.broken);
  const seconds = ((performance.now() - first) / 1000).toFixed(1);
  version.textContent = `Python ${ready.value} in this browser, ready after ${seconds} s, with the package's own wheel, ${manifest.wheel}.`;
  state = {};
  accepted = {};
  view = null;
  changed = false;
  say("");
  await restore();
  root.replaceChildren(stage, panel(), heard, bar);
  await refresh();
  return view && stage.focus({ preventScroll: true });
};

const restore = async () => {
  const { text, error } = store.load();
  if (error) saved.textContent = `This browser lets the page save nothing (${error}). Export the ledger as a file to keep it.`;
  else if (!text) saved.textContent = "Nothing is saved yet: your first step will be.";
  if (!text) return;
  const answer = await worker.ask("restore", { text });
  if (answer.value) {
    state = answer.value;
    saved.textContent = "Restored from this browser: you continue where you were.";
  } else {
    saved.textContent = "The lab begins anew.";
    say(`What this browser had saved cannot be read: ${answer.refused ?? answer.broken} The lab begins anew.`);
  }
};

const panel = () => {
  const button = (words, press) => {
    const made = make("button", { type: "button", class: "mls-button" }, words);
    made.addEventListener("click", press);
    return made;
  };
  const file = make("input", { type: "file", accept: ".json,application/json", class: "visually-hidden", tabindex: -1, "aria-label": "A ledger's file" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    file.value = "";
    if (!chosen) return;
    const answer = await worker.ask("restore", { text: await chosen.text() });
    if (!answer.value) return say(`${chosen.name} is not taken: ${answer.refused ?? answer.broken}`);
    state = answer.value;
    changed = true;
    say("");
    await refresh();
    saved.textContent = `${saved.textContent} It is the ledger of ${chosen.name}.`;
  });
  return make("section", { class: "mls-ledger", "aria-labelledby": "lab-ledger" },
    make("h2", { id: "lab-ledger" }, "Your ledger"),
    make("p", {}, "It holds your predictions, your design and its result."),
    saved,
    make("p", {},
      button("Export as a file", () => download(view.ledger, `${lab.replaceAll("_", "-")}-ledger.json`)),
      button("Import a file", () => file.click()), file,
      button("Start over", () => {
        if (!window.confirm("Begin anew? What is saved of this lab in this browser is removed.")) return;
        store.forget();
        state = {};
        changed = false;
        saved.textContent = "Nothing is saved yet: your first step will be.";
        say("");
        refresh().then(() => stage.focus());
      })),
    version);
};

// The build says whether it has Python for the browser.
const findRuntime = async () => {
  const answer = await fetch(new URL("runtime/manifest.json", import.meta.url));
  if (!answer.ok) throw new Error(`runtime/manifest.json: the server answers ${answer.status}`);
  return answer.json();
};

const arrive = async () => {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") {
    return begin([make("p", {}, "This browser cannot run the lab: it has no WebAssembly or no workers. A current Firefox, Chrome, Edge or Safari can.")]);
  }
  try {
    const manifest = await findRuntime();
    if (manifest.missing) {
      root.setAttribute("data-state", "missing");
      return begin([make("p", {}, `The lab does not run on this copy of the site: ${manifest.missing} It opens on your own machine instead, as said below.`)]);
    }
    const megabytes = Math.round(manifest.bytes / 1e6);
    root.setAttribute("data-state", "waiting");
    return begin([
      make("p", {}, `The lab loads ${megabytes} MB once: Python, and the package that computes every number. It asks no other host, and what you do stays in this browser.`),
    ], store.load().text ? "Continue the lab" : "Start the lab");
  } catch (error) {
    return fail("The lab could not be loaded.", error.message);
  }
};

new ResizeObserver(() => document.documentElement.style.setProperty("--mls-status", `${bar.offsetHeight}px`)).observe(bar);
arrive();
