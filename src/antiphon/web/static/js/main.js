/**
 * The start of the page: connect, draw, and register the service worker.
 */

import { html, render } from "./html.js";
import { app } from "./state/app.js";
import { App } from "./view/app.js";
import { confirm } from "./view/dialog.js";
import { loadAhead } from "./view/lazy.js";

/** Register the service worker, which shows the page without a network and carries notifications. */
function registerWorker() {
  if (!("serviceWorker" in navigator)) return;
  // A script's address is the one text of this page that a browser runs; no other module may make one.
  const types = /** @type {any} */ (globalThis).trustedTypes;
  const policy = types?.createPolicy("antiphon", {
    createScriptURL: (/** @type {string} */ address) => {
      if (address !== "/worker.js") throw new TypeError("only the service worker");
      return address;
    },
  });
  const address = policy ? policy.createScriptURL("/worker.js") : "/worker.js";
  navigator.serviceWorker.register(address).catch(() => {}); // a page without one works as well
  navigator.serviceWorker.addEventListener("message", (event) => {
    if (typeof event.data?.path === "string") app.go(event.data.path);
  });
}

const root = document.getElementById("app");
if (root) {
  app.mayReplace = ({ name, role }) => confirm({
    title: "Sign in with this address?",
    text: `You are signed in as ${name} (${role}). The address that was opened would sign you in as its owner says, and you would see and use their sessions in place of yours.`,
    action: "Sign in with the address",
    danger: true,
  });
  app.start();
  render(html`<${App} />`, root);
  registerWorker();
  loadAhead();
}
