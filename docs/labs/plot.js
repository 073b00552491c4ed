// Draws the charts of explorers with Observable Plot, which the site serves itself.
import { make } from "./dom.js";

const runtime = (name) => new URL(`runtime/${name}`, import.meta.url).href;

// Plot takes D3 from the page.
let library = null;
export const load = () => {
  library ??= import(runtime("d3.min.js")).then(() => import(runtime("plot.umd.min.js"))).then(() => globalThis.Plot).catch((error) => {
    library = null;
    throw new Error(`the chart library: ${error.message}`);
  });
  return library;
};

const COLORS = [0, 1, 2, 3, 4, 5].map((i) => `var(--mls-color-${i})`);
// Parts whose color has a meaning; the others take the colors in order.
const NAMED = { free: "var(--line)", bubble: "var(--muted)", "does not fit": "var(--important)" };
const QUIET = "var(--muted)";
const HEIGHT = 300;
const MARGIN = { marginLeft: 56, marginRight: 24, marginTop: 26, marginBottom: 44 };

const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const written = (value) => (value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(0) : short.format(value));

// Ticks of a logarithmic axis: powers of ten, and 2 and 5 between them where there are few.
const decades = (low, high) => {
  const found = [];
  const all = Math.log10(high / low) > 2.5 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    found.push(...all.map((factor) => factor * 10 ** power).filter((value) => value >= low * 0.999 && value <= high * 1.001));
  }
  return found;
};

const scale = ({ label, log, zero }, values) => {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const common = { label, labelAnchor: "center", labelArrow: "none", tickFormat: written };
  if (log) return { ...common, type: "log", domain: low < high ? [low, high] : [low / 2, high * 2], ticks: decades(low, high) };
  return { ...common, domain: [zero ? Math.min(0, low) : low, high === low ? high + 1 : high], ticks: 6, nice: zero };
};

// What all charts share. A chart is one picture to a screen reader: its words are beside it.
const common = (width, spoken) => ({
  width,
  height: HEIGHT,
  ...MARGIN,
  ariaLabel: spoken,
  style: { background: "none", color: "inherit", fontFamily: "inherit", fontSize: "13px", overflow: "visible" },
});

const legend = (names, colors) => ({ legend: true, domain: names, range: colors });

const lines = (Plot, { x, y, series, marks, rules }, options) => {
  const of = (axis, k) => [
    ...series.flatMap((one) => one.points.map((point) => point[k])),
    ...marks.map((one) => one[axis]),
    ...rules.filter((one) => one.of === axis).map((one) => one.value),
  ];
  const names = series.map((one) => one.name);
  const rows = (one) => one.points.map(([a, b]) => ({ x: a, y: b, name: one.name }));
  const [xs, ys] = [of("x", 0), of("y", 1)];
  const right = (value) => value > (x.log ? Math.sqrt(Math.min(...xs) * Math.max(...xs)) : (Math.min(...xs) + Math.max(...xs)) / 2);
  return Plot.plot({
    ...options,
    grid: true,
    x: { ...scale(x, xs), grid: false },
    y: { ...scale(y, ys), labelAnchor: "top" },
    color: { ...legend(names, COLORS), legend: names.length > 1 },
    marks: [
      ...rules.map((one) => (one.of === "y"
        ? Plot.ruleY([one.value], { stroke: QUIET, strokeDasharray: "4 4" })
        : Plot.ruleX([one.value], { stroke: QUIET, strokeDasharray: "4 4" }))),
      ...series.map((one) => Plot.line(rows(one), { x: "x", y: "y", stroke: "name", strokeWidth: 2.2, strokeDasharray: one.dashed ? "6 4" : null })),
      ...series.filter((one) => !one.dashed && one.points.length < 30).map((one) => Plot.dot(rows(one), { x: "x", y: "y", fill: "name", r: 3 })),
      // After the lines, so that none strikes a label out.
      ...rules.map((one) => Plot.text([one], {
        ...(one.of === "y" ? { y: "value", frameAnchor: "right", dy: -8, textAnchor: "end" } : { x: "value", frameAnchor: "top", dx: 5, dy: 6, textAnchor: "start" }),
        text: "label", fill: "currentColor", stroke: "var(--bg)", strokeWidth: 4, paintOrder: "stroke",
      })),
      Plot.dot(marks, { x: "x", y: "y", r: 7, stroke: "currentColor", strokeWidth: 2.4, fill: "none" }),
      ...marks.map((one) => Plot.text([one], {
        x: "x", y: "y", text: "label", fontWeight: 650, fill: "currentColor", stroke: "var(--bg)", strokeWidth: 4,
        paintOrder: "stroke", textAnchor: right(one.x) ? "end" : "start", dx: right(one.x) ? -11 : 11, dy: -11,
      })),
    ],
  });
};

