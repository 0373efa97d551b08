/**
 * The transcript of a session: its entries one below the other, as many as there are.
 *
 * Entries are drawn in chunks. A chunk that is far from the screen, in a long transcript, is an empty element of the same height, so that
 * twenty thousand events cost what the screen shows. Each entry follows its own `version`: a piece of a message draws that message alone.
 *
 * The reader keeps the place: what is added above moves nothing, and the end is followed only while it is on the screen.
 */

import { html, signal, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "../../html.js";
import { durationInWords, prose } from "../../present/text.js";
import { app } from "../../state/app.js";
import { CallCard } from "./call.js";
import { Chunks } from "./chunks.js";
import { Content } from "./content.js";
import { Icon } from "../icons.js";
import { AgentMessage, Compaction, Notice, Thought, TurnEnd, UserMessage, toField } from "./message.js";

/** Chunks that stay drawn though they are far away: the search of the browser finds their text. */
const DRAWN = 24;

/** Pixels above and below the screen in which chunks are drawn and older pages are asked for. */
const AHEAD = 1_600;

/** Pixels from the end that count as the end. */
const NEAR_END = 64;

/** What a reader scrolls with; `focusin` is the Tab key. */
const SCROLLERS = ["wheel", "touchmove", "pointerdown", "keydown", "focusin"];

/** Milliseconds for which a linked call must not have moved before it counts as reached. */
const QUIET = 300;

/** Milliseconds after which it counts as reached all the same. */
const SETTLING = 5000;

/** Whether the browser keeps the place of the reader by itself when something above changes its height. Safari does not. */
const ANCHORS = typeof CSS !== "undefined" && CSS.supports?.("overflow-anchor", "auto");

/**
 * What entries need of the view that they are in. It is one object for the life of the view, so that entries are not drawn again for it.
 *
 * @typedef {object} View
 * @property {any} session
 * @property {string} cwd
 * @property {string} me  the name of this person in `from`
 * @property {import("../../types.js").Signal<string | null>} target  the call that the address names
 * @property {((entry: any) => void) | undefined} onTakeUp
 * @property {(call: string) => string} address  the address of a call
 * @property {(engine: string) => number} engineNumber  the place of an engine among those that answered, for its colour
 */

/**
 * The transcript of a session.
 *
 * @param {{session: any, call?: string | null, onTakeUp?: (entry: any) => void}} props
 *   `call`: the tool call that the address names; `onTakeUp`: called with a prompt that is to be edited and sent again
 */
export function Transcript({ session, call = null, onTakeUp }) {
  // Another session is another view: nothing of the first is kept.
  return html`<${Log} key=${`${session.agent}/${session.id}/${session.renewed?.value ?? 0}`} session=${session} call=${call} onTakeUp=${onTakeUp} />`;
}

/** @param {{session: any, call: string | null, onTakeUp?: (entry: any) => void}} props */
function Log({ session, call, onTakeUp }) {
  const view = useView(session, call, onTakeUp);
  const chunks = useMemo(() => new Chunks(), []);
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));
  const column = useRef(/** @type {HTMLElement | null} */ (null));
  session.transcript.structure.value; // drawn again when entries were added
  const anchor = useRef(/** @type {Anchor | null} */ (null));
  const { entries } = session.transcript;
  if (chunks.sync(entries)) anchor.current ??= takeAnchor(scroller.current);
  useLayoutEffect(() => {
    keepAnchor(scroller.current, anchor.current);
    anchor.current = null;
  });
  const end = useEnd(scroller, column, session);
  const observe = useNearness(scroller, chunks);
  useTarget(session, call, chunks, scroller, end.release);
  const isBusy = Boolean(session.turn.value);
  const isEmpty = entries.length === 0;
  return html`<div class="transcript">
    <div class="transcript-scroll" ref=${scroller} role="log" aria-live="off" aria-busy=${isBusy} aria-label="Transcript" tabindex="0">
      <div class="transcript-column" ref=${column}>
        <${Older} session=${session} scroller=${scroller} isEmpty=${isEmpty} />
        ${isEmpty && html`<${Empty} session=${session} />`}
        ${chunks.list.map((chunk) => html`<${ChunkView} key=${chunk.id} chunk=${chunk} view=${view} observe=${observe} />`)}
        <${Working} session=${session} me=${view.me} />
        <${Outgoing} session=${session} cwd=${view.cwd} />
      </div>
    </div>
    <${ToEnd} end=${end} />
  </div>`;
}

