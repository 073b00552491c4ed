// A line chart, drawn by Observable Plot again when its box changes width so that its letters keep their size.
import { make, svg, table } from "./dom.js";
import { load } from "./plot.js";

const EDGE = { left: 52, right: 18, top: 14, bottom: 44 };
const SPARK = { width: 104, height: 42, edge: 5 };
const DASHES = ["none", "7 4", "2 4", "9 3 2 3"];
const ROOM = 38; // pixels that the label of a tick takes
const format = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 3 });
const heightFor = (width) => (width < 560 ? 236 : 300);

let Plot = null;
// Has to have happened before anything is drawn.
export const ready = async () => { Plot = await load(); };

export const chart = (block, act, old) => {
  const picture = make("div", { class: "mls-lab-picture" }, make("div"));
  const place = reader(block, picture);
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    const made = draw(block, width);
    picture.firstElementChild.replaceWith(made);
    place(made.scale("x").apply, heightFor(width));
  }).observe(picture);
  return make("figure", { class: "mls-lab-chart" },
    picture,
    block.series.length > 1 ? legend(block.series) : null,
    make("figcaption", {}, block.caption),
    make("details", { open: Boolean(old?.node.querySelector("details").open) },
      make("summary", { "data-focus": `${block.id}:table` }, "Show this chart as a table"), table({ caption: `${block.y.label} by ${block.x.label}`, ...block.table })));
};

const legend = (series) => make("ul", { class: "mls-lab-legend" }, ...series.map((one, i) => make("li", {},
  svg("svg", { width: 34, height: 12, "aria-hidden": "true" }, svg("line", { x1: 2, x2: 32, y1: 6, y2: 6, stroke: tone(one, i), "stroke-width": 2.5, "stroke-dasharray": DASHES[i % DASHES.length] })), one.name)));

// The first line is the reader's own; others without a tone stay in the background.
const TONES = { plain: "var(--accent)", other: "var(--muted)", good: "var(--good)", warn: "var(--warn)", bad: "var(--bad)" };
const tone = (one, i) => TONES[one.tone === "plain" && i > 0 ? "other" : one.tone];

const places = ({ x, series }) => [...x.ticks, ...series.flatMap((one) => one.points.map(([at]) => at))];
const scaleX = (block) => ({ type: block.x.scale === "log2" ? "log" : "linear", base: 2, domain: [Math.min(...places(block)), Math.max(...places(block))] });
const scaleY = ({ y }) => ({ domain: [y.min, y.max] });
const line = (one, i) => Plot.line(one.points, { stroke: tone(one, i), strokeWidth: 2.5, strokeDasharray: DASHES[i % DASHES.length], className: "mls-line" });
const rule = (block) => Plot.ruleY(block.rule ? [block.rule.y] : [], { stroke: "var(--warn)", strokeWidth: 1.5, strokeDasharray: "4 4" });
const circle = (block, r) => Plot.dot(block.marker ? [block.marker] : [], { x: "x", y: "y", r, stroke: "var(--text)", strokeWidth: 2.5, fill: "none", className: "mls-marker" });
const HALO = { stroke: "var(--bg)", strokeWidth: 4, paintOrder: "stroke", fill: "var(--text)" };

// The picture is one thing to a screen reader, with the words of the lab.
const plotted = (block, options) => {
  const made = Plot.plot({ ariaLabel: block.alt, style: { background: "none", overflow: "visible" }, ...options });
  made.querySelectorAll("[aria-label]").forEach((part) => part.removeAttribute("aria-label"));
  made.setAttribute("role", "img");
  return made;
};

const draw = (block, width) => {
  // Labels of ticks that would touch are left out, every second one first.
  let every = 1;
  while ((width - EDGE.left - EDGE.right) / (block.x.ticks.length / every) < ROOM) every *= 2;
  const axis = { labelArrow: "none", labelAnchor: "center", tickFormat: format, tickSize: 0 };
  return plotted(block, {
    width,
    height: heightFor(width),
    marginLeft: EDGE.left,
    marginRight: EDGE.right,
    marginTop: EDGE.top,
    marginBottom: EDGE.bottom,
    x: { ...axis, ...scaleX(block), ticks: block.x.ticks.filter((_, i) => i % every === 0), label: block.x.label },
    y: { ...axis, ...scaleY(block), ticks: 5, grid: true, label: block.y.label },
    marks: [
      rule(block),
      ...block.series.map(line),
      ...block.series.map((one, i) => Plot.dot(one.points, { r: 3, fill: tone(one, i), className: "mls-point" })),
      Plot.text(block.rule ? [block.rule] : [], { ...HALO, y: "y", text: "label", frameAnchor: "right", textAnchor: "end", dy: -10 }),
      circle(block, 7),
      ...(block.marker ? [name(block, width)] : []),
    ],
  });
};