const bars = (Plot, { x, parts, rules }, options) => {
  const names = [...new Set(parts.map((one) => one.part))];
  const rows = [...new Set(parts.map((one) => one.bar))];
  const sums = rows.map((row) => parts.filter((one) => one.bar === row).reduce((sum, one) => sum + one.value, 0));
  const alone = rows.length === 1;
  return Plot.plot({
    ...options,
    height: MARGIN.marginTop + MARGIN.marginBottom + (alone ? 52 : 30 * rows.length),
    marginLeft: alone ? 16 : 14 + 7.5 * Math.max(...rows.map((row) => row.length)),
    x: { ...scale(x, [0, ...sums, ...rules.map((one) => one.value)]), grid: true },
    y: { label: null, domain: rows, padding: 0.25, axis: alone ? null : "left" },
    color: legend(names, names.map((name, i) => NAMED[name] ?? COLORS[i % COLORS.length])),
    marks: [
      Plot.barX(parts, Plot.stackX({ x: "value", y: "bar", fill: "part" })),
      Plot.ruleX(rules, { x: "value", stroke: "currentColor", strokeWidth: 2, strokeDasharray: "4 4" }),
      Plot.text(rules, { x: "value", text: "label", frameAnchor: "top", dy: -12, fill: "currentColor" }),
    ],
  });
};

const gantt = (Plot, { x, blocks }, options) => {
  const kinds = [...new Set(blocks.map((one) => one.kind))];
  const rows = [...new Set(blocks.map((one) => one.row))];
  const end = Math.max(...blocks.map((one) => one.end));
  const room = (options.width - 80) / end;
  return Plot.plot({
    ...options,
    height: MARGIN.marginTop + MARGIN.marginBottom + 34 * rows.length,
    marginLeft: 64,
    marginRight: 10,
    x: { ...scale(x, [0, end]), nice: false },
    y: { label: null, domain: rows, padding: 0.15 },
    color: legend(kinds, COLORS),
    marks: [
      Plot.barX(blocks, { x1: "start", x2: "end", y: "row", fill: "kind", insetLeft: 0.5, insetRight: 0.5 }),
      Plot.text(blocks.filter((one) => (one.end - one.start) * room > 14), {
        x: (one) => (one.start + one.end) / 2, y: "row", text: "text", fill: "var(--bg)", fontSize: 11,
      }),
    ],
  });
};

const cells = (Plot, { x, y, cells: all }, options) => {
  const side = Math.max(...all.map((one) => one.y));
  return Plot.plot({
    ...options,
    height: MARGIN.marginTop + MARGIN.marginBottom + 32 * side,
    marginTop: 44,
    marginBottom: 10,
    x: { label: x.label, labelAnchor: "center", labelArrow: "none", axis: "top", tickSize: 0 },
    y: { label: y.label, labelAnchor: "top", labelArrow: "none", tickSize: 0 },
    marks: [
      Plot.cell(all, { x: "x", y: "y", fill: COLORS[0], fillOpacity: "value", stroke: "var(--line)", inset: 1 }),
      Plot.text(all, { x: "x", y: "y", text: "text", fill: (one) => (one.value > 0.5 ? "var(--bg)" : "currentColor"), fontWeight: 600 }),
    ],
    opacity: { type: "linear", domain: [0, 1], range: [0, 1] },
  });
};

const KINDS = { lines, bars, gantt, cells };

