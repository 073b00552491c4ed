// A service worker that keeps what a reader has opened, so that it opens again without a network.
// The network comes first: a page that was built again is never taken from here.
const KEPT = "mlsysim-pages";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

const keep = async (request, answer) => (await caches.open(KEPT)).put(request, answer);
// The address of a page may carry a question, such as the words that a search found.
const kept = async (request) => (await caches.open(KEPT)).match(request, { ignoreSearch: true, ignoreVary: true });

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== self.location.origin) return;
  event.respondWith(fetch(request).then((answer) => {
    if (answer.ok) event.waitUntil(keep(request, answer.clone()).catch(() => {}));
    return answer;
  }, async (error) => {
    const found = await kept(request);
    if (found) return found;
    throw error;
  }));
});

// What the page had loaded before this worker began.
self.addEventListener("message", (event) => event.waitUntil(Promise.allSettled(event.data.keep.map(async (address) => {
  const answer = await fetch(address);
  if (answer.ok) await keep(address, answer);
}))));
