/**
 * The service worker: it shows the shell of the page without a network, and takes the click on a notification back to its session.
 *
 * It keeps the page and the files of one version, the one it was served with, and nothing else: what is said in sessions, /api and
 * /acp never pass through it. A new version takes over at once; files have the hash of their version in their addresses, so old and
 * new ones cannot be mixed.
 */

const HASH = "@HASH@";
const FILES = "@FIRST_LOAD@";
const CACHE = `antiphon-${HASH}`;

/** Whether the person has signed out: nothing is kept from then on. The page that it controls still asks it for files. */
let isForgotten = false;
let installing = Promise.resolve();

self.addEventListener("install", (event) => {
  installing = (async () => {
    const cache = await caches.open(CACHE);
    await cache.addAll(["/", "/icons/icon.svg", ...FILES]);
    await self.skipWaiting();
  })();
  event.waitUntil(installing);
});

self.addEventListener("message", (event) => {
  if (event.data !== "forget") return;
  isForgotten = true;
  event.waitUntil((async () => {
    await installing.catch(() => {});
    for (const name of await caches.keys()) await caches.delete(name);
    event.ports[0]?.postMessage("forgotten");
  })());
});

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith("antiphon-") && name !== CACHE) await caches.delete(name);
    await self.clients.claim();
  })());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== "GET" || address.origin !== self.location.origin) return;
  if (address.pathname === "/") event.respondWith(page(request));
  else if (address.pathname.startsWith("/static/")) event.respondWith(file(event));
});

/** The page: from the network if it is there, since it names the files of the newest version. */
async function page(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const kept = await caches.match("/", { cacheName: CACHE });
    if (kept) return kept;
    throw error;
  }
}

/** A file of the page: its content never changes, so a kept one is as good as a new one. */
async function file(event) {
  const { request } = event;
  const kept = await caches.match(request, { cacheName: CACHE }).catch(() => undefined);
  if (kept) return kept;
  const response = await fetch(request);
  if (!isForgotten && response.ok && new URL(request.url).pathname.startsWith(`/static/${HASH}/`)) event.waitUntil(keep(request, response.clone()));
  return response;
}

/** Keep a file. The page has it already: a browser that has no room for it, or is slow, takes nothing from the page. */
async function keep(request, response) {
  try {
    const cache = await caches.open(CACHE);
    await cache.put(request, response);
    if (isForgotten) await caches.delete(CACHE); // meanwhile
  } catch {
    // fetched again the next time
  }
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const path = event.notification.data?.path ?? "/";
  event.waitUntil((async () => {
    const [open] = await self.clients.matchAll({ type: "window" });
    if (!open) {
      await self.clients.openWindow(`/#${path}`);
      return;
    }
    await open.focus();
    open.postMessage({ path });
  })());
});
