// The questions of a lab page and its ledger. A prediction locks, and the page hides all below it until then.
import { make, sign } from "./dom.js";
import { ahead } from "./explorer.js";
import { download, keeper } from "./ledger.js";
import { findRuntime, loading, python, wasStopped } from "./python.js";

const NOTHING = "Nothing is saved yet. The lab saves after your first step.";

const button = (words, press, first) => {
  const made = make("button", { type: "button", class: `mls-button${first ? " mls-first" : ""}` }, words);
  made.addEventListener("click", press);
  return made;
};

// The options of a question, as the page has them: a name, its words, and the explanation that follows them.
const readOptions = (box) => [...box.querySelectorAll(":scope > ul > li")].map((item) => {
  const words = item.querySelector("[data-answer]");
  return { value: words.dataset.answer, words, explanation: [...item.children].slice(1) };
});

const picker = (id, options, prompt) => {
  const rows = options.map(({ value, words }) => {
    const radio = make("input", { type: "radio", name: id, id: `${id}-${value}` });
    const note = make("span", { class: "mls-option-note" });
    return { value, radio, note, node: make("div", { class: "mls-option" }, radio, make("label", { for: radio.id }, words, note)) };
  });
  return {
    node: make("fieldset", {}, make("legend", {}, ...prompt), ...rows.map((row) => row.node)),
    value: () => rows.find((row) => row.radio.checked)?.value ?? null,
    missing: "Choose an answer first.",
    // A locked answer and the right one are marked.
    show: ({ answer, right }, locked) => rows.forEach(({ value, radio, note, node }) => {
      const [chosen, correct] = [value === answer, value === right];
      radio.checked = chosen;
      radio.disabled = locked;
      const marked = locked && (chosen || correct);
      const words = [chosen && "your answer", correct && "right answer"].filter(Boolean).join(", ");
      note.replaceChildren(...(marked ? [sign(correct ? "good" : "bad"), words] : []));
      if (marked) node.dataset.tone = correct ? "good" : "bad";
      else delete node.dataset.tone;
    }),
  };
};

const entry = (id, { unit, low, high, tolerance }, prompt) => {
  const input = make("input", { type: "number", id: `${id}-number`, min: low, max: high, step: "any", inputmode: "decimal", "aria-describedby": `${id}-within` });
  return {
    node: make("div", {}, make("p", {}, make("label", { for: input.id }, ...prompt)), make("p", { class: "mls-estimate" }, input, ` ${unit}`),
      make("p", { id: `${id}-within`, class: "mls-hint" }, tolerance)),
    value: () => (input.valueAsNumber >= low && input.valueAsNumber <= high ? input.valueAsNumber : null),
    missing: `Enter a number from ${low} to ${high.toLocaleString("en-US")}.`,
    show: ({ answer }, locked) => {
      if (answer !== null) input.value = answer;
      else if (!locked) input.value = "";
      input.disabled = locked;
    },
  };
};

