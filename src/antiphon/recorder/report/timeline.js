// Interaction with the picture of the timeline: zoom, a hint under the pointer, and the current position.
//   timeline.js offers: picture

const MOST_ZOOM = 128;

const picture = {
  stage: document.getElementById("stage"),
  svg: document.getElementById("picture"),
  cursor: document.getElementById("cursor"),
  hint: document.getElementById("hint"),
  zoom: 1,

  // Makes the picture wider or narrower; what is at `x` of the stage stays there.
  scale(zoom, x = this.stage.clientWidth / 2) {
    const part = (this.stage.scrollLeft + x) / this.svg.getBoundingClientRect().width;
    this.zoom = Math.max(1, Math.min(zoom, MOST_ZOOM));
    this.svg.style.width = `${this.zoom * 100}%`;
    this.svg.dataset.ticks = this.zoom >= 24 ? 2 : this.zoom >= 5 ? 1 : 0;
    this.stage.scrollLeft = part * this.svg.getBoundingClientRect().width - x;
  },

  at(t) {
    const points = data.axis;
    for (let place = 1; place < points.length; place += 1) {
      const [before, low] = points[place - 1];
      const [after, high] = points[place];
      if (t <= after) return after > before ? low + ((high - low) * Math.max(t - before, 0)) / (after - before) : low;
    }
    return 100;
  },

  point(message) {
    this.cursor.setAttribute("visibility", message ? "visible" : "hidden");
    if (!message) return;
    const [, added] = data.restarts.findLast(([number]) => number <= message.number);
    const x = this.at(message.t + added);
    this.cursor.setAttribute("x1", `${x}%`);
    this.cursor.setAttribute("x2", `${x}%`);
    if (this.zoom > 1) this.stage.scrollLeft = (x / 100) * this.svg.getBoundingClientRect().width - this.stage.clientWidth / 2;
  },

  // The title of a shape, at once and readable, where the browser would let one wait for it.
  tell(event) {
    const shape = event.target.closest("a, .folded");
    const words = shape && [...shape.children].find((one) => one.tagName === "title");
    if (words && words.textContent) {
      shape.dataset.words = words.textContent;
      words.textContent = "";
    }
    const said = shape?.dataset.words;
    this.hint.hidden = !said;
    if (!said) return;
    this.hint.textContent = said;
    const left = Math.min(event.clientX + 14, window.innerWidth - this.hint.offsetWidth - 8);
    const above = event.clientY + 18 + this.hint.offsetHeight > window.innerHeight;
    this.hint.style.left = `${Math.max(left, 8)}px`;
    this.hint.style.top = `${above ? event.clientY - this.hint.offsetHeight - 10 : event.clientY + 18}px`;
  },

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") this.scale(this.zoom * 2);
    else if (event.key === "-") this.scale(this.zoom / 2);
    else if (event.key === "0") this.scale(1);
    else return;
    event.preventDefault();
  },

  start() {
    document.getElementById("zoom").hidden = false;
    document.getElementById("zoom-in").addEventListener("click", () => this.scale(this.zoom * 2));
    document.getElementById("zoom-out").addEventListener("click", () => this.scale(this.zoom / 2));
    document.getElementById("zoom-fit").addEventListener("click", () => this.scale(1));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointermove", (event) => this.tell(event));
    this.stage.addEventListener("pointerleave", () => (this.hint.hidden = true));
    this.stage.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.scale(this.zoom * Math.exp(-event.deltaY / 200), event.clientX - this.stage.getBoundingClientRect().left);
      },
      { passive: false },
    );
  },
};
