// Makes elements. A lab's words are only ever set as text.
export const make = (name, attributes = {}, ...content) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...content.filter((one) => one !== null && one !== undefined));
  return node;
};

// A table that is too wide scrolls in its own box, which the keyboard can reach.
export const scrolling = (content, label) => {
  const box = make("div", { class: "mls-scroll" }, content);
  new ResizeObserver(() => {
    const wide = box.scrollWidth > box.clientWidth;
    for (const [key, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", label]]) {
      wide ? box.setAttribute(key, value) : box.removeAttribute(key);
    }
  }).observe(box);
  return box;
};

const NUMBER = /^[≈−–-]?[\d.,]*\s?(%|×|[A-Za-z/]{0,8})$/;

let tables = 0;

// The caption is outside the box, so that it does not scroll away with a wide table.
export const table = ({ caption, head, rows }) => {
  const kinds = head.map((_, i) => (i > 0 && rows.some((row) => NUMBER.test(row[i])) ? "mls-number" : null));
  const cells = (row) => row.map((cell, i) => (i === 0
    ? make("th", { scope: "row", class: cell.length < 16 ? "mls-short" : null }, cell)
    : make("td", { class: kinds[i] }, cell)));
  const id = `lab-table-${(tables += 1)}`;
  return make("div", { class: "mls-lab-table" },
    make("p", { id, class: "mls-caption" }, caption),
    scrolling(make("table", { "aria-labelledby": id },
      make("thead", {}, make("tr", {}, ...head.map((cell, i) => make("th", { scope: "col", class: kinds[i] }, cell)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row))))), caption));
};

const SIGNS = { good: "✓", warn: "!", bad: "✗" };
const SPOKEN = { good: "good: ", warn: "caution: ", bad: "bad: " };
// A tone is a color, a sign for readers who cannot see colors, and a word for screen readers.
export const sign = (tone) => (SIGNS[tone]
  ? make("span", { class: "mls-sign" }, make("span", { "aria-hidden": "true" }, SIGNS[tone]), make("span", { class: "visually-hidden" }, SPOKEN[tone]))
  : null);