// Turns the words of a question into a form. Answering it calls `choose`.
const question = (box, declared, choose) => {
  const options = readOptions(box);
  const [first, ...rest] = box.children;
  const general = rest.filter((one) => one.tagName !== "UL"); // follows every answer
  const names = options.map((one) => one.value);
  if (JSON.stringify(names) !== JSON.stringify(declared.options ?? [])) throw new Error(`${box.id}: the page has other options than the course`);
  const form = declared.options ? picker(box.id, options, first.childNodes) : entry(box.id, declared, first.childNodes);
  const ask = make("p", { class: "mls-ask", role: "alert" });
  const send = button("", () => {
    const value = form.value();
    ask.textContent = value === null ? form.missing : "";
    if (value !== null) choose(box.id, value);
  }, true);
  const wait = make("div");
  const verdict = make("div", { class: "mls-verdict", tabindex: -1, hidden: true });
  const closed = make("p", { class: "mls-locked" }, "Answer the question to unlock the rest of the lab.");
  ["pointermove", "focusin"].forEach((hand) => box.addEventListener(hand, ahead, { once: true }));
  box.replaceChildren(form.node, make("p", {}, send), ask, wait, verdict, ...(declared.locks ? [closed] : []));
  box.dataset.ready = "";

  const explain = ({ answer, verdict: found, right, reply }, locked) => {
    const [own, best] = [answer, right].map((value) => options.find((one) => one.value === value));
    const correct = found === "right";
    const corrected = locked && !correct && best;
    verdict.dataset.tone = correct ? "good" : "bad";
    verdict.replaceChildren(
      make("p", {}, sign(correct ? "good" : "bad"), make("strong", {}, correct ? "Right." : "Not quite."), locked ? " Your answer is locked." : null),
      ...(reply ? [make("p", {}, reply)] : []), ...(own?.explanation ?? []),
      ...(corrected ? [make("p", { "data-tone": "good" }, sign("good"), make("strong", {}, "The right answer: "), best.words.textContent), ...best.explanation] : []),
      ...general);
  };
  return {
    id: box.id,
    wait,
    arrive: () => verdict.focus(),
    show: (judged) => {
      const answered = judged.verdict !== null;
      const locked = declared.locks && answered;
      form.show(judged, locked);
      send.textContent = answered ? "Change my answer" : declared.locks ? "Lock in my answer" : "Answer";
      send.hidden = locked;
      verdict.hidden = !answered;
      closed.hidden = answered;
      if (answered) {
        box.dataset.verdict = judged.verdict;
        explain(judged, locked);
      } else delete box.dataset.verdict;
    },
  };
};

