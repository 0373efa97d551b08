/**
 * The field where messages are written: it grows, completes, takes pictures and files, keeps its draft, and stops the turn that runs.
 */

import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { AttachmentList, AttachmentProblem, TOTAL_LIMIT, attachmentOf, filesOf } from "./attachments.js";
import { CompletionList, useCompletion } from "./completion.js";
import { attempt, problemOf, toast } from "../dialog.js";
import { Icon } from "../icons.js";
import { SettingsBar } from "./options.js";
import { ContextGauge } from "../transcript/usage.js";
import { count, size } from "../wording.js";

/** Milliseconds in which a second Esc stops the turn. */
const TWICE = 1500;

/** Whether the main pointer is a finger: then Enter breaks the line. */
export const isTouch = () => matchMedia("(pointer: coarse)").matches;

/**
 * The blocks of a message: the text, with files that were picked as links in their places, then what is sent along.
 *
 * @param {string} text
 * @param {string[]} mentions paths that were picked with @
 * @param {import("../../types.js").Attachment[]} attachments
 * @param {string} cwd
 * @returns {import("../../types.js").Block[]}
 */
export function blocksOf(text, mentions, attachments, cwd) {
  /** @type {import("../../types.js").Block[]} */
  const blocks = [];
  const paths = [...new Set(mentions)].sort((a, b) => b.length - a.length);
  const pattern = paths.length ? new RegExp(`@(${paths.map((path) => path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})(?![\\w/-])`, "g") : null;
  let at = 0;
  for (const match of pattern ? text.matchAll(pattern) : []) {
    if (match.index > at) blocks.push({ type: "text", text: text.slice(at, match.index) });
    const address = `file://${encodeURI(`${cwd.replace(/\/$/, "")}/${match[1]}`).replace(/[?#]/g, encodeURIComponent)}`;
    blocks.push({ type: "resource_link", uri: address, name: match[1] });
    at = match.index + match[0].length;
  }
  const rest = text.slice(at);
  if (rest.trim() || !blocks.length) blocks.push({ type: "text", text: rest });
  return [...blocks.filter((block) => block.type !== "text" || block.text), ...attachments.map((one) => one.block)];
}

/**
 * @param {{session: any, cwd: string}} props
 */
