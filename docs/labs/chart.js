// A line chart as SVG, drawn again when its box changes width so that its letters keep their size.
import { make, svg, table } from "./dom.js";

const EDGE = { left: 52, right: 18, top: 14, bottom: 44 };
const SPARK = { width: 104, height: 42, edge: 5 };
const DASHES = ["none", "7 4", "2 4", "9 3 2 3"];
const format = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 3 });
const heightFor = (width) => (width < 560 ? 236 : 300);

export const chart = (block, act, old) => {
  const picture = make("div", { class: "mls-lab-picture" }, make("div"));
  const place = reader(block, picture);
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    const box = { left: EDGE.left, right: width - EDGE.right, top: EDGE.top, bottom: heightFor(width) - EDGE.bottom };
    picture.firstElementChild.replaceWith(draw(block, width, box));
    place(box);
  }).observe(picture);
  return make("figure", { class: "mls-lab-chart" },
    picture,
    block.series.length > 1 ? legend(block.series) : null,
    make("figcaption", {}, block.caption),
    make("details", { open: Boolean(old?.node.querySelector("details").open) },
      make("summary", { "data-focus": `${block.id}:table` }, "Show this chart as a table"), table({ caption: `${block.y.label} by ${block.x.label}`, ...block.table })));
};

const legend = (series) => make("ul", { class: "mls-lab-legend" }, ...series.map((one, i) => make("li", {},
  svg("svg", { width: 34, height: 12, "aria-hidden": "true" }, line([[2, 6], [32, 6]], one, i)), one.name)));

// The first line is the reader's own; others without a tone stay in the background.
const tone = (one, i) => (one.tone === "plain" && i > 0 ? "other" : one.tone);
const line = (points, one, i) => svg("polyline", {
  points: points.map((point) => point.join(",")).join(" "),
  "stroke-dasharray": DASHES[i % DASHES.length],
  "data-tone": tone(one, i),
});

const tenth = (value) => Math.round(10 * value) / 10;
const scales = ({ x, y, series }, { left, right, top, bottom }) => {
  const scale = x.scale === "log2" ? Math.log2 : (value) => value;
  const all = [...x.ticks, ...series.flatMap((one) => one.points.map(([at]) => at))].map(scale);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return {
    x: (value) => tenth(left + (high === low ? 0.5 : (scale(value) - low) / (high - low)) * (right - left)),
    y: (value) => tenth(bottom - ((value - y.min) / (y.max - y.min)) * (bottom - top)),
  };
};

const draw = (block, width, box) => {
  const { left, right, top, bottom } = box;
  const { x, y } = scales(block, box);
  const height = bottom + EDGE.bottom;
  const text = (content, at, attributes = {}) => svg("text", { x: at[0], y: at[1], ...attributes }, content);
  // Labels of ticks that would touch are left out, every second one first.
  let every = 1;
  while ((right - left) / (block.x.ticks.length / every) < 38) every *= 2;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": block.alt },
    ...ticks(block.y).flatMap((value) => [
      svg("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
      text(format(value), [left - 8, y(value) + 4], { class: "tick", "text-anchor": "end" }),
    ]),
    ...block.x.ticks.filter((_, i) => i % every === 0).map((value) => text(format(value), [x(value), bottom + 18], { class: "tick", "text-anchor": "middle" })),
    text(block.x.label, [(left + right) / 2, height - 6], { class: "axis", "text-anchor": "middle" }),
    text(block.y.label, [0, 0], { class: "axis", "text-anchor": "middle", transform: `translate(13 ${(bottom + top) / 2}) rotate(-90)` }),
    block.rule && svg("line", { class: "rule", x1: left, x2: right, y1: y(block.rule.y), y2: y(block.rule.y) }),
    ...block.series.map((one, i) => svg("g", {},
      line(one.points.map(([a, b]) => [x(a), y(b)]), one, i),
      ...one.points.map(([a, b]) => svg("circle", { cx: x(a), cy: y(b), r: 3, "data-tone": tone(one, i) })))),
    block.rule && text(block.rule.label, [right, y(block.rule.y) - 7], { class: "tick halo", "text-anchor": "end" }),
    ...(block.marker ? mark(block, x(block.marker.x), y(block.marker.y), box, text) : []));
};