/** @param {any} session @param {string | null} call @param {((entry: any) => void) | undefined} onTakeUp @returns {View} */
function useView(session, call, onTakeUp) {
  const taken = useRef(onTakeUp);
  taken.current = onTakeUp;
  const view = useMemo(() => {
    /** @type {string[]} */
    const engines = [];
    const base = `#/session/${encodeURIComponent(session.agent)}/${encodeURIComponent(session.id)}`;
    return {
      session,
      get cwd() {
        return String(session.row.value?.cwd ?? "");
      },
      get me() {
        return String(app.who.value?.name ?? app.info.value?.name ?? "");
      },
      target: signal(call),
      onTakeUp: onTakeUp && ((/** @type {any} */ entry) => taken.current?.(entry)),
      address: (/** @type {string} */ id) => `${base}/call/${encodeURIComponent(id)}`,
      engineNumber: (/** @type {string} */ engine) => {
        if (!engines.includes(engine)) engines.push(engine);
        return engines.indexOf(engine) % 6;
      },
    };
  }, [session, Boolean(onTakeUp)]);
  useEffect(() => {
    view.target.value = call;
  }, [view, call]);
  return view;
}

// --- the place of the reader ----------------------------------------------------------------------------------------

/** @typedef {import("./chunks.js").Chunk} Chunk */
/** @typedef {{candidates: [Element, number][]}} Anchor Entries on the screen and where they were. */

/** Remember where the entries on the screen are, before something above them changes. @param {HTMLElement | null} scroller @returns {Anchor | null} */
function takeAnchor(scroller) {
  if (!scroller) return null;
  const top = scroller.getBoundingClientRect().top;
  /** @type {[Element, number][]} */
  const candidates = [];
  for (const element of scroller.querySelectorAll("[data-entry]")) {
    const place = element.getBoundingClientRect();
    if (place.bottom <= top) continue;
    candidates.push([element, place.top]);
    if (candidates.length === 6) break;
  }
  scroller.classList.add("is-moving"); // the browser must not correct it a second time
  return { candidates };
}

/** Put the entries back to where they were. @param {HTMLElement | null} scroller @param {Anchor | null} anchor */
function keepAnchor(scroller, anchor) {
  if (!scroller || !anchor) return;
  const found = anchor.candidates.find(([element]) => element.isConnected);
  if (found) scroller.scrollTop += found[0].getBoundingClientRect().top - found[1];
  requestAnimationFrame(() => scroller.classList.remove("is-moving"));
}

/**
 * Follow the end while it is on the screen.
 *
 * @param {{current: HTMLElement | null}} scroller
 * @param {{current: HTMLElement | null}} column
 * @param {any} session
 */
