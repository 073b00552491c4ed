// What pages do beyond reading, with either renderer: landmarks, sortable tables, keys for callouts.
"use strict";
(() => {
  const address = document.currentScript.src;
  const main = document.getElementById("quarto-document-content");
  const make = (name, properties = {}, ...content) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...content);
    return made;
  };

  // The first Tab stop leads past the navigation.
  if (main) {
    main.tabIndex = -1;
    document.getElementById("quarto-header")?.prepend(make("a", { className: "mls-skip", href: `#${main.id}` }, "Skip to the content"));
  }

  // Quarto gives its landmarks no names, so a screen reader would list five of "navigation".
  Object.entries({
    "#quarto-header > nav.navbar": "Site",
    "nav.quarto-secondary-nav": "This page",
    "#quarto-sidebar": "Section",
    ".page-navigation": "Previous and next page",
    "nav.quarto-secondary-nav .quarto-page-breadcrumbs": "Breadcrumbs, short",
    "#title-block-header .quarto-page-breadcrumbs": "Breadcrumbs",
  }).forEach(([place, name]) => {
    document.querySelectorAll(place).forEach((landmark) => landmark.setAttribute("aria-label", name));
  });

  // Quarto calls the headings that fold its sidebar landmarks; they are buttons.
  document.querySelectorAll("a[role=navigation]").forEach((link) => link.setAttribute("role", "button"));

  // A link to something inside a folded callout opens it.
  const reveal = () => {
    const target = document.querySelector(":target");
    target?.closest("details:not([open])")?.setAttribute("open", "");
    const folded = target?.closest(".callout-collapse:not(.show)");
    folded?.classList.add("show");
    const header = folded?.previousElementSibling;
    header?.classList.remove("collapsed");
    header?.setAttribute("aria-expanded", "true");
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);

  // Fonts and wrapped tables move the text after the browser has jumped to an anchor.
  addEventListener("load", async () => {
    await document.fonts.ready;
    reveal();
  });

  // Where the margin has no room for the table of contents, it is folded below the title.
  const contents = document.querySelector("#TOC > ul, #toc-box > ul");
  const title = document.getElementById("title-block-header");
  if (contents && title) {
    const list = contents.cloneNode(true);
    list.querySelectorAll("[id]").forEach((item) => item.removeAttribute("id"));
    list.querySelectorAll("a").forEach((link) => link.classList.remove("nav-link", "active"));
    title.after(make("details", { className: "mls-toc" }, make("summary", {}, "On this page"), list));
  }

  // Long names may break after a dot or an underscore, or before a capital, and nowhere else.
  document.querySelectorAll("main :is(td, th) code").forEach((code) => {
    if (code.childElementCount || code.textContent.length < 12) return;
    const pieces = code.textContent.split(/(?<=[._/])|(?<=[a-z])(?=[A-Z])/);
    code.replaceChildren(...pieces.flatMap((piece) => [piece, make("wbr")]).slice(0, -1));
  });

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
      const button = make("button", { type: "button", className: "mls-sort" }, ...head.childNodes);
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
    const input = make("input", { type: "search" });
    const count = make("span", { ariaLive: "polite" });
    box.before(make("label", { className: "mls-filter" }, "Filter", input, count));
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

  // The matrix of what is supported: the page has its answers to one question, and all as data.
  const supported = (place) => {
    const form = place.querySelector("form");
    const table = place.querySelector("table");
    const shown = place.querySelector(".mls-cell");
    const data = JSON.parse(place.querySelector("script").textContent);
    const heads = [...table.tHead.rows[0].cells].slice(1);
    const rows = [...table.tBodies[0].rows];
    const key = shown.textContent;
    const unpacked = data.matrix.map((question, q) => question.map((text, p) => {
      const usual = data.usual[q][p].split(",");
      return text.split(";").map((row) => {
        const own = row.split(",");
        return usual.map((cell, c) => data.cells[parseInt(own[c] || cell, 36)]);
      });
    }));
    const fill = () => {
      const q = data.questions.indexOf(form.question.value);
      const p = data.precisions.indexOf(form.precision.value);
      rows.forEach((row, r) => heads.forEach((_, c) => {
        const [mark, words] = unpacked[q][p < 0 ? data.defaults[c] : p][r][c];
        const cell = row.cells[c + 1];
        cell.textContent = mark;
        cell.title = words;
        cell.setAttribute("aria-label", words);
      }));
      const question = form.question.value;
      table.caption.textContent = `${question[0].toUpperCase()}${question.slice(1)} in ${
        p < 0 ? "the default format of each device" : form.precision.value}. Numbers: the fewest devices.`;
      shown.textContent = key;
    };
    // One cell is a stop of the Tab key; the arrows lead to the others.
    let stop = null;
    const visit = (cell, focus) => {
      if (!cell?.matches("td") || !cell.title) return;
      stop?.removeAttribute("tabindex");
      stop = cell;
      stop.tabIndex = 0;
      if (!focus) return;
      cell.focus();
      const at = `${cell.parentNode.cells[0].textContent} on ${heads[cell.cellIndex - 1].textContent}`;
      shown.textContent = `${at}: ${cell.title}`;
    };
    const step = (cell, across, down) => {
      let [r, c] = [rows.indexOf(cell.parentNode), cell.cellIndex];
      do { r += down; c += across; } while (rows[r]?.hidden || heads[c - 1]?.hidden);
      return rows[r]?.cells[c];
    };
    const narrow = () => {
      // Words of one name, and commas between names.
      const wanted = (input) => input.value.toLowerCase().split(",").map((name) => name.trim()).filter(Boolean);
      const hit = (head, names) => {
        const text = `${head.textContent} ${head.dataset.tier}`.toLowerCase();
        return !names.length || names.some((name) => name.split(/\s+/).every((word) => text.includes(word)));
      };
      const [models, devices] = [wanted(form.models), wanted(form.devices)];
      rows.forEach((row) => { row.hidden = !hit(row.cells[0], models); });
      heads.forEach((head, c) => {
        head.hidden = !hit(head, devices);
        rows.forEach((row) => { row.cells[c + 1].hidden = head.hidden; });
      });
      const [row, column] = [rows.find((one) => !one.hidden), heads.findIndex((head) => !head.hidden)];
      shown.textContent = row && column >= 0 ? key : "Nothing in the catalog has such a name.";
      if (!stop || stop.hidden || stop.parentNode.hidden) visit(row?.cells[column + 1], false);
    };
    table.tBodies[0].addEventListener("click", (event) => visit(event.target, true));
    table.tBodies[0].addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way || !event.target.matches("td")) return;
      event.preventDefault();
      visit(step(event.target, ...way), true);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", fill);
    form.addEventListener("input", narrow);
    form.hidden = false;
    fill();
    narrow();
  };
  document.querySelectorAll(".mls-support").forEach(supported);

  // Two rows of the catalog side by side, with all that the tables of the page say of them.
  const panel = make("section", { className: "mls-compare", hidden: true });
  panel.setAttribute("aria-label", "Comparison of two rows");
  const named = (code) => [...document.querySelectorAll("td[data-code]")].filter((cell) => cell.dataset.code === code);
  const facts = (code) => new Map(named(code).flatMap((name) => {
    const heads = [...name.closest("table").tHead.rows[0].cells];
    return heads.slice(1).map((head, c) => [head.textContent.trim(), name.parentNode.cells[c + 1]]);
  }));
  const compared = (first, second) => {
    const [a, b] = [facts(first), facts(second)];
    const known = (cell) => (cell && value(cell) !== null ? cell : null);
    const rows = [...new Set([...a.keys(), ...b.keys()])].map((head) => {
      const cells = [known(a.get(head)), known(b.get(head))];
      if (!cells[0] && !cells[1]) return null;
      const [x, y] = cells.map((cell) => parseFloat(cell?.dataset.sort));
      const times = x > 0 && y > 0 && !head.includes("year") ? `${Number((y / x).toPrecision(3)).toLocaleString("en-US")}×` : "";
      const shown = cells.map((cell) => make("td", {}, ...(cell ? [...cell.childNodes].map((node) => node.cloneNode(true)) : ["–"])));
      return make("tr", {}, make("th", { scope: "row" }, head), ...shown, make("td", {}, times));
    });
    const heads = ["", first, second, "second / first"].map((text) => make(text ? "th" : "td", text ? { scope: "col" } : {}, text));
    return make("table", { className: "mls-table" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows.filter(Boolean)));
  };
  const chosen = [];
  const choose = (code, on) => {
    const place = chosen.indexOf(code);
    if (place >= 0) chosen.splice(place, 1);
    if (on) chosen.push(code);
    if (chosen.length > 2) chosen.shift();
    document.querySelectorAll(".mls-pick").forEach((box) => { box.checked = chosen.includes(box.closest("td").dataset.code); });
    const close = make("button", { type: "button", className: "mls-close" }, "Close");
    close.addEventListener("click", () => { chosen.splice(0); choose(); });
    const content = chosen.length < 2
      ? make("p", {}, `Choose a second row to compare with ${chosen[0]}.`)
      : make("div", { className: "mls-scroll", tabIndex: 0 }, compared(...chosen));
    panel.replaceChildren(close, content);
    panel.hidden = !chosen.length;
  };
  const namedRow = (cell) => {
    const { code } = cell.dataset;
    const box = make("input", { type: "checkbox", className: "mls-pick", ariaLabel: `Compare ${code}`, title: "Compare with another row" });
    box.addEventListener("change", () => choose(code, box.checked));
    cell.prepend(box);
    if (!navigator.clipboard) return;
    const copy = make("button", { type: "button", className: "mls-copy", ariaLabel: `copy ${code}`, title: `Copy ${code}` }, "copy");
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code);
      const say = (word) => Object.assign(copy, { textContent: word, ariaLabel: `${word} ${code}` });
      say("copied");
      setTimeout(say, 1500, "copy");
    });
    cell.append(copy);
  };
  document.querySelectorAll("main td[data-code]").forEach(namedRow);
  main?.append(panel);

  // The corner above row names heads nothing, so it is no header.
  document.querySelectorAll("main thead th:empty").forEach((corner) => {
    corner.replaceWith(make("td"));
  });

  // A wide table scrolls in a box of its own, which the keyboard reaches too.
  document.querySelectorAll("main table").forEach((table, i) => {
    const box = make("div", { className: "mls-scroll" });
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
  document.querySelectorAll("main pre, main p:has(math[display=block])").forEach((box) => {
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
    const roof = hero.querySelector(".roof");
    const chips = hero.querySelector(".mls-chips");
    let shown = states[chips.querySelector("input:checked").value].line;
    let frame = 0;
    const draw = (p) => roof.setAttribute("d", `M${p[0]} ${p[1]}L${p[2]} ${p[3]}L${p[4]} ${p[5]}`);
    const move = (target) => {
      const from = shown;
      const begin = performance.now();
      const step = (now) => {
        const t = calm.matches ? 1 : Math.min(1, (now - begin) / 700);
        const ease = 1 - (1 - t) ** 3;
        shown = from.map((value, i) => value + (target[i] - value) * ease);
        draw(shown);
        if (t < 1) frame = requestAnimationFrame(step);
      };
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(step);
    };
    chips.hidden = false;
    chips.addEventListener("change", (event) => {
      const state = states[event.target.value];
      move(state.line);
      hero.querySelectorAll(".point").forEach((point, i) => {
        point.style.transform = `translate(${state.points[i][0]}px, ${state.points[i][1]}px)`;
      });
      hero.querySelectorAll("tbody tr").forEach((row, i) => {
        row.querySelectorAll("td").forEach((cell, j) => { cell.textContent = state.cells[i][j]; });
      });
      hero.querySelector("figcaption").textContent = state.words;
    });
  }

  // In a folder of several versions, such as v0.2, a list next to it names the pages of each, the
  // newest first. From a file system, and without the list, there is nothing to choose from.
  const root = new URL("../../", address);
  const version = root.protocol.startsWith("http") ? root.pathname.match(/\/(v\d+\.\d+)\/$/)?.[1] : undefined;
  const listVersions = async () => {
    const answer = await fetch(new URL("../versions.json", root)).catch(() => null);
    if (!answer?.ok) return;
    const versions = await answer.json();
    const inside = location.pathname.startsWith(root.pathname) ? location.pathname.slice(root.pathname.length) : "";
    const place = decodeURI(inside).replace(/(^|\/)$/, "$1index.html");
    const [newest] = Object.keys(versions);
    const link = (name, about = "") => {
      const there = versions[name].includes(place);
      const words = [name, about, there ? "" : ", start page"].join("");
      const made = make("a", { href: new URL(`../${name}/${there ? place : "index.html"}`, root) }, words);
      if (name === version) made.setAttribute("aria-current", "true");
      return made;
    };
    const list = make("ul", {}, ...Object.keys(versions).map((name) => make("li", {}, link(name, name === newest ? " (newest)" : ""))));
    const summary = make("summary", { ariaLabel: `${version}, choose another version` }, version);
    const menu = make("details", { className: "mls-versions" }, summary, list);
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      summary.focus();
    });
    menu.addEventListener("focusout", (event) => { if (!menu.contains(event.relatedTarget)) menu.open = false; });
    document.querySelector(".quarto-navbar-tools")?.prepend(menu);
    if (version !== newest && newest) main?.prepend(make("p", { className: "mls-old" }, `You are reading ${version}; the newest is `, link(newest), "."));
  };
  if (version) addEventListener("load", listVersions);

  // Explorers, code that runs and exercises: loaded where a page has a place for one.
  const exercises = [...document.querySelectorAll("main code.python")].some((code) => code.textContent.includes("from mlsysim_course import check"));
  if (exercises || document.querySelector(".mls-explorer")) import(new URL("../labs/page.js", address)).then(({ begin }) => begin(exercises));
})();
