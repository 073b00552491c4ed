// What a page can do beside being read: site.js loads this where a page has one of these places.
import { make } from "./dom.js";
import { explorers } from "./explorer.js";

const styles = (name) => new Promise((ready) => {
  const link = make("link", { rel: "stylesheet", href: new URL(name, import.meta.url).href });
  link.onload = link.onerror = ready;
  document.head.append(link);
});

const boxes = document.querySelectorAll(".mls-explorer[data-name]");
await styles("page.css");
if (boxes.length) await explorers(boxes);
