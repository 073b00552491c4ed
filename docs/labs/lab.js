// A lab page: asks the package, in a worker, what to show for what the reader did, and shows it.
import { drawing } from "./blocks.js";
import { ready as charts, spark } from "./chart.js";
import { make, sign } from "./dom.js";
import { download, keeper } from "./ledger.js";
import { findRuntime, keepOffline, loading, megabytes, open, size } from "./python.js";

const root = document.querySelector("[data-lab]");
const lab = root.dataset.lab;
const store = keeper(lab);
const SILENCE = 900;
const KEY_READINGS = 3;

const button = (words, press, first) => {
  const made = make("button", { type: "button", class: `mls-button${first ? " mls-first" : ""}` }, words);
  made.addEventListener("click", press);
  return made;
};
const start = make("div", { class: "mls-lab-start" });
const stage = make("div", { class: "mls-lab-stage", tabindex: -1 });
const heard = make("p", { class: "visually-hidden", role: "status" });
const notice = make("div", { class: "mls-notice", role: "alert", hidden: true });
const saved = make("p", { role: "status" });
const version = make("p", { class: "mls-hint" });
const mini = make("div", { class: "mls-mini", hidden: true });
const status = make("dl");
const bar = make("div", { class: "mls-status", role: "group", "aria-label": "Status of the lab" }, notice, mini, status);
let state = {};
let accepted = {};
let view = null;
let worker = null;
let busy = false;
let again = false;
let changed = false;
let rival = false;
let told = 0;
let news = [];
let unsaved = [];

// A notice that something is not saved stays until it is saved. The same words are not announced twice.
const say = (...words) => {
  const content = words.length ? words : unsaved;
  const text = content.map((one) => one.textContent ?? one).join("");
  notice.hidden = !text;
  if (notice.textContent !== text) notice.replaceChildren(...content);
};