// The lines and the marker alone, for the bar at the bottom of a small screen.
export const spark = (block) => {
  const { width, height, edge } = SPARK;
  const { x, y } = scales(block, { left: edge, right: width - edge, top: edge, bottom: height - edge });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": block.alt },
    svg("path", { class: "grid", d: `M1 ${edge}V${height - 1}H${width}`, fill: "none" }),
    block.rule && svg("line", { class: "rule", x1: edge, x2: width - edge, y1: y(block.rule.y), y2: y(block.rule.y) }),
    line(block.series[0].points.map(([a, b]) => [x(a), y(b)]), block.series[0], 0),
    block.marker && svg("circle", { class: "marker", cx: x(block.marker.x), cy: y(block.marker.y), r: 4 }));
};

// A falling line leaves room above to the right and below to the left; a rising one, the opposite. Below the
// lowest values are the labels of the ticks.
const mark = ({ marker, series: [{ points }] }, x, y, { left, right, bottom }, text) => {
  const rises = points.length > 1 && points[points.length - 1][1] > points[0][1];
  const before = rises ? x > left + 60 : x > right - 60;
  const above = y > bottom - 26 || (rises === before && y > 40);
  return [
    svg("circle", { class: "marker", cx: x, cy: y, r: 7 }),
    text(marker.label, [before ? x - 11 : x + 11, above ? y - 11 : y + 22], { class: "marker-label halo", "text-anchor": before ? "end" : "start" }),
  ];
};

// Reads values off the chart: under the pointer, or with the arrow keys. An invisible range input over the
// chart gives it the keys, the focus and a spoken value. Returns a function that takes the chart's area.
const reader = (block, picture) => {
  const { head: [, ...names], rows } = block.table;
  const places = [...new Set(block.series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  const tip = make("div", { class: "mls-lab-tip", "aria-hidden": "true", hidden: true });
  const hair = make("div", { class: "mls-lab-hair", hidden: true });
  const input = make("input", {
    type: "range", min: 0, max: places.length - 1, class: "mls-lab-cursor", "aria-label": `Values in the chart, by ${block.x.label}`,
    "data-focus": `${block.id}:cursor`,
  });
  let x = null;
  const nearest = (distance) => places.reduce((best, place, i) => (distance(place) < distance(places[best]) ? i : best), 0);
  const move = (i) => {
    input.value = i;
    const title = `${block.x.label}: ${rows[i][0]}`;
    const pairs = names.map((name, k) => [name, rows[i][k + 1]]).filter(([, value]) => value !== "–").map(([name, value]) => [name, `${value}${block.y.unit}`]);
    input.setAttribute("aria-valuetext", [title, ...pairs.map((pair) => pair.join(" "))].join(", "));
    tip.replaceChildren(make("b", {}, title), ...pairs.map(([name, value]) => make("span", {}, `${name} `, make("b", {}, value))));
  };
  const show = () => {
    const [at, width] = [x(places[Number(input.value)]), picture.clientWidth];
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
  move(nearest((place) => Math.abs(place - (block.marker?.x ?? places[0]))));
  picture.append(hair, input, tip);
  return (box) => {
    ({ x } = scales(block, box));
    hair.style.top = `${box.top}px`;
    hair.style.height = `${box.bottom - box.top}px`;
    if (!tip.hidden) show();
  };
};

document.addEventListener("pointerdown", ({ target }) => document.querySelectorAll(".mls-lab-picture").forEach((picture) => {
  if (!picture.contains(target)) picture.querySelectorAll(":is(.mls-lab-tip, .mls-lab-hair)").forEach((one) => { one.hidden = true; });
}));

const ticks = ({ min, max }) => {
  const rough = (max - min) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max + step * 1e-9; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
};