export function Composer({ session, cwd }) {
  const draft = session.draft.value;
  const [caret, setCaret] = useState(draft.text.length);
  const [mentions, setMentions] = useState(/** @type {string[]} */ ([]));
  const [hint, setHint] = useState("");
  const [dropping, setDropping] = useState(false);
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const chooser = useRef(/** @type {HTMLInputElement | null} */ (null));
  const recalled = useRef(-1);
  const escaped = useRef(0);
  const listId = useId();
  const running = session.turn.value !== null;
  const capabilities = session.capabilities.value?.promptCapabilities ?? {};
  const hasContent = Boolean(draft.text.trim() || draft.attachments.length);

  const write = (/** @type {string} */ text, /** @type {number} */ at = text.length) => {
    session.draft.value = { ...session.draft.peek(), text };
    setCaret(at);
  };
  const put = (/** @type {string} */ text, /** @type {number} */ at) => {
    write(text, at);
    const element = field.current;
    if (!element) return;
    element.value = text;
    element.focus();
    element.setSelectionRange(at, at);
  };
  const completion = useCompletion({
    session, text: draft.text, caret, apply: put, picked: (path) => setMentions((all) => [...all, path]),
  });

  useLayoutEffect(() => grow(field.current), [draft.text]);
  useEffect(() => {
    recalled.current = -1;
    setMentions([]);
    setHint("");
    if (!isTouch()) field.current?.focus({ preventScroll: true });
  }, [session]);

  const returned = session.returned.value;
  useEffect(() => {
    if (!returned) return;
    session.returned.value = 0;
    toast(`${count(returned, "waiting message")} ${returned === 1 ? "is" : "are"} back in the field`);
  }, [returned]);

  const send = async () => {
    const { text, attachments } = session.draft.peek();
    if (!text.trim() && !attachments.length) return;
    const total = attachments.reduce((/** @type {number} */ sum, /** @type {import("../../types.js").Attachment} */ one) => sum + one.size, 0);
    if (total > TOTAL_LIMIT) {
      setHint(`All together they have ${size(total)}; a message may have ${size(TOTAL_LIMIT)}. Remove one.`);
      return;
    }
    const blocks = blocksOf(text.trim(), mentions, attachments, cwd);
    session.draft.value = { ...session.draft.peek(), text: "", attachments: [] };
    setCaret(0);
    setMentions([]);
    setHint("");
    recalled.current = -1;
    try {
      await session.prompt(blocks);
    } catch (error) {
      // The message was not taken: it goes back into the field, unless something else is there by now.
      const now = session.draft.peek();
      if (!now.text && !now.attachments.length) session.draft.value = { ...now, text, attachments };
      setHint(problemOf(error));
    }
  };
  const stop = () => attempt(async () => session.cancel());

  const add = async (/** @type {File[]} */ files) => {
    setHint("");
    for (const file of files) {
      try {
        const made = await attachmentOf(file, capabilities, session.agent);
        const now = session.draft.peek();
        session.draft.value = { ...now, attachments: [...now.attachments, made] };
      } catch (error) {
        setHint(error instanceof AttachmentProblem ? error.message : problemOf(error));
      }
    }
    field.current?.focus();
  };

  const recall = (/** @type {number} */ step) => {
    const earlier = earlierPrompts(session);
    const next = recalled.current + step;
    if (!earlier.length || next < -1 || next >= earlier.length) return;
    recalled.current = next;
    put(next < 0 ? "" : earlier[next], next < 0 ? 0 : earlier[next].length);
  };

  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (completion.pressed(event)) return;
    const sends = !isTouch() && app.preferences.value.enterSends !== false;
    const control = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && !event.isComposing && (control || (sends && !event.shiftKey))) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && running) {
      event.preventDefault();
      if (Date.now() - escaped.current < TWICE) {
        stop();
        setHint("");
      } else {
        setHint("Press Esc again to stop the turn.");
        setTimeout(() => setHint((text) => (text.startsWith("Press Esc") ? "" : text)), TWICE);
      }
      escaped.current = Date.now();
    } else if (event.key === "Escape") {
      /** @type {HTMLElement} */ (event.target).blur();
    } else if (event.key === "ArrowUp" && (!draft.text || recalled.current >= 0)) {
      event.preventDefault();
      recall(1);
    } else if (event.key === "ArrowDown" && recalled.current >= 0) {
      event.preventDefault();
      recall(-1);
    }
  };
  const pasted = (/** @type {ClipboardEvent} */ event) => {
    const files = filesOf(event.clipboardData);
    if (!files.length) return;
    event.preventDefault();
    add(files);
  };
  const dragged = (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    setDropping(true);
  };
  const dropped = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setDropping(false);
    add(filesOf(event.dataTransfer));
  };

  const open = completion.suggestions.length > 0;
  const placeholder = running ? "Write the next message; it waits for this turn" : "Write a message  ·  / commands  ·  @ files";
  return html`<div class="composer ${dropping ? "dropping" : ""}" onDragOver=${dragged} onDragLeave=${() => setDropping(false)} onDrop=${dropped}>
    <${QueueList} session=${session} />
    <div class="composer-box">
      ${open && html`<${CompletionList} id=${listId} suggestions=${completion.suggestions} chosen=${completion.chosen} choose=${completion.choose} />`}
      <${AttachmentList} attachments=${draft.attachments} remove=${(/** @type {number} */ at) => {
        session.draft.value = { ...draft, attachments: draft.attachments.filter((/** @type {any} */ _, /** @type {number} */ i) => i !== at) };
      }} />
      <textarea ref=${field} id="composer" rows="1" aria-label="Message" placeholder=${isTouch() ? "Write a message" : placeholder} value=${draft.text}
        enterkeyhint=${isTouch() ? "enter" : "send"} autocapitalize="sentences" aria-autocomplete="list" aria-controls=${open ? listId : undefined}
        aria-activedescendant=${open ? `${listId}-${completion.chosen}` : undefined} aria-describedby=${hint ? `${listId}-hint` : undefined}
        onInput=${(/** @type {any} */ event) => { recalled.current = -1; write(event.target.value, event.target.selectionEnd); }}
        onSelect=${(/** @type {any} */ event) => setCaret(event.target.selectionEnd)} onKeyDown=${pressed} onPaste=${pasted}></textarea>
      <div class="composer-row">
        <button type="button" class="icon-button" aria-label="Attach pictures or files" title="Attach pictures or files" onClick=${() => chooser.current?.click()}>
          <${Icon} name="paperclip" />
        </button>
        <input ref=${chooser} type="file" multiple hidden tabindex="-1" aria-hidden="true" onChange=${(/** @type {any} */ event) => {
          add([...event.target.files]);
          event.target.value = "";
        }} />
        <${SettingsBar} session=${session} />
        <span class="spacer" />
        <${ContextGauge} session=${session} />
        ${running && html`<button type="button" class="button stop" onClick=${stop} title="Stop the turn (Esc Esc)"><${Icon} name="stop" /><span class="stop-word">Stop</span></button>`}
        ${(!running || hasContent) && html`<button type="button" class="icon-button send" aria-label=${running ? "Send after this turn" : "Send"} title=${running ? "Send after this turn" : "Send"}
          disabled=${!hasContent} onClick=${send}><${Icon} name="send" /></button>`}
      </div>
      ${dropping && html`<div class="drop-note"><${Icon} name="paperclip" />Drop to send it along</div>`}
    </div>
    <p class="composer-hint" id=${`${listId}-hint`} role="status">${hint}</p>
  </div>`;
}

/** Make the field as high as its text; the style sheet bounds it. @param {HTMLTextAreaElement | null} field */
function grow(field) {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** What the user wrote in this session, last first. @param {any} session @returns {string[]} */
function earlierPrompts(session) {
  const texts = session.transcript.entries
    .filter((/** @type {any} */ entry) => entry.type === "message" && entry.speaker === "user" && entry.text)
    .map((/** @type {any} */ entry) => entry.text);
  return [...new Set(texts.reverse())].slice(0, 50);
}

/**
 * Messages that wait for the turn to end, each with a button that cancels it; and those that could not be sent.
 *
 * @param {{session: any}} props
 */
function QueueList({ session }) {
  const queue = session.queue.value ?? [];
  if (!queue.length) return null;
  return html`<ul class="queue" role="list" aria-label="Waiting messages">
    ${queue.map((/** @type {import("../../types.js").QueuedPrompt} */ one) => html`<li key=${one.prompt} class="queued">
      <${Icon} name="clock" /><span class="queued-word">Waiting</span><span class="truncate">${one.text}</span>
      <button type="button" class="icon-button small" aria-label=${`Cancel the waiting message: ${one.text}`} title="Cancel"
        onClick=${() => attempt(() => session.cancelPrompt(one.prompt), "Message cancelled")}><${Icon} name="cross" /></button>
    </li>`)}
  </ul>`;
}

/** What stands in place of the composer for those who only watch, or when the session is gone. @param {{text: string}} props */
export function NoComposer({ text }) {
  return html`<div class="composer"><p class="watching"><${Icon} name="info" />${text}</p></div>`;
}