function useEnd(scroller, column, session) {
  const state = useMemo(() => ({ isFollowing: signal(true), hasMore: signal(false), lastTop: 0, isTouched: false }), []);
  useEffect(() => state.isFollowing.subscribe((isFollowing) => (session.following.value = isFollowing)), []);
  // Whoever reads the end when a turn begins has not left it by what was clicked before.
  useEffect(
    () =>
      session.turn.subscribe((/** @type {any} */ turn) => {
        if (turn && state.isFollowing.peek()) state.isTouched = false;
      }),
    [],
  );
  const toEnd = () => {
    const element = scroller.current;
    if (!element) return;
    element.scrollTop = element.scrollHeight;
    state.lastTop = element.scrollTop;
  };
  useLayoutEffect(toEnd, []);
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (scroller.current);
    const onScroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = element;
      const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
      // What was added below moves the end away though the reader did nothing: only a move upwards leaves it. And until the reader has
      // touched anything, only a long one: entries get their heights when they are drawn, and the browser moves the place by them.
      const least = state.isTouched || scrollTop < 1 ? 1 : clientHeight / 2;
      if (isAtEnd) state.isFollowing.value = true;
      else if (scrollTop < state.lastTop - least) state.isFollowing.value = false;
      else if (state.isFollowing.peek() && !state.isTouched) toEnd();
      if (isAtEnd) state.hasMore.value = false;
      state.lastTop = element.scrollTop;
    };
    const onTouch = () => {
      state.isTouched = true;
    };
    let height = 0;
    const observer = new ResizeObserver(() => {
      const grown = (column.current?.offsetHeight ?? 0) > height;
      height = column.current?.offsetHeight ?? 0;
      if (state.isFollowing.peek()) toEnd();
      else if (grown && session.turn.peek()) state.hasMore.value = true;
    });
    element.addEventListener("scroll", onScroll, { passive: true });
    for (const kind of SCROLLERS) element.addEventListener(kind, onTouch, { passive: true });
    observer.observe(element);
    if (column.current) observer.observe(column.current);
    return () => {
      element.removeEventListener("scroll", onScroll);
      for (const kind of SCROLLERS) element.removeEventListener(kind, onTouch);
      observer.disconnect();
    };
  }, []);
  return {
    ...state,
    release: () => {
      state.isFollowing.value = false;
    },
    go: () => {
      state.isFollowing.value = true;
      state.hasMore.value = false;
      toEnd();
      scroller.current?.focus({ preventScroll: true });
      state.isTouched = false; // the focus was not the reader's doing
    },
  };
}

/** @param {{end: any}} props */
function ToEnd({ end }) {
  if (end.isFollowing.value) return null;
  return html`<button type="button" class="to-end" onClick=${end.go} data-more=${end.hasMore.value ? "" : undefined}><${Icon} name="arrow-down" />${end.hasMore.value ? "New below" : "To the end"}</button>`;
}

/**
 * Draw chunks that are near the screen, and forget those that are far away in a long transcript.
 *
 * @param {{current: HTMLElement | null}} scroller
 * @param {Chunks} chunks
 * @returns {(element: Element | null, chunk: Chunk) => void}
 */
function useNearness(scroller, chunks) {
  const kept = useMemo(() => ({ observer: /** @type {IntersectionObserver | null} */ (null), chunkOf: new WeakMap(), waiting: /** @type {Element[]} */ ([]) }), []);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (records) => {
        for (const { target, isIntersecting, boundingClientRect } of records) {
          const chunk = /** @type {Chunk | undefined} */ (kept.chunkOf.get(target));
          if (!chunk) continue;
          if (isIntersecting) chunk.isDrawn.value = true;
          else if (chunk.isDrawn.peek() && chunks.list.length > DRAWN && !isInUse(target)) {
            chunk.height = boundingClientRect.height || chunk.height;
            chunk.isDrawn.value = false;
          }
        }
      },
      { root: scroller.current, rootMargin: `${AHEAD}px 0px` },
    );
    kept.observer = observer;
    for (const element of kept.waiting.splice(0)) observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return useMemo(
    () => (element, chunk) => {
      if (!element) return;
      kept.chunkOf.set(element, chunk);
      if (kept.observer) kept.observer.observe(element);
      else kept.waiting.push(element);
    },
    [],
  );
}

/** Whether the reader has the focus or a selection in an element. @param {Element} element */
function isInUse(element) {
  const selection = document.getSelection();
  return element.contains(document.activeElement) || Boolean(selection && !selection.isCollapsed && selection.containsNode(element, true));
}

