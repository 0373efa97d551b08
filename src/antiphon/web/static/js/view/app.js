/**
 * The root of the page: which screen is shown, the keys that work everywhere, the banner about the connection, and where the focus goes
 * when the screen changes.
 */

import { html, useEffect, useErrorBoundary, useRef } from "../html.js";
import { app } from "../state/app.js";
import { Announcer, announce } from "./announcer.js";
import { ConfirmationDialog, Toasts, overlay, useShortcuts } from "./dialog.js";
import { Icon, Mark } from "./icons.js";
import { lazy } from "./lazy.js";
import { Sidebar, mayDrive, moveFocus } from "./screens/sidebar.js";
import { OthersBanner, takeUp } from "./session/waiting.js";
import { count, nameOf, pathOf } from "./wording.js";

const SessionScreen = lazy(() => import("./session/session.js"), "SessionScreen");
const SignIn = lazy(() => import("./screens/sign_in.js"), "SignIn");
const NewSession = lazy(() => import("./screens/new_session.js"), "NewSession");
const SettingsScreen = lazy(() => import("./screens/settings.js"), "SettingsScreen");
const AdminScreen = lazy(() => import("./screens/admin.js"), "AdminScreen");
const AboutScreen = lazy(() => import("./screens/about.js"), "AboutScreen");
const HelpDialog = lazy(() => import("./help.js"), "HelpDialog");
const PhoneDialog = lazy(() => import("./session/share.js"), "PhoneDialog");
const QuestionDialog = lazy(() => import("./session/form.js"), "QuestionDialog");

/** Milliseconds in which the second key of a pair has to come. */
const PAIR = 1200;

/** The page. */
export function App() {
  const [error, reset] = useErrorBoundary((/** @type {unknown} */ failure) => console.error(failure));
  useMarks();
  useViewport();
  if (error) return html`<${Broken} error=${error} reset=${reset} />`;
  const who = app.who.value;
  if (who === null || app.connection.value === "signed-out") return html`<${SignIn} /><${Toasts} />`;
  return html`<${Shell} />`;
}

function Shell() {
  const route = app.route.value;
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const first = useRef(true);
  const place = `${route.screen} ${route.agent ?? ""} ${route.id ?? ""}`;
  useKeys();
  useEffect(() => {
    // The first screen keeps the focus where the browser put it.
    if (first.current) {
      first.current = false;
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    if (main.current?.contains(document.activeElement) && document.activeElement !== main.current) return; // a field took it, as the composer does
    const heading = /** @type {HTMLElement | null} */ (main.current?.querySelector("h1"));
    (heading ?? main.current)?.focus({ preventScroll: true });
  }, [place]);
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault(); // the fragment is the route
    (/** @type {HTMLElement | null} */ (document.getElementById("composer")) ?? main.current)?.focus();
  };
  const questions = app.questions.value;
  return html`<div class="app ${route.screen === "list" ? "at-list" : "at-screen"}">
    <a class="skip-link" href="#main" onClick=${skip}>Skip to the session</a>
    <${ConnectionBanner} />
    <${Sidebar} />
    <main id="main" class="main" ref=${main} tabindex="-1">
      <${OthersBanner} />
      <${CurrentScreen} route=${route} />
    </main>
    <${Announcer} />
    <${Toasts} />
    <${ConfirmationDialog} />
    ${questions.length > 0 && html`<${QuestionDialog} key=${questions[0].id} request=${questions[0]} session=${null} onAside=${() => questions[0].respond({ action: "cancel" })} />`}
    ${overlay.value === "help" && html`<${HelpDialog} onClose=${() => { overlay.value = ""; }} />`}
    ${overlay.value === "phone" && html`<${PhoneDialog} onClose=${() => { overlay.value = ""; }} />`}
  </div>`;
}

/** @param {{route: import("../types.js").Route}} props */
function CurrentScreen({ route }) {
  switch (route.screen) {
    case "session": return html`<${SessionScreen} key=${`${route.agent}/${route.id}`} agent=${route.agent} id=${route.id} call=${route.call} panel=${route.view} />`;
    case "new": return html`<${NewSession} />`;
    case "settings": return html`<${SettingsScreen} />`;
    case "admin": return html`<${AdminScreen} />`;
    case "about": return html`<${AboutScreen} />`;
    default: return html`<${Welcome} />`;
  }
}

