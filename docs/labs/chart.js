// A line chart as SVG, redrawn when its box changes width so that its letters keep their size.
import { make, svg, table } from "./dom.js";

const HEIGHT = 300;
const EDGE = { left: 52, right: 18, top: 14, bottom: 44 };
const DASHES = ["none", "7 4", "2 4", "9 3 2 3"];
const format = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 3 });

export const chart = (block) => {
  const picture = make("div", { class: "mls-lab-picture" });
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width && width !== drawn) picture.replaceChildren(draw(block, (drawn = width)));
  }).observe(picture);
  return make("figure", { class: "mls-lab-chart" },
    picture,
    block.series.length > 1 ? legend(block.series) : null,
    make("figcaption", {}, block.caption),
    make("details", {},
      make("summary", { "data-focus": `${block.id}:table` }, "The chart as a table"), table({ caption: `${block.y.label} by ${block.x.label}`, ...block.table })));
};

const legend = (series) => make("ul", { class: "mls-lab-legend" }, ...series.map((one, i) => make("li", {},
  svg("svg", { width: 34, height: 12, "aria-hidden": "true" }, line([[2, 6], [32, 6]], one, i)), one.name)));

const line = (points, one, i) => svg("polyline", {
  points: points.map((point) => point.join(",")).join(" "),
  "stroke-dasharray": DASHES[i % DASHES.length],
  "data-tone": one.tone ?? "plain",
});

const draw = (block, width) => {
  const scale = block.x.scale === "log2" ? Math.log2 : (x) => x;
  const xs = [...block.x.ticks, ...block.series.flatMap((one) => one.points.map(([x]) => x))].map(scale);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const right = width - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  const x = (value) => Math.round(10 * (EDGE.left + (high === low ? 0.5 : (scale(value) - low) / (high - low)) * (right - EDGE.left))) / 10;
  const y = (value) => Math.round(10 * (bottom - ((value - block.y.min) / (block.y.max - block.y.min)) * (bottom - EDGE.top))) / 10;
  const text = (content, at, attributes = {}) => svg("text", { x: at[0], y: at[1], ...attributes }, content);
  const marks = ticks(block.y);
  // Names of ticks that would touch are left out, every second first.
  let every = 1;
  while ((right - EDGE.left) / (block.x.ticks.length / every) < 38) every *= 2;
  return svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": block.alt },
    ...marks.flatMap((value) => [
      svg("line", { class: "grid", x1: EDGE.left, x2: right, y1: y(value), y2: y(value) }),
      text(format(value), [EDGE.left - 8, y(value) + 4], { class: "tick", "text-anchor": "end" }),
    ]),
    ...block.x.ticks.filter((_, i) => i % every === 0).map((value) => text(format(value), [x(value), bottom + 18], { class: "tick", "text-anchor": "middle" })),
    text(block.x.label, [(EDGE.left + right) / 2, HEIGHT - 6], { class: "axis", "text-anchor": "middle" }),
    text(block.y.label, [0, 0], { class: "axis", "text-anchor": "middle", transform: `translate(13 ${(bottom + EDGE.top) / 2}) rotate(-90)` }),
    block.rule && svg("line", { class: "rule", x1: EDGE.left, x2: right, y1: y(block.rule.y), y2: y(block.rule.y) }),
    ...block.series.map((one, i) => svg("g", {},
      line(one.points.map(([a, b]) => [x(a), y(b)]), one, i),
      ...one.points.map(([a, b]) => svg("circle", { cx: x(a), cy: y(b), r: 3, "data-tone": one.tone ?? "plain" })))),
    block.rule && text(block.rule.label, [right, y(block.rule.y) - 7], { class: "tick halo", "text-anchor": "end" }),
    ...(block.marker ? mark(block, x(block.marker.x), y(block.marker.y), [EDGE.left, right], text) : []));
};

// A line that falls leaves room above to the right and below to the left; one that rises, the others.
const mark = ({ marker, series: [{ points }] }, x, y, [left, right], text) => {
  const rises = points.length > 1 && points[points.length - 1][1] > points[0][1];
  const before = rises ? x > left + 60 : x > right - 60;
  const above = rises === before && y > 40;
  return [
    svg("circle", { class: "marker", cx: x, cy: y, r: 7 }),
    text(marker.label, [before ? x - 11 : x + 11, above ? y - 11 : y + 22], { class: "marker-label halo", "text-anchor": before ? "end" : "start" }),
  ];
};

const ticks = ({ min, max }) => {
  const rough = (max - min) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max + step * 1e-9; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
};
