/**
 * The screen of one session: its header, the transcript, what waits, the composer, and beside them the plan or the changes.
 */

import { html, useEffect, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { ChangesPanel } from "./changes.js";
import { Composer, NoComposer } from "./composer.js";
import { RequestBar, RequestDialog } from "./decide.js";
import { attempt, confirm, copy, download, toast } from "../dialog.js";
import { Icon, StateMark } from "../icons.js";
import { MenuButton } from "../menu.js";
import { Plan } from "../transcript/plan.js";
import { ShareDialog } from "./share.js";
import { TitleEditor, deleteAsked, mayDrive } from "../screens/sidebar.js";
import { Transcript } from "../transcript/transcript.js";
import { addressOf, agentTitle, lastSeen, nameOf, pathOf, shortPath } from "../wording.js";

/** What an export is called, by its format. */
const FORMATS = { markdown: "Markdown", html: "HTML", json: "JSON" };

/**
 * The state of a session as the page knows it: what runs or waits here comes before what the list says.
 *
 * @param {any} session
 * @returns {string}
 */
export function stateOf(session) {
  if (session.requests.value.length || session.waiting.value.length) return "waiting";
  if (session.turn.value) return "running";
  const listed = session.row?.value?.state;
  return listed === "failed" ? "failed" : "idle";
}

/**
 * @param {{agent: string, id: string, call?: string, panel?: string}} props
 */
export function SessionScreen({ agent, id, call, panel }) {
  const session = app.openSession(agent, id);
  const [sharing, setSharing] = useState(false);
  const row = session.row?.value ?? { agent, sessionId: id, cwd: "", title: "", text: "" };
  const name = nameOf({ title: session.title.value || row.title, text: row.text });
  const status = session.status.value;
  const base = pathOf({ agent, sessionId: id });

  useEffect(() => setSharing(false), [session]);
  useEffect(() => {
    // An agent that was started for this session has told its title since the page connected.
    const known = app.info.peek()?.agents.find((one) => one.name === agent);
    if (status === "live" && known && (!known.title || known.title === known.name)) app.gateway.refresh().catch(() => {});
  }, [status, agent]);

  if (status === "gone") {
    return html`<div class="screen"><div class="empty-screen">
      <${Icon} name="archive" />
      <h1 tabindex="-1">This session is not here</h1>
      <p class="soft">It was deleted, or this browser may not see it.</p>
      <a class="button primary" href="#/">All sessions</a>
    </div></div>`;
  }
  return html`<div class="session ${panel ? "with-panel" : ""}">
    <div class="session-main">
      <${SessionHeader} session=${session} row=${row} name=${name} base=${base} panel=${panel} onShare=${() => setSharing(true)} />
      <div class="session-body">
        ${status === "attaching" && !session.transcript.entries.length
          ? html`<div class="loading" role="status"><${Icon} name="spinner" class="spin" /><span>Opening the session…</span></div>`
          : html`<${Transcript} session=${session} call=${call} onTakeUp=${mayDrive() ? (/** @type {any} */ entry) => forkAsked(session, entry.text) : undefined} />`}
      </div>
      <div class="session-foot">
        <${PlanStrip} session=${session} />
        <${RequestBar} session=${session} />
        ${session.canPrompt.value
          ? html`<${Composer} session=${session} cwd=${row.cwd} />`
          : html`<${NoComposer} text=${mayDrive() ? "This session cannot be continued here." : "You are watching. Those who drive this session write here."} />`}
      </div>
    </div>
    ${panel === "changes" && html`<${ChangesPanel} session=${session} base=${base} />`}
    <${RequestDialog} key=${base} session=${session} />
    ${sharing && html`<${ShareDialog} session=${session} name=${name} onClose=${() => setSharing(false)} />`}
  </div>`;
}

/**
 * @param {{session: any, row: any, name: string, base: string, panel?: string, onShare: () => void}} props
 */
function SessionHeader({ session, row, name, base, panel, onShare }) {
  const [renaming, setRenaming] = useState(false);
  const admin = app.info.value?.role === "admin";
  const exportAs = (/** @type {string} */ format) => attempt(async () => download(await session.export(format)), "Exported");
  const items = () => [
    mayDrive() && { label: "Rename", icon: "edit", onSelect: () => setRenaming(true) },
    mayDrive() && { label: "Fork", icon: "fork", onSelect: () => fork(session) },
    { label: "All changes", icon: "diff", key: "d", href: `#${base}/changes` },
    { label: "Copy link", icon: "link", onSelect: () => copy(addressOf(row), "Link copied") },
    { label: "Copy transcript", icon: "copy", onSelect: () => attempt(async () => copy((await session.export("markdown")).text, "Transcript copied")) },
    ...Object.entries(FORMATS).map(([format, word]) => ({ label: `Export as ${word}`, icon: "download", onSelect: () => exportAs(format) })),
    admin && { label: "Share…", icon: "share", onSelect: onShare },
    row.mayDelete && { label: "Delete…", icon: "trash", danger: true, onSelect: async () => { if (await deleteAsked(row)) app.go("/"); } },
  ];
  const finish = (/** @type {string | null} */ title) => {
    setRenaming(false);
    if (title !== null) attempt(() => session.rename(title));
  };
  return html`<header class="session-head">
    <a class="icon-button back" href="#/" aria-label="Back to the sessions"><${Icon} name="arrow-left" /></a>
    <div class="session-heading">
      ${renaming
        ? html`<${TitleEditor} title=${session.title.value ?? ""} onDone=${finish} />`
        : html`<h1 class="truncate" tabindex="-1" title=${name} onDblClick=${() => mayDrive() && setRenaming(true)}>${name}</h1>`}
      <p class="session-facts"><${StateMark} state=${lastSeen(stateOf(session))} /><span class="agent-word truncate">${agentTitle(session.agent)}</span><span class="mono truncate" title=${row.cwd}><bdi>${shortPath(row.cwd)}</bdi></span></p>
    </div>
    <a class="icon-button" href=${panel === "changes" ? `#${base}` : `#${base}/changes`} aria-label="All changes" title="All changes (d)" aria-pressed=${panel === "changes"} role="button"><${Icon} name="diff" /></a>
    <${MenuButton} label="Session menu" items=${items} />
  </header>`;
}

/** Fork the session, and show the fork. @param {any} session @param {string} [text] a message to begin with */
export async function fork(session, text) {
  const forked = await attempt(() => session.fork());
  if (!forked) return;
  if (text) forked.draft.value = { ...forked.draft.peek(), text };
  app.go(pathOf({ agent: forked.agent, sessionId: forked.id }));
  toast(text ? "This is the fork; your message is in the field" : "This is the fork");
}

/** Fork the session to send an earlier message again. ACP has no way to cut a session, so the user is told what the fork keeps. @param {any} session @param {string} text */
async function forkAsked(session, text) {
  const yes = await confirm({
    title: "Edit this message in a fork?",
    text: html`<p>A fork is a copy of the whole session. It keeps this message and everything after it, because an agent cannot go back to an earlier message.</p>
      <p>Your message is put into the field of the fork. Change it there, and send it as the next message. This session stays as it is.</p>`,
    action: "Fork",
  });
  if (yes) await fork(session, text);
}

/** The plan in one line above the composer, which opens to all of its steps. @param {{session: any}} props */
function PlanStrip({ session }) {
  const [open, setOpen] = useState(false);
  const steps = session.plan.value ?? [];
  session.transcript.structure.value; // a turn that is over in a moment changes nothing else
  const list = Array.isArray(steps) ? steps : steps.entries ?? [];
  const done = list.filter((/** @type {any} */ step) => step.status === "completed").length;
  const now = list.find((/** @type {any} */ step) => step.status === "in_progress") ?? list.find((/** @type {any} */ step) => step.status !== "completed");
  // A plan that is done stays until the next turn begins: many are done in a moment, and nothing else shows them.
  if (!list.length || (!now && steps === session.transcript.earlierPlan)) return null;
  return html`<section class="plan-strip ${open ? "open" : ""}" aria-label="Plan">
    <button type="button" class="plan-toggle" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      <${Icon} name="list" /><span class="truncate">${now ? now.content : "The plan is done"}</span><span class="faint">${done} of ${list.length}</span>
      <${Icon} name=${open ? "chevron-down" : "chevron-up"} />
    </button>
    ${open && html`<div class="plan-body"><${Plan} session=${session} /></div>`}
  </section>`;
}