// The lines and the marker alone, for the bar at the bottom of a small screen.
export const spark = (block) => {
  const { width, height, edge } = SPARK;
  return plotted(block, {
    width,
    height,
    margin: edge,
    axis: null,
    x: scaleX(block),
    y: scaleY(block),
    marks: [Plot.frame({ anchor: "left", stroke: "var(--line)" }), Plot.frame({ anchor: "bottom", stroke: "var(--line)" }), rule(block), line(block.series[0], 0), circle(block, 4)],
  });
};

// A falling line leaves room above to the right and below to the left; a rising one, the opposite. Below the
// lowest values are the labels of the ticks.
const name = (block, width) => {
  const { marker, series: [{ points }] } = block;
  const scale = block.x.scale === "log2" ? Math.log2 : (value) => value;
  const [low, high] = scaleX(block).domain.map(scale);
  const x = EDGE.left + ((scale(marker.x) - low) / (high - low || 1)) * (width - EDGE.left - EDGE.right);
  const y = (marker.y - block.y.min) / (block.y.max - block.y.min);
  const rises = points.length > 1 && points[points.length - 1][1] > points[0][1];
  const before = rises ? x > EDGE.left + 60 : x > width - EDGE.right - 60;
  const above = y < 0.12 || (rises === before && y < 0.88);
  return Plot.text([marker], { ...HALO, x: "x", y: "y", text: "label", fontWeight: 650, textAnchor: before ? "end" : "start", dx: before ? -11 : 11, dy: above ? -15 : 17 });
};

// Reads values off the chart: under the pointer, or with the arrow keys. An invisible range input over the
// chart gives it the keys, the focus and a spoken value. Returns a function that takes the scale
// and the height of the chart.
const reader = (block, picture) => {
  const { head: [, ...names], rows } = block.table;
  const steps = [...new Set(block.series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  const tip = make("div", { class: "mls-lab-tip", "aria-hidden": "true", hidden: true });
  const hair = make("div", { class: "mls-lab-hair", hidden: true });
  const input = make("input", {
    type: "range", min: 0, max: steps.length - 1, class: "mls-lab-cursor", "aria-label": `Values in the chart, by ${block.x.label}`,
    "data-focus": `${block.id}:cursor`,
  });
  let x = null;
  const nearest = (distance) => steps.reduce((best, place, i) => (distance(place) < distance(steps[best]) ? i : best), 0);
  const move = (i) => {
    input.value = i;
    const title = `${block.x.label}: ${rows[i][0]}`;
    const pairs = names.map((name, k) => [name, rows[i][k + 1]]).filter(([, value]) => value !== "–").map(([name, value]) => [name, `${value}${block.y.unit}`]);
    input.setAttribute("aria-valuetext", [title, ...pairs.map((pair) => pair.join(" "))].join(", "));
    tip.replaceChildren(make("b", {}, title), ...pairs.map(([name, value]) => make("span", {}, `${name} `, make("b", {}, value))));
  };
  const show = () => {
    const [at, width] = [x(steps[Number(input.value)]), picture.clientWidth];
    tip.hidden = hair.hidden = false;
    hair.style.left = `${at}px`;
    const left = at > width / 2 ? at - tip.offsetWidth - 10 : at + 10;
    tip.style.left = `${Math.max(0, Math.min(left, width - tip.offsetWidth))}px`;
  };
  const hide = () => { tip.hidden = hair.hidden = true; };
  const point = ({ clientX }) => {
    move(nearest((place) => Math.abs(picture.getBoundingClientRect().left + x(place) - clientX)));
    show();
  };
  for (const kind of ["pointermove", "pointerdown"]) picture.addEventListener(kind, point);
  // A finger leaves when it is lifted; its values stay until the next touch elsewhere.
  picture.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && document.activeElement !== input && hide());
  input.addEventListener("input", () => { move(Number(input.value)); show(); });
  input.addEventListener("focus", show);
  input.addEventListener("blur", hide);
  input.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  move(nearest((place) => Math.abs(place - (block.marker?.x ?? steps[0]))));
  picture.append(hair, input, tip);
  return (scale, height) => {
    x = scale;
    hair.style.top = `${EDGE.top}px`;
    hair.style.height = `${height - EDGE.top - EDGE.bottom}px`;
    if (!tip.hidden) show();
  };
};

document.addEventListener("pointerdown", ({ target }) => document.querySelectorAll(".mls-lab-picture").forEach((picture) => {
  if (!picture.contains(target)) picture.querySelectorAll(":is(.mls-lab-tip, .mls-lab-hair)").forEach((one) => { one.hidden = true; });
}));