/**
 * Go to the call that the address names; it may be in an older page.
 *
 * @param {any} session
 * @param {string | null} call
 * @param {Chunks} chunks
 * @param {{current: HTMLElement | null}} scroller
 * @param {() => void} release  stop following the end
 */
function useTarget(session, call, chunks, scroller, release) {
  const [reached, setReached] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    if (!call || reached === call) return undefined;
    const entry = session.transcript.entries.findLast((/** @type {any} */ each) => each.type === "call" && each.id === call);
    if (!entry) {
      if (session.hasOlder.value && session.status.value === "live" && !session.loadingOlder.value) void loadOlder(session).then((isLoaded) => !isLoaded && setReached(call));
      return undefined;
    }
    release();
    // What is around it has its height only when it is drawn, on a busy machine many frames later: again until nothing moves any more.
    let frame = 0;
    let top = Number.NaN;
    const began = performance.now();
    let quietSince = began;
    const leaves = new AbortController(); // a reader who scrolls is let go
    for (const name of ["wheel", "touchmove"]) scroller.current?.addEventListener(name, () => leaves.abort(), { signal: leaves.signal, passive: true });
    const step = () => {
      if (leaves.signal.aborted) {
        setReached(call);
        return;
      }
      const chunk = chunks.chunkOf(entry);
      if (chunk) chunk.isDrawn.value = true; // also if it was forgotten again, because it was far away
      const element = reveal(scroller.current, entry.key);
      const now = element?.getBoundingClientRect().top ?? Number.NaN;
      const time = performance.now();
      if (now !== top || !isInside(element, scroller.current)) quietSince = time;
      top = now;
      if (time - quietSince < QUIET && time - began < SETTLING) {
        frame = requestAnimationFrame(step);
        return;
      }
      element?.querySelector("button")?.focus({ preventScroll: true });
      setReached(call);
    };
    frame = requestAnimationFrame(step);
    return () => {
      cancelAnimationFrame(frame);
      leaves.abort();
    };
  }, [call, reached, session.transcript.structure.value, session.status.value, session.loadingOlder.value]);
}

/** Whether an element can be seen where it is scrolled to. @param {Element | null | undefined} element @param {Element | null} scroller */
function isInside(element, scroller) {
  if (!element || !scroller) return false;
  const place = element.getBoundingClientRect();
  const room = scroller.getBoundingClientRect();
  return place.bottom > room.top && place.top < room.bottom;
}

/** @param {HTMLElement | null} scroller @param {number} key */
function reveal(scroller, key) {
  const element = /** @type {HTMLElement | null | undefined} */ (scroller?.querySelector(`[data-key="${CSS.escape(String(key))}"]`));
  element?.scrollIntoView({ block: "center" });
  return element;
}

// --- what is drawn -----------------------------------------------------------------------------------------------------

/** @param {{chunk: Chunk, view: View, observe: (element: Element | null, chunk: Chunk) => void}} props */
function ChunkView({ chunk, view, observe }) {
  chunk.version.value;
  const isDrawn = chunk.isDrawn.value;
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const before = useRef(0);
  useEffect(() => observe(element.current, chunk), []);
  useLayoutEffect(() => {
    const shown = element.current;
    if (!shown || !isDrawn) return () => {};
    if (!ANCHORS && before.current) {
      const scroller = shown.closest(".transcript-scroll");
      const place = shown.getBoundingClientRect();
      if (scroller && place.top < scroller.getBoundingClientRect().top) scroller.scrollTop += place.height - before.current;
    }
    return () => {};
  }, [isDrawn]);
  before.current = isDrawn ? 0 : chunk.height;
  if (!isDrawn) return html`<div class="chunk" ref=${element} style=${{ height: `${chunk.height}px` }}></div>`;
  const last = chunk.entries.length - 1;
  return html`<div class="chunk" ref=${element} style=${{ height: "" }}>
    ${chunk.entries.map((entry, place) => {
      const previous = place ? chunk.entries[place - 1] : (chunk.previous?.entries.at(-1) ?? null);
      return html`<${EntryView} key=${entry.key} entry=${entry} view=${view} previous=${previous} label=${isNamed(chunk, place)} isLast=${chunk.isLast && place === last} />`;
    })}
  </div>`;
}