// Reads values off a line chart: under the pointer, or with the arrow keys. An invisible range input over
// the chart gives it the keys, the focus and a spoken value. Returns a function that takes the picture.
const reader = (block, box) => {
  const { head: [label, ...names], rows } = numbers(block);
  const steps = placesOf(block.series);
  const tip = make("div", { class: "mls-tip", "aria-hidden": "true", hidden: true });
  const hair = make("div", { class: "mls-hair", hidden: true });
  const input = make("input", { type: "range", min: 0, max: steps.length - 1, class: "mls-cursor", "aria-label": `Values in the chart, by ${inside(label)}` });
  let [x, drawing] = [null, null];
  const move = (i) => {
    input.value = i;
    const [place, ...values] = rows[i];
    const pairs = names.map((name, k) => [name, values[k]]).filter(([, value]) => value !== "–");
    const title = `${label}: ${place}`;
    input.setAttribute("aria-valuetext", [title, ...pairs.map((pair) => pair.join(" "))].join(", "));
    tip.replaceChildren(make("b", {}, title), ...pairs.map(([name, value]) => make("span", {}, `${name} `, make("b", {}, value))));
  };
  const show = () => {
    const [at, width] = [x(steps[Number(input.value)]), box.clientWidth];
    const top = drawing.getBoundingClientRect().top - box.getBoundingClientRect().top;
    hair.style.top = tip.style.top = `${top + MARGIN.marginTop}px`;
    tip.hidden = hair.hidden = false;
    hair.style.left = `${at}px`;
    const left = at > width / 2 ? at - tip.offsetWidth - 10 : at + 10;
    tip.style.left = `${Math.max(0, Math.min(left, width - tip.offsetWidth))}px`;
  };
  const hide = () => { tip.hidden = hair.hidden = true; };
  const nearest = (distance) => steps.reduce((best, place, i) => (distance(place) < distance(steps[best]) ? i : best), 0);
  const point = ({ clientX }) => {
    move(nearest((place) => Math.abs(box.getBoundingClientRect().left + x(place) - clientX)));
    show();
  };
  for (const kind of ["pointermove", "pointerdown"]) box.addEventListener(kind, point);
  // A finger leaves when it is lifted; its values stay until the next touch elsewhere.
  box.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && document.activeElement !== input && hide());
  input.addEventListener("input", () => { move(Number(input.value)); show(); });
  input.addEventListener("focus", show);
  input.addEventListener("blur", hide);
  input.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  move(nearest((place) => Math.abs(place - (block.marks[0]?.x ?? steps[0]))));
  return (made, picture) => {
    [x, drawing] = [made.scale("x").apply, picture];
    hair.style.height = `${HEIGHT - MARGIN.marginTop - MARGIN.marginBottom}px`;
    box.append(hair, input, tip);
    if (!tip.hidden) show();
  };
};

document.addEventListener("pointerdown", ({ target }) => document.querySelectorAll(".mls-plot").forEach((box) => {
  if (!box.contains(target)) box.querySelectorAll(":is(.mls-tip, .mls-hair)").forEach((one) => { one.hidden = true; });
}));

// Returns an element that redraws itself when its box changes width, so that its letters keep their size.
// One that is drawn before it is on the page, at a known width, costs the page one layout instead of two.
export const chart = (Plot, block, spoken, known) => {
  const box = make("div", { class: "mls-plot" });
  const readable = block.kind === "lines" ? reader(block, box) : () => {};
  let drawn = 0;
  const draw = (width) => {
    if (!width || width === drawn) return;
    drawn = width;
    const made = KINDS[block.kind](Plot, block, common(width, spoken));
    const picture = made.matches("svg") ? made : made.querySelector(":scope > svg");
    picture.setAttribute("role", "img");
    picture.querySelectorAll("[aria-label]").forEach((part) => part.removeAttribute("aria-label"));
    box.replaceChildren(made);
    readable(made, picture);
  };
  draw(known);
  new ResizeObserver(([entry]) => draw(Math.round(entry.contentRect.width))).observe(box);
  return box;
};

// A label in the middle of a sentence; its units keep their capitals.
const inside = (label) => (/^[A-Z][a-z ]/.test(label) ? label[0].toLowerCase() + label.slice(1) : label);

const placesOf = (series) => [...new Set(series.flatMap((one) => one.points.map(([at]) => at)))].sort((a, b) => a - b);

// The numbers of a chart as a table: head and rows of texts.
const exact = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
export const numbers = ({ kind, x, y, series, parts, blocks, cells: all }) => {
  if (kind === "lines") {
    const places = placesOf(series);
    const found = series.map((one) => new Map(one.points));
    return {
      caption: `${y.label}, by ${inside(x.label)}`,
      head: [x.label, ...series.map((one) => one.name)],
      rows: places.map((at) => [exact(at), ...found.map((one) => (one.has(at) ? exact(one.get(at)) : "–"))]),
    };
  }
  if (kind === "bars") {
    const names = [...new Set(parts.map((one) => one.part))];
    const rows = [...new Set(parts.map((one) => one.bar))];
    const value = (row, name) => parts.find((one) => one.bar === row && one.part === name);
    return { caption: x.label, head: ["Bar", ...names], rows: rows.map((row) => [row, ...names.map((name) => (value(row, name) ? exact(value(row, name).value) : "–"))]) };
  }
  if (kind === "gantt") {
    return { caption: x.label, head: ["Stage", "Pass", "Microbatch", "Start", "End"], rows: blocks.map((one) => [one.row, one.kind, one.text, exact(one.start), exact(one.end)]) };
  }
  return { caption: `Ranks whose values are summed, by ${inside(x.label)}`, head: [y.label, ...all.filter((one) => one.y === 1).map((one) => `${one.x}`)], rows: [...new Set(all.map((one) => one.y))].map((row) => [`${row}`, ...all.filter((one) => one.y === row).map((one) => one.text)]) };
};
