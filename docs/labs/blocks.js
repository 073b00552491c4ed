// Draws the blocks of a lab's view. Only blocks that changed are drawn again.
import { chart } from "./chart.js";
import { make, sign, table } from "./dom.js";

const paragraphs = (texts) => texts.map((text) => make("p", {}, text));

const KINDS = {
  heading: (block) => make(`h${Math.min(4, Math.max(2, block.level))}`, {}, block.text),
  text: (block) => make("div", {}, ...paragraphs(block.paragraphs)),
  message: (block) => make("figure", { class: "mls-mail" },
    make("figcaption", {}, "From: ", make("strong", {}, block.from)), make("blockquote", {}, ...paragraphs(block.paragraphs))),
  locked: (block) => make("p", { class: "mls-locked" }, block.text),
  // Announced when it appears. While it stays, its numbers change silently.
  alert: (block, act, old) => make("div", { class: "mls-alert", "data-tone": block.tone, role: old ? null : block.tone === "info" ? "status" : "alert" },
    make("strong", {}, sign(block.tone), block.title), make("p", {}, block.text)),
  readouts: (block) => make("dl", { class: "mls-readouts" }, ...block.items.map((item) => make("div", { "data-tone": item.tone },
    make("dt", {}, item.label),
    make("dd", {}, sign(item.tone), make("b", {}, item.value), item.unit ? ` ${item.unit}` : null),
    item.hint ? make("dd", { class: "mls-hint" }, item.hint) : null))),
  table: (block) => table(block),
  chart,
  question: (block, act) => question(block, act),
  controls: (block, act) => controls(block, act),
  derivation: (block, act) => derivation(block, act),
};

const question = (block, act) => {
  const answered = block.verdict !== null && block.verdict !== undefined;
  const options = block.options.map((option, i) => {
    const id = `lab-${block.id}-${i}`;
    const chosen = option.value === block.selected;
    const right = option.value === block.right;
    const radio = make("input", { type: "radio", name: `lab-${block.id}`, id, value: i, checked: chosen, disabled: block.locked, "data-focus": id });
    const note = block.locked && (chosen || right)
      ? make("span", { class: "mls-option-note" }, sign(right ? "good" : "bad"), [chosen && "your answer", right && "right answer"].filter(Boolean).join(", "))
      : null;
    return make("div", { class: "mls-option", "data-tone": note && (right ? "good" : "bad") }, radio, make("label", { for: id }, option.label, note));
  });
  const ask = make("p", { class: "mls-ask", role: "alert" });
  const button = make("button", { type: "button", class: "mls-button mls-first", "data-focus": `${block.id}:answer` }, answered ? "Change my answer" : block.locks ? "Lock in my answer" : "Answer");
  button.addEventListener("click", () => {
    const chosen = options.findIndex((option) => option.querySelector("input").checked);
    if (chosen < 0) ask.textContent = "Choose an answer first.";
    else act.choose(block.id, block.options[chosen].value);
  });
  return make("div", { class: "mls-question" },
    make("fieldset", {}, make("legend", {}, block.prompt), ...options),
    block.locked ? null : make("p", {}, button), block.locked ? null : ask,
    answered ? verdict(block) : null);
};

// After a locked answer there is no second try, so a wrong one is followed by the right one and its reason.
const verdict = (block) => {
  const right = block.verdict === "right";
  const answer = block.options?.find((option) => option.value === block.right);
  return make("div", { class: "mls-verdict", "data-tone": right ? "good" : "bad", "data-arrive": true, tabindex: -1 },
    make("p", {}, sign(right ? "good" : "bad"), make("strong", {}, right ? "Right." : "Not quite."), block.locked ? " Your answer is locked." : null),
    make("p", {}, block.explanation),
    block.correction ? make("p", { "data-tone": "good" }, sign("good"), make("strong", {}, "The right answer: "), answer.label) : null,
    block.correction ? make("p", {}, block.correction) : null);
};

const words = (item, value) => `${typeof value === "number" ? value.toLocaleString("en-US") : value}${item.unit ? ` ${item.unit}` : ""}`;
const places = (item) => item.values ?? null;

const controls = (block, act) => make("div", { class: "mls-controls" }, ...block.items.map((item) => {
  const id = `lab-${item.id}`;
  const given = { id, "data-focus": id, "data-control": item.id, disabled: Boolean(item.disabled) };
  if (item.kind === "choice") {
    const select = make("select", given, ...item.options.map((option, i) => make("option", { value: i }, option.label)));
    select.addEventListener("change", () => act.choose(item.id, item.options[Number(select.value)].value));
    return make("div", { class: "mls-control" }, make("label", { for: id }, item.label), select);
  }
  const values = places(item);
  const range = values ? { min: 0, max: values.length - 1, step: 1 } : { min: item.min, max: item.max, step: item.step };
  const input = make("input", { type: "range", ...given, ...range });
  const output = make("output", { for: id });
  input.addEventListener("input", () => {
    const value = values ? values[Number(input.value)] : Number(input.value);
    say(input, output, item, value);
    act.choose(item.id, value);
  });
  return make("div", { class: "mls-control" }, make("label", { for: id }, item.label), output, input);
}));

