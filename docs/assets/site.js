// What both renderers' pages do beyond reading: sorting and filtering tables, keys for callouts.
"use strict";
(() => {
  const value = (cell) => {
    const text = (cell?.dataset.sort ?? cell?.textContent ?? "").trim();
    if (text === "" || text === "–") return null;
    const number = parseFloat(text.replace(/[≈~,\s\u202f]/g, "").replace("−", "-"));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };
  // What is not known stays at the end, whichever way the rest is sorted.
  const compare = (a, b, way) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return ((a > b) - (a < b)) * way;
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "mls-sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
        rows.sort((a, b) => compare(a[0], b[0], down ? -1 : 1));
        body.append(...rows.map((row) => row[1]));
      });
    });
  };

  const filterable = (table, box) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    label.className = "mls-filter";
    input.type = "search";
    count.setAttribute("aria-live", "polite");
    label.append("Filter", input, count);
    box.before(label);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      const rows = [...table.tBodies[0].rows];
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      });
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    });
  };

  // The corner above row names heads nothing, so it is no header.
  document.querySelectorAll("main thead th:empty").forEach((corner) => {
    corner.replaceWith(document.createElement("td"));
  });

  // A wide table scrolls in a box of its own, which the keyboard reaches too.
  document.querySelectorAll("main table").forEach((table, i) => {
    const box = document.createElement("div");
    box.className = "mls-scroll";
    table.before(box);
    box.append(table);
    const words = table.closest("figure")?.querySelector("figcaption") ?? table.caption;
    const mark = () => {
      const wide = box.scrollWidth > box.clientWidth;
      wide ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
      wide ? box.setAttribute("role", "region") : box.removeAttribute("role");
      box.setAttribute("aria-label", words?.textContent.trim() || `Table ${i + 1} of this page`);
      if (!wide) box.removeAttribute("aria-label");
    };
    new ResizeObserver(mark).observe(box);
    if (!table.matches(".mls-table") || !table.tBodies.length) return;
    sortable(table);
    if (table.tBodies[0].rows.length > 8 || "filter" in table.dataset) filterable(table, box);
  });

  // The numbers of code lines are links for the mouse; read aloud they would only disturb.
  document.querySelectorAll("main code.sourceCode a[href^='#']:empty").forEach((link) => {
    link.setAttribute("aria-hidden", "true");
    link.setAttribute("tabindex", "-1");
  });

  // A long line of code or a wide equation scrolls as well.
  document.querySelectorAll("main pre:not(.mermaid), main p:has(math[display=block])").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
  });

  // Quarto makes callout headers clickable but leaves them out of the keyboard's reach.
  document.querySelectorAll(".callout-header[data-bs-toggle]").forEach((header) => {
    header.setAttribute("role", "button");
    header.setAttribute("tabindex", "0");
    header.removeAttribute("aria-label");
    header.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      header.click();
    });
  });
})();
