// Figures that a reader can change. The static figure stays until a control is touched; then the package
// itself, in a worker, computes what is drawn in its place.
import { make, sign, table } from "./dom.js";
import { chart, load, numbers } from "./plot.js";
import { findRuntime, isRunning, loading, megabytes, python, remembered, size, stop, wasStopped } from "./python.js";

const SILENCE = 900;
const LONG = 1500; // milliseconds after which a block of code that runs is named as the reason to wait
const SHARE = 0.55; // of the window, that a chart may take from the controls that scroll beneath it
let count = 0;

// Address: #name?control=value&control=value
const MARK = /^#([\w-]+)\?(.*)$/;
const linked = (name) => {
  const found = MARK.exec(location.hash);
  return found && found[1] === name ? new URLSearchParams(found[2]) : null;
};

const words = (item, value) => (item.kind === "choice" ? item.options.find(([one]) => one === value)[1]
  : `${value.toLocaleString("en-US")}${item.unit ? ` ${item.unit}` : ""}`);
const choices = (item) => (item.kind === "choice" ? item.options.map(([value]) => value) : item.values);

const control = (item, id, change) => {
  const label = make("label", { for: id }, item.label);
  if (item.kind === "text") {
    const input = make("textarea", { id, rows: 8, spellcheck: "false", autocomplete: "off" });
    input.addEventListener("input", () => change(input.value));
    return { node: make("div", { class: "mls-control mls-wide" }, label, input), set: (value) => { if (input.value !== value) input.value = value; } };
  }
  if (item.kind === "choice") {
    const input = make("select", { id }, ...item.options.map(([value, text]) => make("option", { value }, text)));
    input.addEventListener("change", () => change(input.value));
    return { node: make("div", { class: "mls-control" }, label, input), set: (value) => { input.value = value; } };
  }
  const input = make("input", { id, type: "range", min: 0, max: item.values.length - 1, step: 1 });
  const output = make("output", { for: id });
  const say = (value) => {
    output.textContent = words(item, value);
    input.setAttribute("aria-valuetext", words(item, value));
  };
  input.addEventListener("input", () => {
    say(item.values[Number(input.value)]);
    change(item.values[Number(input.value)]);
  });
  return {
    node: make("div", { class: "mls-control" }, label, output, input),
    set: (value) => {
      input.value = item.values.indexOf(value);
      say(value);
    },
  };
};

// Starts before the first change: at the first sign of a hand, or near an explorer if there is nothing
// to download. If it fails, the first change tries again and says why.
export const ahead = () => {
  if (!navigator.connection?.saveData) Promise.all([python(() => {}), load()]).catch(() => {});
};
const NEAR = "400px";
const comingNear = (boxes, act) => {
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    act();
  }, { rootMargin: NEAR });
  boxes.forEach((box) => watch.observe(box));
};

// What the build computed: the answers for the first setting and for each with one other value. They are
// there before Python is, and every other setting is left to Python.
const KEPT = new Map();
const prepared = (name) => {
  if (!KEPT.has(name)) {
    const address = new URL(`runtime/answers-${name.replace("/", "-")}.json`, import.meta.url);
    KEPT.set(name, fetch(address).then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({})));
  }
  return KEPT.get(name);
};

