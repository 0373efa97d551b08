// The lines of the diagram: messages, folded runs of them, silences and the beginnings of turns. Knows no element of the page.
//   rows.js offers: rows, turns, unfolded, closed, build, placeOf, reveal

const SHORTEST_RUN = 3; // fewer of the same are as quickly read as folded
const SHORTEST_SILENCE = 1; // seconds

let rows = [];
const unfolded = new Set(); // numbers of the first messages of runs that are shown in full
const closed = new Set(); // numbers of turns of which only the head is shown

const turns = new Map(
  data.turns.map(([number, prompt, message, took, end, calls]) => [number, { number, prompt, message, took, end, calls }]),
);

// Whether a message may disappear in a run with the one before: what went wrong is always seen.
function continues(message, before) {
  return (
    message.kind === "notification" &&
    message.name === before.name &&
    message.dir === before.dir &&
    message.kind === before.kind &&
    message.turn === before.turn &&
    message.session === before.session &&
    !message.error &&
    !before.error &&
    !message.broken &&
    !before.broken
  );
}

function runFrom(shown, place) {
  let end = place + 1;
  while (end < shown.length && continues(shown[end], shown[end - 1])) end += 1;
  return shown.slice(place, end);
}

// Makes the lines anew from the messages that are shown. A turn is announced once, also where turns of two sessions interleave.
function build(shown, folding) {
  rows = [];
  const announced = new Set();
  let before = null;
  for (let place = 0; place < shown.length; ) {
    const message = shown[place];
    const hidden = closed.has(message.turn);
    const begins = turns.has(message.turn) && !announced.has(message.turn);
    const silence = before && before.place + 1 === message.place ? message.t - before.t : 0;
    if (silence >= SHORTEST_SILENCE && (begins || !hidden)) {
      rows.push({ type: "silence", took: silence, answered: message.partner === before });
    }
    if (begins) {
      announced.add(message.turn);
      rows.push({ type: "turn", turn: turns.get(message.turn), closed: hidden });
    }
    if (hidden) {
      before = message;
      place += 1;
      continue;
    }
    const run = folding ? runFrom(shown, place) : [message];
    if (run.length >= SHORTEST_RUN) {
      const open = unfolded.has(message.number);
      rows.push({ type: "run", run, open, message });
      if (open) for (const one of run) rows.push({ type: "message", message: one, inside: message.number });
    } else {
      for (const one of run) rows.push({ type: "message", message: one });
    }
    before = run[run.length - 1];
    place += run.length;
  }
}

// Where a message is among the lines, or the line it is folded into.
function placeOf(message) {
  const exact = rows.findIndex((row) => row.type === "message" && row.message === message);
  return exact >= 0 ? exact : rows.findIndex((row) => row.type === "run" && row.run.includes(message));
}

// Opens whatever hides a message. Returns whether anything had to be opened.
function reveal(message) {
  let changed = closed.delete(message.turn);
  const row = rows.find((one) => one.type === "run" && one.run.includes(message));
  if (row && !row.open) {
    unfolded.add(row.message.number);
    changed = true;
  }
  return changed;
}
