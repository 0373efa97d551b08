/**
 * Content blocks of the protocol: text, images, sound, links to resources and resources that were sent along.
 *
 * Nothing is fetched: an image or a sound is shown only if its bytes are in the message, and only of kinds that cannot hold a script.
 */

import { html, useEffect, useMemo, useState } from "../../html.js";
import { languageOf, shownPath } from "../../present/paths.js";
import { exact, prose, sizeInWords } from "../../present/text.js";
import { CodeBlock, CopyButton } from "./code.js";
import { Icon } from "../icons.js";
import { Markdown, webAddress } from "./markdown.js";

/** Kinds of images that are shown. SVG is not among them: it is a document that may hold others. */
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Kinds of sound that are played. */
const SOUNDS = ["audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3", "audio/mp4", "audio/aac", "audio/ogg", "audio/webm", "audio/flac"];

/** Characters of an embedded text that are shown before it is unfolded. */
const LONG_TEXT = 2_000;

/**
 * One content block.
 *
 * @param {{block: any, cwd?: string, plain?: boolean, open?: boolean}} props
 *   `plain`: text is shown as it was written, not as Markdown; `open`: more of it may follow
 */
export function Content({ block, cwd = "", plain = false, open = false }) {
  switch (block?.type) {
    case "text": {
      const text = String(block.text ?? "");
      return plain ? html`<div class="t-plain" dir="auto">${prose(text)}</div>` : html`<${Markdown} text=${text} open=${open} />`;
    }
    case "image":
      return html`<${Image} data=${block.data} mimeType=${block.mimeType} uri=${block.uri} />`;
    case "audio":
      return html`<${Sound} data=${block.data} mimeType=${block.mimeType} />`;
    case "resource_link":
      return html`<${ResourceLink} block=${block} cwd=${cwd} />`;
    case "resource":
      return html`<${Resource} resource=${block.resource || {}} cwd=${cwd} />`;
    default:
      return html`<${Json} name=${`Content of the kind “${prose(String(block?.type ?? "unknown"))}”`} value=${block} />`;
  }
}

/** The words for a content block in plain text, for copies. @param {any} block @returns {string} */
export function contentText(block) {
  switch (block?.type) {
    case "text":
      return String(block.text ?? "");
    case "resource_link":
      return String(block.uri ?? "");
    case "resource":
      return String(block.resource?.text ?? block.resource?.uri ?? "");
    default:
      return block?.type ? `[${block.type}]` : "";
  }
}

/**
 * An address for bytes that came in a message. It is given back when the element goes away.
 *
 * @param {string} data  base64
 * @param {string} mimeType
 * @returns {string | null}  null if this is no base64
 */
function useBytes(data, mimeType) {
  const bytes = useMemo(() => decoded(data), [data]);
  const [url, setUrl] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    if (!bytes) return undefined;
    const made = URL.createObjectURL(new Blob([bytes], { type: mimeType }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, mimeType]);
  return bytes ? url : null;
}

/** @param {string} data @returns {Uint8Array<ArrayBuffer> | null} */
function decoded(data) {
  try {
    const text = atob(String(data ?? "").replace(/\s+/g, ""));
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    return bytes;
  } catch {
    return null;
  }
}

/** @param {{data: string, mimeType?: string, uri?: string, name?: string}} props */
function Image({ data, mimeType = "", uri = "", name = "" }) {
  const kind = mimeType.toLowerCase().split(";")[0].trim();
  if (!IMAGES.includes(kind)) return html`<${Bytes} data=${data} name=${name || uri || "image"} mimeType=${mimeType} />`;
  const alt = exact(name || (uri ? uri.split("/").pop() || uri : "")) || "Image in the message";
  // As data:, not blob:, so that it can be dragged and saved under a name that tells what it is.
  return html`<img class="t-image" src=${`data:${kind};base64,${String(data ?? "").replace(/[^A-Za-z0-9+/=]/g, "")}`} alt=${alt} loading="lazy" decoding="async" />`;
}

/** @param {{data: string, mimeType?: string}} props */
function Sound({ data, mimeType = "" }) {
  const kind = mimeType.toLowerCase().split(";")[0].trim();
  const url = useBytes(data, kind);
  if (!SOUNDS.includes(kind)) return html`<${Bytes} data=${data} name="sound" mimeType=${mimeType} />`;
  return html`<audio class="t-sound" controls preload="metadata" src=${url} aria-label="Sound in the message"></audio>`;
}