// One step of a derivation, or one input, with its source as a link.
const source = (text, address) => {
  if (!text) return null;
  return make("span", { class: "mls-hint" }, " Source: ", address ? make("a", { href: address }, text) : text);
};
const cited = (text, addresses) => {
  if (!text) return null;
  const parts = addresses.flatMap((address) => {
    const [before, ...after] = text.split(address);
    text = after.join(address);
    return [before, make("a", { href: address }, address.replace(/^https?:\/\//, ""))];
  });
  return make("p", { class: "mls-hint" }, ...parts, text);
};
const derived = ({ label, steps, inputs }) => [
  make("p", { class: "mls-derived-title" }, make("strong", {}, `How "${label}" is computed`)),
  make("ol", {}, ...steps.map((step) => make("li", {},
    make("code", {}, `${step.name} = ${step.equation}`),
    make("code", {}, `= ${step.numbers}`),
    make("code", {}, `= ${step.value}`),
    step.omitted ? make("p", { class: "mls-hint" }, `Left out, since ${step.omitted}`) : null,
    step.meaning ? make("p", {}, step.meaning) : null,
    cited(step.source, step.addresses)))),
  inputs.length ? make("p", {}, make("strong", {}, "Numbers that go in")) : null,
  make("ul", {}, ...inputs.map((item) => make("li", {},
    make("code", {}, `${item.from} = ${item.value}`), item.estimated ? " (an estimate)" : null,
    source(item.source, item.address)))),
];

const start = (box, name, { title, job, controls }) => {
  const prefix = `explore-${(count += 1)}`;
  const given = Object.fromEntries(controls.map((item) => [item.id, item.value]));
  let state = { ...given };
  let [busy, again, told, loads] = [false, false, 0, ""];
  let ask = null; // Python, once it is there
  let open = null; // which number's derivation is open
  let listener = null; // a lab, which keeps the setting in its ledger

  // Of the static part, the figure gives way; the code that drew it stays.
  const still = make("div", { class: "mls-still" }, ...box.childNodes);
  const outputs = still.querySelectorAll(".cell-output, .quarto-float");
  const hide = (hidden) => !box.matches(".mls-keep") && (outputs.length ? outputs : [still]).forEach((one) => { one.hidden = hidden; });
  const charts = make("div", { class: "mls-charts" });
  const sentence = make("p", { class: "mls-sentence" });
  const readings = make("dl", { class: "mls-readings" });
  const alerts = make("div", { class: "mls-alerts" });
  const panel = make("div", { class: "mls-derived", id: `${prefix}-derived`, role: "region", tabindex: 0, hidden: true });
  const data = make("details", { class: "mls-data" }, make("summary", {}, "Show the numbers as a table"));
  // The chart is above the controls, and in sight while they move. What changes its height is below, so
  // that no control moves away under a finger.
  const live = make("div", { class: "mls-live mls-seen", hidden: true }, charts);
  const facts = make("div", { class: "mls-live", hidden: true }, sentence, readings, alerts, panel, data);
  new ResizeObserver(() => live.classList.toggle("mls-sticks", live.offsetHeight < SHARE * innerHeight)).observe(live);
  const heard = make("p", { class: "visually-hidden", role: "status" });
  const notice = make("p", { class: "mls-bad", role: "alert", hidden: true });
  const wait = make("div");
  const hint = make("p", { class: "mls-hint" });
  const reset = make("button", { type: "button", class: "mls-button", hidden: true }, "Start over");
  const form = make("form", { class: "mls-explore", "aria-label": title },
    make("p", { class: "mls-explore-title" }, title), make("p", { class: "mls-hint mls-job" }, job), make("div", { class: "mls-explore-controls" }), notice, wait, make("div", { class: "mls-explore-foot" }, hint, reset), heard);
  form.addEventListener("submit", (event) => event.preventDefault());
  // A form that scrolls under a pointer at rest is no sign.
  ["pointermove", "pointerdown", "focusin"].forEach((sign) => form.addEventListener(sign, ahead, { once: true }));

  const made = controls.map((item, i) => control(item, `${prefix}-${i}`, (value) => {
    state = { ...state, [item.id]: value };
    keep({ [item.id]: value });
    refresh();
  }));
  form.querySelector(".mls-explore-controls").append(...made.map((one) => one.node));
  const set = () => controls.forEach((item, i) => made[i].set(state[item.id]));

  const keep = (change) => {
    if (listener) return listener(change);
    const changed = controls.filter((item) => item.kind !== "text" && state[item.id] !== item.value);
    const text = new URLSearchParams(changed.map((item) => [item.id, state[item.id]]));
    return history.replaceState(history.state, "", `#${name}?${text}`);
  };

  // Of another setting than the controls have.
  const stale = (old) => [live, facts].forEach((one) => one.classList.toggle("mls-stale", old));

  const say = (text) => {
    notice.textContent = text;
    notice.hidden = !text;
  };

  const failed = (error) => say(`This did not work: ${error.message}. Change a control to try again.`);

  const waiting = () => {
    if (!isRunning()) return;
    const button = make("button", { type: "button", class: "mls-button" }, "Stop it");
    button.addEventListener("click", stop);
    notice.replaceChildren("A block of code on this page is still running. ", button);
    notice.hidden = false;
  };

  const refresh = async () => {
    again = true;
    if (busy) return;
    busy = true;
    box.dataset.state = "answering";
    try {
      while (again) {
        again = false;
        const asked = state;
        const begin = performance.now();
        const known = await atHand(asked);
        const answer = known ?? await computed(asked);
        const Plot = await load();
        if (again) continue;
        invite();
        if (answer.refused ?? answer.needs) {
          say(answer.refused ?? `This needs ${answer.needs}.`);
          // The results of another text would be those of another model.
          if (controls.some((item) => item.kind === "text")) live.hidden = facts.hidden = true;
          stale(true);
        } else {
          say("");
          draw(Plot, answer.value, asked);
        }
        box.dataset.milliseconds = (performance.now() - begin).toFixed(1);
        if (known) ahead();
        if (open !== null && !answer.refused) await derive(open);
      }
      box.dataset.state = "running";
    } catch (error) {
      again = wasStopped(error);
      box.dataset.state = "failed";
      if (!again) failed(error);
    }
    busy = false;
    if (again) refresh();
  };

  // The answer of the build to a setting, while Python is still on its way.
  const atHand = async (asked) => {
    if (ask) return undefined;
    const changed = controls.filter((item) => asked[item.id] !== item.value);
    if (changed.length > 1) return undefined;
    return (await prepared(name))[changed.map((item) => `${item.id}=${asked[item.id]}`).join()];
  };

  const computed = async (asked) => {
    await ready();
    const patience = setTimeout(waiting, LONG);
    return ask("explore", { name, state: asked }).finally(() => clearTimeout(patience));
  };

  const ready = async () => {
    const progress = loading("the explorer");
    const show = setTimeout(() => wait.replaceChildren(progress.node));
    try {
      const [started] = await Promise.all([python(progress.hear), load()]);
      ({ ask } = started);
    } finally {
      clearTimeout(show);
      wait.replaceChildren();
    }
  };

  const invite = () => {
    const held = controls.some((item) => item.kind === "text") ? "all of your setting but the text" : "your setting";
    const keeper = listener ? "Your ledger" : "The address of this page";
    hint.textContent = `Click a number to see how it is computed. ${keeper} holds ${held}.`;
    reset.hidden = false;
  };

  const draw = (Plot, view, asked) => {
    box.dataset.shown = JSON.stringify({ state: asked, view });
    live.hidden = facts.hidden = false;
    stale(false);
    hide(true);
    const width = charts.clientWidth; // read before anything changes, which would cost a layout
    charts.replaceChildren(...view.charts.map((block) => chart(Plot, block, view.sentence, width)));
    sentence.textContent = view.sentence;
    sentence.dataset.tone = view.tone;
    const opened = data.open;
    data.replaceChildren(data.firstElementChild, ...(opened ? view.charts.map((block) => table(numbers(block))) : []));
    data.ontoggle = () => data.open && data.childElementCount === 1 && data.append(...view.charts.map((block) => table(numbers(block))));
    // Buttons stay while their labels do, so that the focus stays where it is.
    const labels = view.readings.map((item) => item.label).join("|");
    if (readings.dataset.labels !== labels) {
      readings.dataset.labels = labels;
      readings.replaceChildren(...view.readings.map(reading));
      close();
    }
    view.readings.forEach((item, i) => {
      const button = buttons()[i];
      const place = button.closest("div");
      place.dataset.tone = item.tone;
      button.replaceChildren(...[sign(item.tone), item.text].filter(Boolean));
      button.setAttribute("aria-label", `${item.label}, ${item.text}: show how it is computed`);
      place.querySelector(".mls-hint").textContent = item.hint;
    });
    // An alert is announced when it appears. While it stays, its numbers change silently.
    const before = [...alerts.children].map((one) => one.dataset.name);
    alerts.replaceChildren(...view.alerts.map((one) => make("div", {
      class: "mls-alert", "data-name": one.name, "data-tone": one.tone, role: before.includes(one.name) ? null : "status",
    }, make("strong", {}, sign(one.tone), one.title), make("p", {}, one.text))));
    controls.forEach((item, i) => { made[i].node.querySelector("input, select, textarea").disabled = view.unused.includes(item.id); });
    clearTimeout(told);
    told = setTimeout(() => { heard.textContent = view.sentence; }, SILENCE);
  };

  const reading = (item, i) => {
    const button = make("button", { type: "button", class: "mls-figure", "aria-expanded": "false", "aria-controls": panel.id });
    button.addEventListener("click", () => (open === i ? close() : derive(i, true).catch(failed)));
    return make("div", {}, make("dt", {}, item.label), make("dd", {}, button), make("dd", { class: "mls-hint" }));
  };

  const buttons = () => [...readings.children].map((one) => one.querySelector("button"));
  const close = () => {
    open = null;
    panel.hidden = true;
    buttons().forEach((button) => button.setAttribute("aria-expanded", "false"));
  };
  const derive = async (i, focus) => {
    await ready();
    const answer = await ask("derive", { name, state, index: i });
    if (!answer.value) return say(answer.refused ?? `This needs ${answer.needs}.`);
    open = i;
    panel.hidden = false;
    panel.setAttribute("aria-label", `Derivation of ${answer.value.label}: ${title}`);
    panel.replaceChildren(...derived(answer.value).filter(Boolean));
    buttons().forEach((button, at) => button.setAttribute("aria-expanded", `${at === i}`));
    return focus && panel.focus({ preventScroll: true });
  };
  panel.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || open === null) return;
    const button = buttons()[open];
    close();
    button.focus();
  });

  reset.addEventListener("click", () => {
    state = { ...given };
    set();
    say("");
    close();
    if (listener) {
      listener(state);
      refresh();
      return;
    }
    live.hidden = facts.hidden = true;
    hide(false);
    history.replaceState(history.state, "", location.pathname + location.search);
    made[0].node.querySelector("input, select, textarea").focus();
    reset.hidden = true;
    hint.textContent = ask ? "" : loads;
  });

  // A link that somebody shared: what it does not name, or names wrongly, stays as it is.
  const arrive = () => {
    const found = linked(name);
    if (!found) return;
    const wrong = [];
    found.forEach((text, id) => {
      const item = controls.find((one) => one.id === id);
      const value = item && choices(item)?.find((one) => String(one) === text);
      if (value === undefined) wrong.push(`${id} = ${text}`);
      else state = { ...state, [id]: value };
    });
    set();
    box.scrollIntoView({ block: "start" });
    refresh().then(() => wrong.length && say(`The link has settings that do not exist here: ${wrong.join(", ")}.`));
  };

  set();
  box.replaceChildren(still, live, form, facts);
  findRuntime().then(async (manifest) => {
    loads = manifest.missing ?? (await remembered(manifest) ? "" : `The first change loads Python and the package, ${megabytes(size(manifest))} MB, once.`);
    if (box.dataset.state === "waiting") hint.textContent = loads;
    if (manifest.missing) form.querySelectorAll("input, select, textarea").forEach((one) => { one.disabled = true; });
  }).catch(() => {});
  addEventListener("hashchange", arrive);
  box.dataset.state = "waiting";
  arrive();
  // A lab hears of each change of the setting, and sets it when a ledger is restored.
  return {
    box,
    listen: (hear) => { listener = hear; },
    refresh: (values) => {
      state = { ...given, ...Object.fromEntries(Object.entries(values).filter(([id]) => id in given)) };
      set();
      return refresh();
    },
  };
};

// A chart in sight stays below the page's header, where that stays in sight as well.
const clearHeader = () => {
  const header = document.querySelector("#quarto-header");
  const stays = header && ["fixed", "sticky"].includes(getComputedStyle(header).position);
  document.body.style.setProperty("--mls-top", `${stays ? header.offsetHeight : 0}px`);
};

export const explorers = async (boxes) => {
  if (!boxes.length) return [];
  clearHeader();
  addEventListener("resize", clearHeader);
  const answer = await fetch(new URL("runtime/explorers.json", import.meta.url));
  if (!answer.ok) return []; // the static figures stay
  const declared = await answer.json();
  const started = [...boxes].filter((box) => declared[box.dataset.name]).map((box) => start(box, box.dataset.name, declared[box.dataset.name]));
  comingNear(boxes, () => started.forEach(({ box }) => prepared(box.dataset.name)));
  comingNear(boxes, () => findRuntime().then(remembered).then((kept) => kept && ahead()).catch(() => {}));
  return started;
};
