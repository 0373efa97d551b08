// The sequence diagram: a long list of which only the lines in sight are elements.
//   diagram.js offers: diagram

const ROW = 34; // pixels, as in the style
const BEYOND = 12; // lines above and below what is seen, so that a quick scroll meets no void
const MOST_PRINTED = 600; // lines; more would be a book

const diagram = {
  box: document.getElementById("rows"),
  canvas: document.getElementById("canvas"),
  active: -1, // the line that the keyboard is at
  chosen: null, // the message that is open
  drawn: "",
  printing: false,
  onChoose: () => {},
  onFold: () => {},

  // Draws the lines in sight, and none where they are drawn already.
  draw(force) {
    if (this.printing) return;
    const first = Math.max(Math.floor(this.box.scrollTop / ROW) - BEYOND, 0);
    const last = Math.min(Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + BEYOND, rows.length);
    const key = `${first}-${last}`;
    if (!force && key === this.drawn) return;
    this.drawn = key;
    this.canvas.style.height = `${rows.length * ROW}px`;
    this.fill(first, last);
  },

  fill(first, last) {
    const made = document.createDocumentFragment();
    for (let place = first; place < last; place += 1) made.append(this.line(place));
    this.canvas.replaceChildren(made);
    if (!rows.length) this.canvas.replaceChildren(element("p", "empty", "No message is like that."));
    const active = this.active >= first && this.active < last;
    if (active) this.box.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  },

  line(place) {
    const row = rows[place];
    const made = this[row.type](row);
    made.id = `row-${place}`;
    made.dataset.place = place;
    made.style.top = `${place * ROW}px`;
    made.setAttribute("role", "treeitem");
    made.setAttribute("aria-level", row.inside ? 3 : row.type === "turn" || !row.message?.turn ? 1 : 2);
    made.setAttribute("aria-posinset", place + 1);
    made.setAttribute("aria-setsize", rows.length);
    const chosen = row.type === "message" && row.message === this.chosen;
    made.setAttribute("aria-selected", chosen);
    if (place === this.active) made.classList.add("active");
    return made;
  },

  message(row) {
    const { message } = row;
    const made = element("div", `row message ${message.dir} ${message.kind}`);
    if (row.inside) made.classList.add("inside");
    if (message.error) made.classList.add("failed");
    const label = element("span", "label");
    if (message.error) label.append(element("span", "badge error", "✕"));
    if (message.broken) label.append(element("span", "badge deviation", `▲ ${message.broken}`));
    label.append(element("b", "", message.kind === "answer" ? `↩ ${message.name}` : message.name));
    if (message.label) label.append(" ", element("span", "words", message.label));
    made.append(
      element("span", "at", String(message.number)),
      element("span", "at time", message.t.toFixed(3)),
      element("span", "wire", label, element("span", "line")),
      element("span", "at", bytes(message.size)),
    );
    return made;
  },

  run(row) {
    const { run, open } = row;
    const first = run[0];
    const total = run.reduce((sum, one) => sum + one.size, 0);
    const made = element("div", `row run ${first.dir}`);
    const words = run.map((one) => one.label).join(" ");
    const label = element("span", "label", element("span", "toggle", open ? "▾" : "▸"), element("b", "", `${first.name} × ${run.length}`));
    label.append(" ", element("span", "words", words.slice(0, 300)));
    made.setAttribute("aria-expanded", open);
    made.append(
      element("span", "at", String(first.number)),
      element("span", "at time", first.t.toFixed(3)),
      element("span", "wire", label, element("span", "line")),
      element("span", "at", bytes(total)),
    );
    made.title = `${run.length} messages in ${span(run[run.length - 1].t - first.t)}`;
    return made;
  },

  silence(row) {
    const wire = element("span", "wire", element("span", "pause", row.answered ? `answered after ${span(row.took)}` : `${span(row.took)} of silence`));
    return element("div", "row silence", element("span", "at"), element("span", "at time"), wire, element("span", "at"));
  },

  turn(row) {
    const { turn } = row;
    const head = element("b", "", `Turn ${turn.number}`);
    const end = `${span(turn.took)} · ${turn.end}`;
    const made = element("div", "row turn", element("span", "toggle", row.closed ? "▸" : "▾"), head, element("span", "words", turn.prompt));
    made.append(element("span", "quiet", end));
    made.setAttribute("aria-expanded", !row.closed);
    return made;
  },

  // Brings a line into sight and makes it the one that keys act on.
  go(place, middle) {
    this.active = Math.max(0, Math.min(place, rows.length - 1));
    const top = this.active * ROW;
    const height = this.box.clientHeight;
    if (middle) this.box.scrollTop = top - height / 2;
    else if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + height) this.box.scrollTop = top + ROW - height;
    this.draw(true);
  },

  act(place) {
    const row = rows[place];
    this.active = place;
    if (!row) return;
    if (row.type === "message") this.onChoose(row.message);
    else if (row.type === "run") this.onFold(unfolded, row.message.number, place);
    else if (row.type === "turn") this.onFold(closed, row.turn.number, place);
  },

  fold(place, opening) {
    const row = rows[place];
    if (!row) return;
    const open = row.type === "run" ? row.open : row.type === "turn" ? !row.closed : null;
    if (open !== null && open !== opening) this.act(place);
  },

  key(event) {
    const page = Math.max(Math.floor(this.box.clientHeight / ROW) - 1, 1);
    const moves = new Map([
      ["ArrowDown", 1], ["ArrowUp", -1], ["j", 1], ["k", -1], ["PageDown", page], ["PageUp", -page], ["Home", -rows.length], ["End", rows.length],
    ]);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves.has(event.key)) this.go(this.active + moves.get(event.key));
    else if (event.key === "Enter" || event.key === " ") this.act(this.active);
    else if (event.key === "ArrowRight") this.fold(this.active, true);
    else if (event.key === "ArrowLeft") this.fold(this.active, false);
    else return;
    event.preventDefault();
  },

  start() {
    this.box.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("focus", () => this.active < 0 && this.go(0));
    this.canvas.addEventListener("click", (event) => {
      const line = event.target.closest(".row");
      if (line) this.act(Number(line.dataset.place));
    });
    new ResizeObserver(() => requestAnimationFrame(() => this.draw(true))).observe(this.box);
    window.addEventListener("beforeprint", () => {
      this.printing = true;
      this.fill(0, Math.min(rows.length, MOST_PRINTED));
    });
    window.addEventListener("afterprint", () => {
      this.printing = false;
      this.draw(true);
    });
  },
};
