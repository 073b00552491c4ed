// What a page can do beside being read: site.js loads this where a page has an explorer or exercises.
import { make } from "./dom.js";
import { explorers } from "./explorer.js";
import { lab } from "./questions.js";
import { code } from "./run.js";

const styles = (name) => new Promise((ready) => {
  const link = make("link", { rel: "stylesheet", href: new URL(name, import.meta.url).href });
  link.onload = link.onerror = ready;
  document.head.append(link);
});

export const begin = async (exercises) => {
  await styles("page.css");
  const instruments = await explorers(document.querySelectorAll(".mls-explorer[data-name]"));
  const ledger = document.querySelector(".mls-ledger[data-lab]");
  if (ledger) await lab(ledger, instruments);
  if (exercises) await code();
};
