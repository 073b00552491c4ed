// What a page can do beside being read: site.js loads this where a page has one of these places.
import { make } from "./dom.js";
import { explorers } from "./explorer.js";
import { code } from "./run.js";

const styles = (name) => new Promise((ready) => {
  const link = make("link", { rel: "stylesheet", href: new URL(name, import.meta.url).href });
  link.onload = link.onerror = ready;
  document.head.append(link);
});

const boxes = document.querySelectorAll(".mls-explorer[data-name]");
await styles("page.css");
if (boxes.length) await explorers(boxes);
if (document.querySelector("main a[href$='.ipynb']")) await code();