const say = (input, output, item, value) => {
  output.textContent = words(item, value);
  input.setAttribute("aria-valuetext", words(item, value));
};

// The reader may have moved a control again while this answer was computed: the last value stays.
const setControls = (node, block, act) => block.items.forEach((item) => {
  const control = node.querySelector(`[data-control="${CSS.escape(item.id)}"]`);
  const value = act.value(item.id, item.value);
  const list = item.kind === "choice" ? item.options.map((option) => option.value) : places(item);
  control.value = list ? list.indexOf(value) : value;
  if (item.kind !== "choice") say(control, control.previousElementSibling, item, value);
});
const frame = (block) => JSON.stringify({ ...block, items: block.items.map((item) => ({ ...item, value: null })) });

const derivation = (block, act) => {
  const steps = block.steps.map((step) => make("li", {},
    make("code", {}, step.equation_text), make("code", {}, step.numbers_text),
    make("p", {}, "= ", make("strong", {}, step.value_text)),
    step.source ? make("p", { class: "mls-hint" }, `Source: ${step.source}`) : null));
  const details = make("details", { class: "mls-derivation", open: block.open },
    make("summary", { "data-focus": `${block.id}:summary` }, block.title), make("ol", {}, ...steps));
  details.addEventListener("toggle", () => {
    if (details.open !== act.value(block.id, block.open)) act.choose(block.id, details.open);
  });
  return details;
};

// Puts nodes into a parent in order. A node that stays is not moved, so that it keeps the focus.
const settle = (parent, nodes) => {
  const kept = new Set(nodes);
  [...parent.children].filter((node) => !kept.has(node)).forEach((node) => node.remove());
  let at = parent.firstElementChild;
  nodes.forEach((node) => {
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  });
};

// Controls and the instruments that follow them form a bench: two columns where there is room.
const BESIDE = new Set(["chart", "readouts", "alert"]);
const arranging = (box) => {
  const benches = new Map();
  return (places) => {
    const [top, found] = [[], []];
    let open = null;
    for (const { block, node } of places) {
      if (block.type === "controls") {
        if (!benches.has(block.id)) benches.set(block.id, { bench: make("div", { class: "mls-bench" }), column: make("div", { class: "mls-bench-column" }) });
        open = { ...benches.get(block.id), beside: [] };
        open.all = [node, open.column];
        found.push(open);
        top.push(open.bench);
      } else if (open && BESIDE.has(block.type)) open.beside.push(node);
      else if (open && block.type === "table") open.all.push(node);
      else {
        open = null;
        top.push(node);
      }
    }
    found.forEach(({ bench, column, beside, all }) => {
      settle(column, beside);
      settle(bench, all);
    });
    settle(box, top);
  };
};

// Draws views into a box; returns which readouts changed, for screen readers.
export const drawing = (box, act) => {
  const arrange = arranging(box);
  let shown = new Map();
  const place = (block) => {
    const old = shown.get(block.id);
    const text = JSON.stringify(block);
    if (old?.text === text && block.type !== "controls") return old;
    if (old && block.type === "controls" && block.type === old.block.type && frame(old.block) === frame(block)) {
      setControls(old.node, block, act);
      return { ...old, text, block };
    }
    if (!KINDS[block.type]) throw new Error(`this page cannot draw a block of the type ${block.type}`);
    const node = KINDS[block.type](block, act, old);
    node.dataset.block = block.id;
    if (block.type === "controls") setControls(node, block, act);
    return { node, text, block, fresh: true };
  };
  return (blocks) => {
    const active = box.contains(document.activeElement) ? document.activeElement : null;
    const [focus, from] = [active?.dataset.focus, active?.closest("[data-block]")?.dataset.block];
    const next = new Map(blocks.map((block) => [block.id, place(block)]));
    if (next.size !== blocks.length) throw new Error("two blocks of the lab have the same name");
    arrange([...next.values()]);
    const said = changes(shown, next);
    shown = next;
    if (active && !box.contains(document.activeElement)) land(box, focus, from);
    return said;
  };
};

// The focus goes to whatever replaced its place; after an answer, to the verdict.
const land = (box, focus, from) => {
  const block = box.querySelector(`[data-block="${CSS.escape(from ?? "")}"]`);
  const same = focus && box.querySelector(`[data-focus="${CSS.escape(focus)}"]:not(:disabled)`);
  const target = block?.querySelector("[data-arrive]") ?? same ?? block ?? box;
  if (!target.matches("button, input, select, summary, [tabindex]")) target.tabIndex = -1;
  target.focus();
};

const changes = (old, next) => [...next.values()].filter(({ block, fresh }) => block.type === "readouts" && fresh).flatMap(({ block }) => {
  const before = new Map((old.get(block.id)?.block.items ?? []).map((item) => [item.label, item.value]));
  return block.items.filter((item) => before.size && before.get(item.label) !== item.value)
    .map((item) => `${item.label}: ${item.value} ${item.unit ?? ""}`.trim());
});