export const lab = async (box, instruments) => {
  const name = box.dataset.lab;
  const [manifest, declared] = await Promise.all([findRuntime(), fetch(new URL("runtime/labs.json", import.meta.url)).then((answer) => answer.json())]);
  const { questions: asked } = declared[name];
  const store = keeper(name);
  const saved = make("p", { role: "status" });
  const notice = make("div", { class: "mls-notice", role: "alert", hidden: true });
  const status = make("dl");
  const bar = make("div", { class: "mls-status", role: "group", "aria-label": "Status of the lab" }, notice, status);
  const heading = document.querySelector("main h2");
  let [state, view, busy, again, rival] = [{}, null, false, false, false];
  let answered = null; // the question that was answered last
  let unsaved = [];

  // A notice that something is not saved stays until it is saved.
  const say = (...words) => {
    const content = words.length ? words : unsaved;
    notice.hidden = !content.length;
    notice.replaceChildren(...content);
  };
  const set = (values) => {
    state = { ...state, ...values };
    say();
    return refresh(true);
  };
  const questions = Object.keys(asked).map((id) => question(document.getElementById(id), asked[id], (key, value) => {
    answered = key;
    set({ [key]: value });
  }));
  // An instrument starts when it comes into view. Its own values are those of the ledger.
  const started = new Set();
  instruments.forEach((one) => one.listen((values) => set(values)));

  const show = () => {
    questions.forEach((one) => one.show(view.questions[one.id]));
    status.replaceChildren(...view.status.slice(1).map(({ label, value }) => make("div", {}, make("dt", {}, label), make("dd", {}, String(value)))));
    instruments.filter((one) => !started.has(one) && one.box.offsetParent).forEach((one) => {
      started.add(one);
      one.refresh(state);
    });
    if (answered) questions.find((one) => one.id === answered).arrive();
    answered = null;
  };

  const refresh = async (changed) => {
    again = true;
    if (busy) return;
    busy = true;
    box.dataset.state = "answering";
    const progress = loading("the lab");
    const slow = setTimeout(() => (questions.find((one) => one.id === answered)?.wait ?? box).append(progress.node), 200);
    try {
      const { ask } = await python(progress.hear);
      while (again) {
        again = false;
        const answer = await ask("view", { lab: name, state });
        if (again) continue;
        if (answer.refused) {
          say(`Not possible: ${answer.refused}`);
          continue;
        }
        view = answer.value;
        show();
        if (changed) keep();
      }
      box.dataset.state = "running";
    } catch (error) {
      again = wasStopped(error);
      box.dataset.state = "failed";
      if (!again) say(`This did not work: ${error.message} Answer again to try once more. Everything saved in this browser is still there.`);
    }
    clearTimeout(slow);
    progress.node.remove();
    busy = false;
    if (again) await refresh(changed);
  };

  const keep = () => {
    if (rival) return;
    const { error } = store.save(view.ledger);
    unsaved = error ? [`Not saved: this browser refused (${error}). Export the ledger as a file to keep it.`] : [];
    saved.textContent = unsaved[0] ?? "Saved in this browser.";
    saved.classList.toggle("mls-bad", Boolean(error));
    say();
  };

  // Takes another state: that of a ledger, or none.
  const replace = async (next, changed) => {
    state = next;
    started.clear();
    await refresh(changed);
  };

  // Takes the text of a ledger; reports why if it cannot be read.
  const restore = async (text, changed) => {
    const { ask } = await python(() => {});
    const answer = await ask("restore", { lab: name, text });
    if (answer.value) await replace(answer.value, changed);
    return answer.refused ?? null;
  };

  // Two tabs would overwrite each other's ledger, so this one stops saving until the reader has chosen.
  store.watch(() => {
    if (!view) return;
    rival = true;
    // The notice stays until the other ledger is here: an answer before that belongs to the one that goes.
    const settle = (take) => async () => {
      const { text } = store.load();
      if (take) await (text ? restore(text, false) : replace({}, false));
      rival = false;
      unsaved = [];
      say();
      if (!take) keep();
    };
    unsaved = [
      "Another tab changed this lab's saved ledger, so this tab no longer saves. ",
      button("Use the other tab's ledger", settle(true)), " ",
      button("Save this tab's ledger", settle(false)),
    ];
    saved.textContent = "Not saved: another tab changed the saved ledger.";
    say();
  });

  const file = make("input", { type: "file", accept: ".json,application/json", class: "visually-hidden", tabindex: -1, "aria-label": "Ledger file" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    file.value = "";
    if (!chosen) return;
    const refused = await restore(await chosen.text(), true);
    if (refused) say(`${chosen.name} was not imported: ${refused}`);
    else saved.textContent = `${saved.textContent} Imported from ${chosen.name}.`;
  });
  const startOver = async () => {
    if (!window.confirm("Start over? This deletes what this browser has saved for this lab.")) return;
    store.forget();
    [rival, unsaved] = [false, []];
    say();
    await replace({}, false);
    saved.textContent = NOTHING;
    heading.tabIndex = -1;
    heading.focus();
  };
  box.replaceChildren(
    make("p", {}, "It records your predictions, your design and its results."), saved,
    make("p", {},
      button("Export as a file", () => view && download(view.ledger, `${name.replaceAll("_", "-")}-ledger.json`)),
      button("Import a file", () => file.click()), file, button("Start over", startOver)));
  document.querySelector("main").append(bar);
  new ResizeObserver(() => document.documentElement.style.setProperty("--mls-status", `${bar.offsetHeight}px`)).observe(bar);

  questions.forEach((one) => one.show({ answer: null, verdict: null, right: null, reply: "" }));
  if (manifest.missing) return say(`The lab does not run on this copy of the site: ${manifest.missing}`);
  const { text, error } = store.load();
  saved.textContent = error ? `This browser does not let the page save anything (${error}). Export the ledger as a file to keep it.` : NOTHING;
  if (!text) return null;
  // There is a ledger, so Python has been here before.
  try {
    const refused = await restore(text, false);
    saved.textContent = refused ? "The lab starts from the beginning." : "Restored from this browser.";
    return refused && say(`The ledger saved in this browser cannot be read: ${refused} The lab starts from the beginning.`);
  } catch (fault) {
    return say(`The saved ledger could not be restored: ${fault.message} Reload the page to try again.`);
  }
};