/** @param {{block: any, cwd: string}} props */
function ResourceLink({ block, cwd }) {
  const uri = String(block.uri ?? "");
  const path = uri.startsWith("file://") ? shownPath(pathOf(uri), cwd) : "";
  const label = exact(String(block.title || block.name || path || uri));
  const detail = [path && exact(path) !== label ? exact(path) : "", path ? "" : exact(uri), prose(String(block.description ?? "")), typeof block.size === "number" ? sizeInWords(block.size) : ""]
    .filter((word) => word && word !== label)
    .join(" · ");
  const inner = html`<${Icon} name=${path || !webAddress(uri) ? "file" : "link"} />
    <span class="t-chip-name">${label}</span>${detail && html`<span class="t-chip-detail">${detail}</span>`}`;
  return webAddress(uri) ? html`<a class="t-chip" href=${webAddress(uri)} target="_blank" rel="noopener noreferrer" title=${exact(uri)}>${inner}</a>` : html`<span class="t-chip" title=${exact(uri)}>${inner}</span>`;
}

/** @param {{resource: any, cwd: string}} props */
function Resource({ resource, cwd }) {
  const uri = String(resource.uri ?? "");
  const name = exact(uri.startsWith("file://") ? shownPath(pathOf(uri), cwd) : uri);
  const mimeType = String(resource.mimeType ?? "");
  const text = typeof resource.text === "string" ? resource.text : null;
  if (text === null) {
    if (IMAGES.includes(mimeType.toLowerCase())) {
      return html`<figure class="t-figure"><${Image} data=${resource.blob} mimeType=${mimeType} name=${uri} /><figcaption class="t-faint">${name}</figcaption></figure>`;
    }
    return html`<${Bytes} data=${resource.blob} name=${uri} mimeType=${mimeType} />`;
  }
  return html`<details class="t-resource" open=${text.length <= LONG_TEXT ? true : undefined}>
    <summary><${Icon} name="file" /><span class="t-chip-name">${name || "Text"}</span><span class="t-chip-detail">${sizeInWords(text.length)}</span></summary>
    <${CodeBlock} text=${text} name=${languageOf(uri) ?? ""} />
  </details>`;
}

/** Bytes that are not shown, to be saved. @param {{data: string, name: string, mimeType: string}} props */
function Bytes({ data, name, mimeType }) {
  const [problem, setProblem] = useState(false);
  const length = Math.floor((String(data ?? "").length * 3) / 4);
  const save = () => {
    const bytes = decoded(data);
    if (!bytes) return setProblem(true);
    // Never its own type: a browser that opens it instead of saving it must not take it for a page.
    const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = (name.split("/").pop() || "file").replace(/[^\w.-]+/g, "_").slice(-80);
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    return undefined;
  };
  return html`<span class="t-chip"><${Icon} name="file" /><span class="t-chip-name">${exact(name)}</span>
    <span class="t-chip-detail">${problem ? "cannot be read" : [exact(mimeType), sizeInWords(length)].filter(Boolean).join(" · ")}</span>
    <button type="button" class="t-action" aria-label=${`Save ${exact(name)}`} title="Save" onClick=${save}><${Icon} name="download" /></button></span>`;
}

/**
 * A value as JSON, folded.
 *
 * @param {{name: string, value: any}} props
 */
export function Json({ name, value }) {
  const [open, setOpen] = useState(false);
  // Made only when it is looked at: the input of a call may be megabytes.
  const text = useMemo(() => (open ? jsonText(value) : ""), [open, value]);
  return html`<details class="t-json" onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${name}<${Icon} name="chevron-right" class="call-chevron" /></summary>
    ${open && html`<div class="t-json-body"><${CopyButton} text=${text} label=${`Copy ${name.toLowerCase()}`} /><pre tabindex="0">${prose(text.length > 50_000 ? `${text.slice(0, 50_000)}\n…` : text)}</pre></div>`}
  </details>`;
}

/** @param {any} value */
function jsonText(value) {
  try {
    return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    return String(value);
  }
}

/** The path of a `file:` address. @param {string} uri */
function pathOf(uri) {
  try {
    return decodeURIComponent(new URL(uri).pathname);
  } catch {
    return uri;
  }
}