/** What stands beside the list while no session is open. */
function Welcome() {
  const rows = app.sessions.value;
  const waiting = rows.filter((row) => row.state === "waiting");
  const running = rows.filter((row) => row.state === "running").length;
  if (!app.listed.value || app.lost.value) {
    const lost = app.lost.value && (app.gateway.isSilent.value || !app.online.value);
    return html`<div class="screen welcome"><div class="empty-screen">
      <${Mark} size=${72} />
      <h1 tabindex="-1">${lost ? "No connection to the gateway" : "Connecting…"}</h1>
      ${lost && html`<p class="soft">Sessions are in the gateway and go on there. This page tries again by itself.</p>`}
    </div></div>`;
  }
  return html`<div class="screen welcome"><div class="empty-screen">
    <${Mark} size=${72} />
    <h1 tabindex="-1">${waiting.length ? `${count(waiting.length, "session waits", "sessions wait")} for you` : running ? `${count(running, "session runs", "sessions run")}` : rows.length ? "Nothing waits for you" : "Welcome to Antiphon"}</h1>
    ${waiting.length > 0 && html`<ul role="list" class="card-list">${waiting.slice(0, 4).map((row) => html`<li key=${row.sessionId}><span>${nameOf(row)}</span><a class="button small" href=${`#${pathOf(row)}`}>Open</a></li>`)}</ul>`}
    ${!waiting.length && html`<p class="soft">${rows.length ? "Open a session on the left, or start another one." : "Start a session: choose an agent and a directory, then write what to do."}</p>`}
    ${mayDrive() && html`<a class="button primary" href="#/new"><${Icon} name="plus" />New session</a>`}
    <p class="faint keys-line"><kbd>n</kbd> new <kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> move <kbd>?</kbd> all keys</p>
  </div></div>`;
}

/** A row above everything while there is no connection. It has its own place: what is below gets lower, and nothing is covered. */
function ConnectionBanner() {
  const online = app.online.value;
  const silent = app.gateway.isSilent.value;
  const trouble = app.lost.value ? "" : app.gateway.trouble.value;
  if (online && !app.lost.value && !trouble) return null;
  const words = trouble ? `The gateway answers with an error: ${trouble}. Trying again…` : !online ? "You are offline. What you write is kept here." : silent ? "The gateway does not answer. Trying again…" : app.listed.value ? "Reconnecting… The agents go on without this page." : "Connecting…";
  return html`<div class="connection-banner ${online ? (silent || trouble ? "silent" : "") : "offline"}" role="region" aria-label="Connection">
    <div class="connection-row">
      <${Icon} name=${online ? "spinner" : "wifi-off"} class=${online ? "spin" : ""} />
      <span>${words}</span>
      <button type="button" class="button small" onClick=${() => app.gateway.reconnect()}>Try now</button>
    </div>
  </div>`;
}

/** The keys that work everywhere but in fields. */
function useKeys() {
  const before = useRef({ key: "", at: 0 });
  useShortcuts((event) => {
    const pair = Date.now() - before.current.at < PAIR ? before.current.key : "";
    before.current = { key: event.key, at: Date.now() };
    const route = app.route.peek();
    /** @type {Record<string, () => void>} */
    const actions = {
      "?": () => { overlay.value = "help"; },
      "/": () => focusOn("search"),
      n: () => { if (mayDrive()) app.go("/new"); },
      i: () => focusOn("composer"),
      p: takeUp,
      w: openNextWaiting,
      j: () => moveFocus(1),
      k: () => moveFocus(-1),
      d: () => { if (route.screen === "session") app.go(`${pathOf({ agent: route.agent ?? "", sessionId: route.id ?? "" })}${route.view ? "" : "/changes"}`); },
    };
    if (pair === "g" && event.key === "l") app.go("/");
    else if (pair === "g" && event.key === "s") app.go("/settings");
    else if (event.key in actions) actions[event.key]();
    else return;
    event.preventDefault();
  });
}

/** @param {string} id */
function focusOn(id) {
  const element = document.getElementById(id);
  if (element?.checkVisibility()) element.focus();
  else if (id === "search") {
    app.go("/");
    requestAnimationFrame(() => document.getElementById(id)?.focus());
  }
}

function openNextWaiting() {
  const route = app.route.peek();
  const waiting = app.sessions.peek().filter((row) => row.state === "waiting");
  const at = waiting.findIndex((row) => row.agent === route.agent && row.sessionId === route.id);
  const next = waiting[(at + 1) % waiting.length];
  if (next) app.go(pathOf(next));
  else announce("No session waits for you.");
}

/** Put the theme of the preferences and the state of the connection on the document, where style sheets and tests see them. */
function useMarks() {
  const { theme } = app.preferences.value;
  const connection = app.connection.value;
  useEffect(() => { document.documentElement.dataset.connection = connection; }, [connection]);
  useEffect(() => {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }, [theme]);
}

/** Keep the page as high as what is seen: the keyboard of an iPhone lies over the page without telling the layout. */
function useViewport() {
  useEffect(() => {
    const seen = window.visualViewport;
    if (!seen) return undefined;
    const fit = () => {
      if (seen.scale > 1.01) return; // zoomed in, not a keyboard
      document.documentElement.style.setProperty("--seen-height", `${Math.round(seen.height)}px`);
      if (document.documentElement.scrollTop) document.documentElement.scrollTop = 0;
    };
    fit();
    seen.addEventListener("resize", fit);
    return () => seen.removeEventListener("resize", fit);
  }, []);
}

/** What is shown when drawing fails: the sessions are in the gateway, so nothing is lost. @param {{error: any, reset: () => void}} props */
function Broken({ error, reset }) {
  return html`<main class="sign-in"><div class="sign-in-card">
    <${Icon} name="alert" />
    <h1>The page made a mistake</h1>
    <p class="soft">Your sessions are safe in the gateway. Load the page again; if it comes back, please report what is below.</p>
    <pre class="command-line"><code>${String(error?.stack ?? error).slice(0, 1500)}</code></pre>
    <button type="button" class="button primary wide" onClick=${() => location.reload()}>Load again</button>
    <button type="button" class="button wide" onClick=${() => { app.go("/"); reset(); }}>Back to the sessions</button>
  </div></main>`;
}
