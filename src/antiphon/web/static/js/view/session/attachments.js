/**
 * What is sent along with a message: pasted, dropped or chosen pictures and files, as blocks that the agent takes.
 */

import { html } from "../../html.js";
import { Icon } from "../icons.js";
import { size } from "../wording.js";

/** @typedef {import("../../types.js").Attachment} Attachment */
/** @typedef {{image?: boolean, audio?: boolean, embeddedContext?: boolean}} PromptCapabilities */

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Bytes of a picture as it is sent. Models take 5 MB, and base64 adds a third. */
export const PICTURE_LIMIT = 3_500_000;
/** Bytes of a text file: more is better read by the agent itself. */
export const TEXT_LIMIT = 512_000;
/** Bytes of a sound. */
export const SOUND_LIMIT = 8_000_000;
/** Bytes of everything together, below the 16 MiB that a message may have. */
export const TOTAL_LIMIT = 11_000_000;
/** Pixels of the longer side to which a picture that is too large is reduced. */
const REDUCED_SIDE = 2000;

/** A file that cannot be sent; the message says why, in a sentence. */
export class AttachmentProblem extends Error {}

/**
 * Make an attachment of a file.
 *
 * @param {File} file
 * @param {PromptCapabilities} takes
 * @param {string} agent its name, for the sentence that says what it does not take
 * @returns {Promise<Attachment>}
 */
export async function attachmentOf(file, takes, agent) {
  const name = file.name || "picture";
  if (PICTURES.has(file.type)) {
    if (!takes.image) throw new AttachmentProblem(`${agent} takes no pictures.`);
    const picture = file.size > PICTURE_LIMIT ? await reduced(file) : file;
    if (picture.size > PICTURE_LIMIT) throw new AttachmentProblem(`“${name}” has ${size(picture.size)}; a picture may have ${size(PICTURE_LIMIT)}.`);
    return {
      name, mimeType: picture.type, size: picture.size,
      block: { type: "image", mimeType: picture.type, data: await base64(picture) },
    };
  }
  if (file.type.startsWith("audio/")) {
    if (!takes.audio) throw new AttachmentProblem(`${agent} takes no sound.`);
    if (file.size > SOUND_LIMIT) throw new AttachmentProblem(`“${name}” has ${size(file.size)}; a sound may have ${size(SOUND_LIMIT)}.`);
    return { name, mimeType: file.type, size: file.size, block: { type: "audio", mimeType: file.type, data: await base64(file) } };
  }
  if (file.size > TEXT_LIMIT) {
    throw new AttachmentProblem(`“${name}” has ${size(file.size)}; a text file may have ${size(TEXT_LIMIT)}. Put it into the directory of the session and name it with @.`);
  }
  const text = await textOf(file, name);
  const mimeType = file.type || "text/plain";
  const block = takes.embeddedContext
    ? { type: "resource", resource: { uri: `file:///${encodeURIComponent(name)}`, mimeType, text } }
    : { type: "text", text: `${name}:\n\n${fenced(text)}\n` };
  return { name, mimeType, size: file.size, block };
}

/** @param {File} file @param {string} name */
async function textOf(file, name) {
  const problem = new AttachmentProblem(`“${name}” is neither a picture nor a text file.`);
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) throw problem;
    return text;
  } catch {
    throw problem;
  }
}

/** A text in a fence that is longer than any fence inside. @param {string} text */
function fenced(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** A picture with fewer pixels: photographs of phones have more than any model looks at. @param {File} file */
async function reduced(file) {
  try {
    const picture = await createImageBitmap(file);
    const scale = Math.min(1, REDUCED_SIDE / Math.max(picture.width, picture.height));
    const canvas = new OffscreenCanvas(Math.round(picture.width * scale), Math.round(picture.height * scale));
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    return await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
  } catch {
    return file; // a picture that the browser cannot read: its size is told
  }
}

/** @param {Blob} blob @returns {Promise<string>} */
export function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new AttachmentProblem("The browser could not read the file."));
    reader.readAsDataURL(blob);
  });
}

/** The files of a paste or a drop. @param {DataTransfer | null} data @returns {File[]} */
export const filesOf = (data) => [...(data?.files ?? [])];

/**
 * What will be sent along, each with a button that removes it.
 *
 * @param {{attachments: Attachment[], remove: (at: number) => void}} props
 */
export function AttachmentList({ attachments, remove }) {
  if (!attachments.length) return null;
  return html`<ul class="attachments" role="list" aria-label="Sent along">
    ${attachments.map((one, at) => html`<li key=${`${one.name}-${at}`} class="attachment">
      ${one.block.type === "image" ? html`<img class="thumbnail" src=${`data:${one.block.mimeType};base64,${one.block.data}`} alt="" />` : html`<${Icon} name=${one.block.type === "audio" ? "play" : "file"} />`}
      <span class="truncate">${one.name}</span><span class="faint">${size(one.size)}</span>
      <button type="button" class="icon-button small" aria-label=${`Remove ${one.name}`} onClick=${() => remove(at)}><${Icon} name="cross" /></button>
    </li>`)}
  </ul>`;
}
