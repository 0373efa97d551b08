// The chosen message: what is known of it, and its JSON. Everything from the recording becomes a text node.
//   message.js offers: element, showMessage, clearMessage

// An element with a class and its content: strings become text, and nothing else can become of them.
function element(name, kind, ...content) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...content.filter((one) => one !== null && one !== undefined));
  return made;
}

function linkTo(message, words) {
  const link = element("a", "", words);
  link.href = `#m=${message.number}`;
  return link;
}

function fact(name, content) {
  return [element("dt", "", name), element("dd", "", content)];
}

function facts(message) {
  const list = element("dl", "facts");
  list.append(...fact("time", `${message.t.toFixed(3)} s`), ...fact("size", bytes(message.size)));
  if (message.line) list.append(...fact("line", String(message.line)));
  if (message.id !== null) list.append(...fact("id", message.id));
  if (message.turn) list.append(...fact("turn", String(message.turn)));
  if (message.session) list.append(...fact("session", message.session));
  if (message.partner) {
    const words = `#${message.partner.number}, ${span(message.took)}`;
    const later = message.partner.number > message.number;
    list.append(...fact(later ? "answered by" : "answers", linkTo(message.partner, words)));
  } else if (message.unanswered) {
    list.append(...fact("answered by", element("span", "error", "no response")));
  }
  return list;
}

function deviation(one) {
  const item = element("li", "", element("code", "", one.rule), " ", element("span", "quiet", one.level), element("br"), one.text);
  if (one.link.startsWith("https://")) {
    const link = element("a", "", "specification");
    link.href = one.link;
    link.rel = "noreferrer noopener";
    item.append(" ", link);
  }
  return item;
}

// Sets JSON out over lines by its signs alone. The numbers, the escapes and the order of the keys stay as they were sent, which a
// parser would not keep; and what is cut or no JSON at all is shown as far as it goes.
function pretty(text) {
  const made = element("code", "json");
  const tokens = text.match(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs) ?? [];
  let depth = 0;
  let plain = "";
  const line = () => "\n" + "  ".repeat(Math.min(depth, 40));
  const flush = () => {
    if (plain) made.append(plain);
    plain = "";
  };
  tokens.forEach((token, place) => {
    const next = tokens[place + 1];
    if (token === "{" || token === "[") {
      depth += 1;
      plain += token + (next === "}" || next === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      depth = Math.max(depth - 1, 0);
      const before = tokens[place - 1];
      plain += (before === "{" || before === "[" ? "" : line()) + token;
    } else if (token === ",") {
      plain += token + line();
    } else if (token === ":") {
      plain += ": ";
    } else {
      flush();
      const kind = token[0] !== '"' ? "literal" : next === ":" ? "key" : "string";
      made.append(element("span", kind, token));
    }
  });
  flush();
  return made;
}

function body(message) {
  if (message.text === null) return element("p", "quiet", `Too much for one page: see line ${message.line} of the recording.`);
  const pre = element("pre", "", message.kind === "noise" ? message.text : pretty(message.text));
  pre.tabIndex = 0;
  return pre;
}

function showMessage(message, close) {
  const panel = document.getElementById("message");
  const arrow = message.dir === "c2a" ? "→" : "←";
  const button = element("button", "close", "✕");
  button.type = "button";
  button.setAttribute("aria-label", "Close the message");
  button.addEventListener("click", close);
  const list = message.deviations.length ? element("ul", "broken", ...message.deviations.map(deviation)) : null;
  const cut = message.text !== null && message.size > message.text.length && !message.text.trimEnd().match(/[}\]]$/);
  panel.replaceChildren(
    element("div", "heading", element("h3", message.dir, `${arrow} ${message.name}`), button),
    element("p", "quiet", `Message ${message.number}, ${message.kind} from the ${message.dir === "c2a" ? "client" : "agent"}`),
    facts(message),
  );
  if (message.error) panel.append(element("p", "error", `✕ ${message.label || "error"}`));
  if (list) panel.append(list);
  panel.append(body(message));
  if (cut && message.kind !== "noise") panel.append(element("p", "quiet", `Cut here; it has ${bytes(message.size)} in all.`));
  panel.classList.add("open");
}

function clearMessage() {
  const panel = document.getElementById("message");
  panel.classList.remove("open");
  panel.replaceChildren(element("p", "empty", "Choose a message to read it."));
}