/** Whether the engine of an entry is named: where it begins to answer, in a turn or after another one. @param {Chunk} chunk @param {number} place */
function isNamed(chunk, place) {
  const { engine } = chunk.entries[place];
  if (!engine) return false;
  for (let at = chunk, before = place - 1; at; at = /** @type {Chunk} */ (at.previous), before = (at?.entries.length ?? 0) - 1) {
    for (; before >= 0; before -= 1) {
      const entry = at.entries[before];
      if (entry.speaker === "user" || entry.type === "end") return true;
      if (entry.engine) return entry.engine !== engine;
    }
  }
  return true;
}

/** @param {{entry: any, view: View, previous: any, label: boolean, isLast: boolean}} props */
function EntryView({ entry, view, previous, label, isLast }) {
  entry.version.value;
  const [error] = useErrorBoundary();
  const open = isLast && entry.openTo !== null && entry.openTo !== undefined && Boolean(view.session.turn.value);
  const kind = entry.type === "message" ? entry.speaker : entry.type;
  return html`<div class="entry entry-${kind} after-${previous ? (previous.type === "message" ? previous.speaker : previous.type) : "nothing"}" data-entry=${entry.type} data-key=${entry.key} data-status=${entry.type === "call" ? entry.status : undefined}>
    ${error ? html`<${Broken} entry=${entry} />` : shown(entry, view, open, label)}
  </div>`;
}

/** @param {any} entry @param {View} view @param {boolean} open @param {boolean} label */
function shown(entry, view, open, label) {
  switch (entry.type) {
    case "message":
      return entry.speaker === "user" ? html`<${UserMessage} entry=${entry} view=${view} />` : html`<${AgentMessage} entry=${entry} view=${view} open=${open} label=${label} />`;
    case "thought":
      return html`<${Thought} entry=${entry} view=${view} open=${open} label=${label} />`;
    case "call":
      return html`<${CallCard} entry=${entry} view=${view} />`;
    case "notice":
      return html`<${Notice} entry=${entry} />`;
    case "compaction":
      return html`<${Compaction} entry=${entry} view=${view} />`;
    case "end":
      return html`<${TurnEnd} entry=${entry} view=${view} />`;
    default:
      return null;
  }
}

/** An entry that could not be drawn: its text, so that one mistake hides nothing. @param {{entry: any}} props */
function Broken({ entry }) {
  return html`<div class="notice" data-severity="error"><${Icon} name="alert" /><div><span class="notice-title">This entry could not be drawn</span>
    <p class="t-plain">${prose(String(entry.text || entry.label || entry.title || ""))}</p></div></div>`;
}

/** What is above the first entry: older pages are asked for when it comes near. @param {{session: any, scroller: {current: HTMLElement | null}, isEmpty: boolean}} props */
function Older({ session, scroller, isEmpty }) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [isNear, setNear] = useState(false);
  const [isFailed, setFailed] = useState(false);
  const hasOlder = session.hasOlder.value && !isEmpty;
  const isLoading = session.loadingOlder.value;
  const load = async () => setFailed(!(await loadOlder(session)));
  useEffect(() => {
    if (!element.current) return undefined;
    // The last record counts: one callback may have several.
    const observer = new IntersectionObserver((records) => setNear(records.at(-1)?.isIntersecting ?? false), { root: scroller.current, rootMargin: `${AHEAD}px 0px` });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [hasOlder]);
  useEffect(() => setFailed(false), [session.status.value]);
  // A page may be shorter than the screen: as long as its beginning is near, the next one is asked for.
  useEffect(() => {
    if (!isNear || !hasOlder || isFailed || isLoading) return undefined;
    const timer = setTimeout(load, 60);
    return () => clearTimeout(timer);
  }, [isNear, hasOlder, isFailed, isLoading]);
  if (!hasOlder) return null;
  return html`<div class="older" ref=${element}>${isFailed ? html`<button type="button" class="button quiet small" onClick=${load}>Load earlier messages</button>` : html`<span class="t-faint"><${Icon} name="spinner" class="spin" /> Loading earlier messages</span>`}</div>`;
}

