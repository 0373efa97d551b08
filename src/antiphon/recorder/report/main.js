// Brings the parts together. What is shown stands in the address after the `#`, so that a view can be passed on and returned to:
// `#m=12` is a message, `#turn=3&q=error` a selection, and a word without `=` a part of the page.

const controls = new Map(["q", "dir", "method", "session", "turn"].map((name) => [name, document.getElementById(name)]));
const onlyErrors = document.getElementById("only-errors");
const onlyDeviations = document.getElementById("only-deviations");
const folding = document.getElementById("fold");

function choices(select, values, words) {
  for (const value of values) {
    const option = element("option", "", words(value));
    option.value = value;
    select.append(option);
  }
}

function counts(key) {
  const found = new Map();
  for (const message of messages) if (message[key] !== null) found.set(message[key], (found.get(message[key]) ?? 0) + 1);
  return found;
}

function fillChoices() {
  const names = counts("name");
  choices(controls.get("method"), [...names.keys()].sort(), (name) => `${name} (${names.get(name)})`);
  const sessions = counts("session");
  choices(controls.get("session"), sessions.keys(), (id) => `${id} (${sessions.get(id)})`);
  choices(controls.get("turn"), turns.keys(), (number) => `${number}: ${turns.get(number).prompt.slice(0, 50)}`);
  controls.get("session").closest("label").hidden = sessions.size < 2;
  controls.get("turn").closest("label").hidden = turns.size < 2;
}

// Draws the list anew after the choice or the folding has changed.
function refresh() {
  const shown = matching();
  build(shown, folding.checked);
  const rule = filters.rule ? `, breaking ${filters.rule}` : "";
  document.getElementById("count").textContent = filtering()
    ? `${shown.length.toLocaleString("en")} of ${messages.length.toLocaleString("en")} messages${rule}`
    : `${messages.length.toLocaleString("en")} messages`;
  diagram.draw(true);
}

function showControls() {
  for (const [name, control] of controls) control.value = filters[name];
  onlyErrors.checked = filters.only.includes("errors");
  onlyDeviations.checked = filters.only.includes("deviations");
}

// Writes what is shown into the address, without a step in the history for each letter that is typed.
function writeAddress() {
  const said = new URLSearchParams();
  for (const key of Object.keys(nothing)) if (filters[key]) said.set(key, filters[key]);
  if (diagram.chosen) said.set("m", diagram.chosen.number);
  history.replaceState(null, "", `#${said.toString() || "messages"}`);
}

function choose(message) {
  diagram.chosen = message;
  picture.point(message);
  if (message) showMessage(message, () => close());
  else clearMessage();
}

function close() {
  choose(null);
  diagram.draw(true);
  writeAddress();
  diagram.box.focus({ preventScroll: true });
}

// Shows a message wherever it is: in the present choice if it is there, else in the whole.
function jump(message) {
  if (!matching().includes(message)) {
    Object.assign(filters, nothing);
    showControls();
  }
  refresh();
  if (reveal(message)) refresh();
  choose(message);
  diagram.go(placeOf(message), true);
}

function readAddress() {
  const address = location.hash.slice(1);
  if (!address.includes("=")) return;
  const said = new URLSearchParams(address);
  const chosen = Object.keys(nothing).filter((key) => said.has(key));
  if (chosen.length) {
    Object.assign(filters, nothing);
    for (const key of chosen) filters[key] = said.get(key);
    showControls();
    refresh();
    diagram.go(0);
  }
  const message = byNumber.get(Number(said.get("m")));
  if (message) jump(message);
  document.getElementById("conversation").scrollIntoView({ block: "nearest" });
}

let waiting = 0;
function onFilter() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    for (const [name, control] of controls) filters[name] = control.value;
    filters.only = [onlyErrors.checked && "errors", onlyDeviations.checked && "deviations"].filter(Boolean).join(" ");
    filters.rule = "";
    refresh();
    diagram.go(Math.max(diagram.chosen ? placeOf(diagram.chosen) : 0, 0), true);
    writeAddress();
  }, 120);
}

function start() {
  const form = document.getElementById("filters");
  form.hidden = false;
  document.getElementById("conversation").hidden = false;
  fillChoices();
  form.addEventListener("input", onFilter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", onFilter);
  diagram.onChoose = (message) => {
    choose(message);
    diagram.draw(true);
    writeAddress();
  };
  diagram.onFold = (set, number, place) => {
    if (!set.delete(number)) set.add(number);
    refresh();
    diagram.go(place);
  };
  diagram.start();
  picture.start();
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && diagram.chosen) close();
    else if (event.key === "/" && !typing) {
      event.preventDefault();
      controls.get("q").focus();
    }
  });
  window.addEventListener("hashchange", readAddress);
  choose(null);
  refresh();
  readAddress();
}

start();
