// What Quarto's own scripts would do: theme, copy buttons, table of contents, search.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const isDark = () => document.body.classList.contains("quarto-dark");
  const toggle = document.querySelector(".quarto-color-scheme-toggle");
  toggle.addEventListener("click", () => applyTheme(isDark() ? "light" : "dark"));
  applyTheme();

  document.querySelectorAll("main div.sourceCode").forEach((block) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "code-copy-button";
    button.textContent = "Copy";
    block.append(button);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").innerText.trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  const links = new Map();
  document.querySelectorAll("#toc-box a").forEach((link) => {
    const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (target) links.set(target, link);
  });
  const seen = new Set();
  const spy = new IntersectionObserver((entries) => {
    entries.forEach((entry) => (entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target)));
    const current = [...links.keys()].filter((section) => seen.has(section)).pop();
    links.forEach((link, section) => link.classList.toggle("active", section === current));
  }, { rootMargin: "-80px 0px -75% 0px" });
  links.forEach((_, section) => spy.observe(section));

  const dialog = document.getElementById("search-dialog");
  const input = document.getElementById("search-input");
  const results = document.getElementById("search-results");
  const element = (name, ...content) => {
    const made = document.createElement(name);
    made.append(...content);
    return made;
  };
  const load = () => new Promise((ready) => {
    if (window.searchIndex) return ready();
    const script = element("script");
    script.src = `${root}site_libs/search-index.js`;
    script.onload = ready;
    document.head.append(script);
  });
  const open = async () => {
    dialog.showModal();
    await load();
    find();
  };
  const excerpt = (text, word) => {
    const at = text.toLowerCase().indexOf(word);
    const from = Math.max(0, at - 50);
    if (at < 0) return [text.slice(0, 120)];
    const mark = element("mark", text.slice(at, at + word.length));
    return [from ? "…" : "", text.slice(from, at), mark, text.slice(at + word.length, at + 90)];
  };
  const find = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), whole = words.join(" ");
    if (!words.length || !window.searchIndex) return results.replaceChildren();
    const hits = window.searchIndex.flatMap(([href, page, id, section, text, names]) => {
      const [title, head, body] = [page, section, text].map((part) => part.toLowerCase());
      const scores = words.map((word) =>
        (title.includes(word) ? 4 : 0) + (head.includes(word) ? 6 : 0) + (body.includes(word) ? 1 : 0));
      // Who types the name of a term, or begins to, is looking for its definition.
      const named = names.map((name) => name.toLowerCase());
      const bonus = named.includes(whole) ? 1000 : named.some((name) => name.startsWith(whole)) ? 20 : 0;
      const score = Math.min(...scores) && scores.reduce((a, b) => a + b, bonus);
      return score ? [{ score, href, id, page, section, text }] : [];
    });
    hits.sort((a, b) => b.score - a.score);
    results.replaceChildren(...hits.slice(0, 20).map((hit) => {
      const head = hit.section && hit.section !== hit.page ? `${hit.page} › ${hit.section}` : hit.page;
      const link = element("a", element("strong", head), element("small", ...excerpt(hit.text, words[0])));
      link.href = `${root}${hit.href}${hit.id ? `#${hit.id}` : ""}`;
      link.addEventListener("click", () => dialog.close());
      return link;
    }));
    if (!hits.length) results.append(element("p", "Nothing found."));
  };
  input.addEventListener("input", find);
  document.querySelector(".search-open").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !dialog.open) {
      event.preventDefault();
      open();
    }
  });
  dialog.addEventListener("keydown", (event) => {
    // In a search field the browser would first spend a key press on emptying it.
    if (event.key === "Escape") dialog.close();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [input, ...results.querySelectorAll("a")];
    if (event.key === "Enter" && document.activeElement === input) {
      event.preventDefault();
      stops[1]?.click();
    }
    if (!step) return;
    event.preventDefault();
    stops[Math.max(0, stops.indexOf(document.activeElement) + step)]?.focus();
  });
})();