/** Load an older page. @param {any} session @returns {Promise<boolean>} whether there is one more, or no older one */
async function loadOlder(session) {
  if (session.loadingOlder.peek()) return true; // whoever asked for it sees how it ends
  const before = session.transcript.structure.peek();
  try {
    await session.loadOlder();
  } catch {
    return false;
  }
  return !session.hasOlder.peek() || session.transcript.structure.peek() !== before;
}

/** @param {{session: any}} props */
function Empty({ session }) {
  const status = session.status.value;
  if (status === "gone") return html`<p class="empty">This session is no longer there.</p>`;
  if (status !== "live") return html`<div class="skeleton" aria-hidden="true"><span></span><span></span><span></span><span></span></div>`;
  return session.turn.value ? null : html`<p class="empty">Nothing here yet. Send a message to begin.</p>`;
}

/** What the agent is doing while it says nothing. @param {{session: any, me: string}} props */
function Working({ session, me }) {
  const turn = session.turn.value;
  const waiting = session.requests.value.length + (session.waiting?.value.length ?? 0);
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!turn) return undefined;
    const tick = () => setNow(app.now());
    tick();
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }, [Boolean(turn)]);
  if (!turn) return null;
  const taken = typeof turn.started === "number" && now ? Math.floor(now - turn.started) : 0;
  const words = app.lost.value ? "Worked when the connection was lost" : waiting ? "Waiting for an answer" : turn.from && me && turn.from !== me ? `Working for ${turn.from}` : "Working";
  return html`<div class="working" data-waiting=${waiting || app.lost.value ? "" : undefined}><span class="working-dots" aria-hidden="true"><i></i><i></i><i></i></span><span>${prose(words)}</span>${taken >= 2 && !app.lost.value && html`<span class="end-detail">${durationInWords(taken)}</span>`}</div>`;
}

/** Prompts that were sent and are not part of the transcript yet. @param {{session: any, cwd: string}} props */
function Outgoing({ session, cwd }) {
  const prompts = session.outgoing?.value ?? [];
  const edit = (/** @type {string} */ name) => {
    const blocks = session.discard(name);
    if (blocks) toField(session, blocks);
  };
  return prompts.map(
    (/** @type {any} */ prompt) => html`<div class="entry entry-user outgoing" key=${prompt.name} data-state=${prompt.state}>
      <article class="user">
        <header class="user-head"><h2 class="t-who">You</h2><span class="outgoing-state">${outgoingWords(prompt)}</span></header>
        <div class="user-body">${prompt.blocks.map((/** @type {any} */ block, /** @type {number} */ place) => html`<${Content} key=${place} block=${block} cwd=${cwd} plain />`)}</div>
        ${prompt.state !== "sending" && html`<div class="outgoing-actions">
          <button type="button" class="button small" onClick=${() => session.retry(prompt.name)}>Send again</button>
          <button type="button" class="button quiet small" onClick=${() => edit(prompt.name)}>Edit</button>
        </div>`}
      </article>
    </div>`,
  );
}

/** What becomes of a prompt that is no event yet. @param {any} prompt */
function outgoingWords({ state, error }) {
  if (state === "sending") return "Sending";
  const why = error ? `: ${prose(error)}` : "";
  return state === "kept" ? `Sent when the gateway is back${why}` : `Not sent${why}`;
}
