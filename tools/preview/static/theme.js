// Loaded in the head, so that a dark page is never white first.
"use strict";
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const storedTheme = () => {
  try { return localStorage.getItem("theme"); } catch { return null; }
};
function applyTheme(chosen) {
  if (chosen) try { localStorage.setItem("theme", chosen); } catch { /* no storage: this page only */ }
  const dark = (chosen ?? storedTheme() ?? (darkSystem.matches ? "dark" : "light")) === "dark";
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
  document.body.classList.toggle("quarto-dark", dark);
  document.body.classList.toggle("quarto-light", !dark);
  document.querySelector(".quarto-color-scheme-toggle")?.setAttribute("aria-pressed", String(dark));
}
darkSystem.addEventListener("change", () => applyTheme());