const draw = drawing(stage, {
  value: (id, fallback) => (id in state ? state[id] : fallback),
  choose: (id, value) => {
    state = { ...state, [id]: value };
    changed = true;
    say();
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
      return fail("The lab stopped at an unexpected error.", answer.broken);
    }
    if (answer.refused && !again) {
      // The last change is undone. If the very first answer is refused, there is nothing to show.
      if (view === null) {
        busy = false;
        return fail("The lab could not start.", answer.refused);
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
  watch();
  peek();
  clearTimeout(told);
  // Only when the reader pauses, and only the last value of each reading.
  told = setTimeout(() => {
    if (news.length) heard.textContent = [...new Map(news.map((text) => [text.split(":")[0], text])).values()].join("; ");
    news = [];
  }, SILENCE);
};

// Where there is no room for two columns, the bar repeats the chart and the first readings of the bench
// on the screen, so that moving a slider has a visible effect.
const visible = new Set();
const eye = new IntersectionObserver((entries) => {
  entries.forEach(({ isIntersecting, target }) => (isIntersecting ? visible.add(target) : visible.delete(target)));
  peek();
}, { rootMargin: "-25% 0px" });
const watch = () => stage.querySelectorAll(".mls-bench").forEach((bench) => eye.observe(bench));
const peek = () => {
  const bench = [...visible].filter((one) => one.isConnected).pop();
  const blocks = bench ? view.blocks.filter(({ id }) => bench.querySelector(`[data-block="${CSS.escape(id)}"]`)) : [];
  const of = (type) => blocks.filter((block) => block.type === type);
  mini.hidden = !bench;
  mini.replaceChildren(
    ...of("chart").map(spark),
    make("dl", {}, ...of("readouts").flatMap(({ items }) => items.slice(0, KEY_READINGS)).map(({ label, value, unit, tone }) => make("div", { "data-tone": tone },
      make("dt", {}, label), make("dd", {}, sign(tone), `${value}${unit ? ` ${unit}` : ""}`)))),
    ...of("alert").slice(0, 1).map(({ title, tone }) => make("p", { "data-tone": tone }, sign(tone), title)));
};

const keep = () => {
  if (rival) return;
  const { error } = store.save(view.ledger);
  unsaved = error ? [`Not saved: this browser refused (${error}). Export the ledger as a file to keep it.`] : [];
  saved.textContent = unsaved[0] ?? "Saved in this browser.";
  saved.classList.toggle("mls-bad", Boolean(error));
  say();
};

// Two tabs would overwrite each other's ledger, so this one stops saving until the reader has chosen.
store.watch(() => {
  if (!view) return;
  rival = true;
  const settle = (load) => async () => {
    rival = false;
    unsaved = [];
    say();
    if (load) {
      state = {};
      changed = false;
      await restore();
      await refresh();
    } else keep();
    stage.focus({ preventScroll: true });
  };
  unsaved = [
    "Another tab changed this lab's saved ledger, so this tab no longer saves. ",
    button("Use the other tab's ledger", settle(true)), " ",
    button("Save this tab's ledger", settle(false)),
  ];
  saved.textContent = "Not saved: another tab changed the saved ledger.";
  say();
});

const fail = (what, detail, advice = "Try again.") => {
  worker?.close();
  worker = null;
  view = null;
  root.setAttribute("data-state", "failed");
  begin([
    make("div", { class: "mls-alert", "data-tone": "bad", role: "alert" }, make("strong", {}, what), make("p", { class: "mls-detail" }, detail),
      make("p", {}, `${advice} Everything saved in this browser is still there. If the lab fails again, `,
        make("a", { href: "#without" }, "run it on your own machine"), ".")),
  ], "Try again");
  start.querySelector("button")?.focus();
};

const unloaded = (detail) => fail("The lab could not be loaded.", detail, "Check your connection, then try again.");

// Shown until the lab runs: words, and a button if it can start.
const begin = (content, label) => {
  const go = label && button(label, () => run(go), true);
  start.replaceChildren(...content, ...(label ? [make("p", {}, go)] : []));
  root.replaceChildren(start);
};

const run = async (go) => {
  if (go.getAttribute("aria-disabled")) return null;
  const progress = loading("the lab");
  go.setAttribute("aria-disabled", "true");
  go.textContent = "Loading";
  start.append(progress.node);
  root.setAttribute("data-state", "loading");
  let manifest;
  try {
    manifest = await findRuntime();
    await keepOffline();
    worker = open();
  } catch (error) {
    return unloaded(error.message);
  }
  const first = performance.now();
  const ready = await worker.ask("start", { name: lab, manifest }, progress.hear);
  if (ready.broken) return unloaded(ready.broken);
  try {
    await charts();
  } catch (error) {
    return unloaded(error.message);
  }
  const seconds = ((performance.now() - first) / 1000).toFixed(1);
  version.textContent = `Python ${ready.value}, ready after ${seconds} s, from ${manifest.wheels.join(" and ")}.`;
  state = {};
  accepted = {};
  changed = false;
  rival = false;
  unsaved = [];
  say();
  const restored = await restore();
  root.replaceChildren(stage, panel(), heard, bar);
  await refresh();
  return view && (restored ? arriveAt(store.place() ?? view.act) : stage.focus({ preventScroll: true }));
};

const heading = (act) => stage.querySelector(`h2[data-block="${CSS.escape(act)}"]`);
const arriveAt = (act) => {
  const target = heading(act) ?? heading(view.act);
  target.tabIndex = -1;
  target.focus({ preventScroll: true });
  target.scrollIntoView();
};

// The act that fills the screen when the reader leaves is where "continue" leads.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "hidden" || !view || rival) return;
  const above = [...stage.querySelectorAll("h2")].filter((one) => one.getBoundingClientRect().top < innerHeight / 2);
  if (above.length) store.mark(above.pop().dataset.block);
});

// Takes the saved ledger; returns whether there was one that could be read.
const restore = async () => {
  const { text, error } = store.load();
  if (error) saved.textContent = `This browser does not let the page save anything (${error}). Export the ledger as a file to keep it.`;
  else if (!text) saved.textContent = "Nothing is saved yet. The lab saves after your first step.";
  if (!text) return false;
  const answer = await worker.ask("restore", { text });
  if (answer.value) {
    state = answer.value;
    saved.textContent = "Restored from this browser.";
    return true;
  }
  saved.textContent = "The lab starts from the beginning.";
  say(`The ledger saved in this browser cannot be read: ${answer.refused ?? answer.broken} The lab starts from the beginning.`);
  return false;
};

const panel = () => {
  const file = make("input", { type: "file", accept: ".json,application/json", class: "visually-hidden", tabindex: -1, "aria-label": "Ledger file" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    file.value = "";
    if (!chosen) return;
    const answer = await worker.ask("restore", { text: await chosen.text() });
    if (!answer.value) return say(`${chosen.name} was not imported: ${answer.refused ?? answer.broken}`);
    state = answer.value;
    changed = true;
    say();
    await refresh();
    saved.textContent = `${saved.textContent} Imported from ${chosen.name}.`;
  });
  return make("section", { class: "mls-ledger", "aria-labelledby": "lab-ledger" },
    make("h2", { id: "lab-ledger" }, "Your ledger"),
    make("p", {}, "It records your predictions, your design and its results."),
    saved,
    make("p", {},
      button("Export as a file", () => download(view.ledger, `${lab.replaceAll("_", "-")}-ledger.json`)),
      button("Import a file", () => file.click()), file,
      button("Start over", () => {
        if (!window.confirm("Start over? This deletes what this browser has saved for this lab.")) return;
        store.forget();
        state = {};
        changed = false;
        rival = false;
        unsaved = [];
        saved.textContent = "Nothing is saved yet. The lab saves after your first step.";
        say();
        refresh().then(() => stage.focus());
      })),
    version);
};

const arrive = async () => {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") {
    return begin([make("p", {}, "This browser cannot run the lab because it lacks WebAssembly or workers. Use a current Firefox, Chrome, Edge or Safari.")]);
  }
  try {
    const manifest = await findRuntime();
    if (manifest.missing) {
      root.setAttribute("data-state", "missing");
      return begin([make("p", {}, `The lab does not run on this copy of the site: ${manifest.missing} You can run it on your own machine instead, as explained below.`)]);
    }
    root.setAttribute("data-state", "waiting");
    return begin([
      make("p", {}, `The lab downloads ${megabytes(size(manifest))} MB once: Python and the package that computes every number. It contacts no other host, and your work stays in this browser.`),
    ], store.load().text ? "Continue the lab" : "Start the lab");
  } catch (error) {
    return unloaded(error.message);
  }
};

new ResizeObserver(() => document.documentElement.style.setProperty("--mls-status", `${bar.offsetHeight}px`)).observe(bar);
arrive();
