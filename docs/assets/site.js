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

  // The roofline of the first page, for each of its devices: the numbers are in the page.
  const hero = document.querySelector("[data-mls-hero]");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  if (hero) {
    const states = JSON.parse(hero.dataset.mlsHero);
    const paths = [hero.querySelector(".roof"), hero.querySelector(".half")];
    const chips = hero.querySelector(".mls-chips");
    let shown = states[chips.querySelector("input:checked").value].lines;
    let frame = 0;
    const draw = (lines) => lines.forEach((p, i) => paths[i].setAttribute("d", `M${p[0]} ${p[1]}L${p[2]} ${p[3]}L${p[4]} ${p[5]}`));
    const move = (target) => {
      const from = shown;
      const begin = performance.now();
      const step = (now) => {
        const t = calm.matches ? 1 : Math.min(1, (now - begin) / 700);
        const ease = 1 - (1 - t) ** 3;
        shown = from.map((line, i) => line.map((value, j) => value + (target[i][j] - value) * ease));
        draw(shown);
        if (t < 1) frame = requestAnimationFrame(step);
      };
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(step);
    };
    chips.hidden = false;
    chips.addEventListener("change", (event) => {
      const state = states[event.target.value];
      move(state.lines);
      hero.querySelectorAll(".point").forEach((point, i) => {
        point.style.transform = `translate(${state.points[i][0]}px, ${state.points[i][1]}px)`;
      });
      hero.querySelectorAll("tbody tr").forEach((row, i) => {
        row.querySelectorAll("td").forEach((cell, j) => { cell.textContent = state.cells[i][j]; });
      });
      hero.querySelector("figcaption").textContent = state.words;
    });
  }

  // Cards one at a time. They turn by themselves until somebody pauses, chooses or asks for calm.
  document.querySelectorAll(".mls-carousel").forEach((track) => {
    const cards = [...track.children];
    const button = (words, press) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = words;
      made.addEventListener("click", press);
      return made;
    };
    const go = (i) => track.scrollTo({ left: cards[i].offsetLeft - cards[0].offsetLeft, behavior: calm.matches ? "auto" : "smooth" });
    const place = () => Math.round(track.scrollLeft / track.clientWidth);
    let turning = !calm.matches;
    let busy = false;
    let seen = false;
    const pause = button("", () => turn(!turning));
    const turn = (on) => {
      turning = on;
      pause.textContent = on ? "Pause" : "Play";
      track.setAttribute("aria-live", on ? "off" : "polite");
    };
    pause.className = "mls-pause";
    const tabs = cards.map((card, i) => button(card.getAttribute("aria-label"), () => { turn(false); go(i); }));
    const bar = document.createElement("div");
    bar.className = "mls-tabs";
    bar.append(pause, ...tabs);
    track.before(bar);
    turn(turning);
    track.setAttribute("aria-roledescription", "carousel");
    track.tabIndex = 0;
    cards.forEach((card) => card.setAttribute("aria-roledescription", "slide"));
    const mark = () => tabs.forEach((tab, i) => (i === place() ? tab.setAttribute("aria-current", "true") : tab.removeAttribute("aria-current")));
    mark();
    track.addEventListener("scroll", mark, { passive: true });
    track.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way || event.target !== track) return;
      event.preventDefault();
      turn(false);
      go(Math.max(0, Math.min(cards.length - 1, place() + way)));
    });
    // Reading a card, by mouse, finger or keyboard, holds it.
    ["pointerenter", "focusin"].forEach((name) => track.addEventListener(name, () => { busy = true; }));
    ["pointerleave", "focusout"].forEach((name) => track.addEventListener(name, () => { busy = false; }));
    track.addEventListener("touchstart", () => turn(false), { passive: true });
    calm.addEventListener("change", () => { if (calm.matches) turn(false); });
    new IntersectionObserver(([entry]) => { seen = entry.isIntersecting; }, { threshold: 0.6 }).observe(track);
    setInterval(() => { if (turning && seen && !busy && !document.hidden) go((place() + 1) % cards.length); }, 8000);
  });
})();
