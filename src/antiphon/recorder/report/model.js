// The messages and what is chosen of them. Knows no element of the page.
// All parts of this script share one scope: what a part offers to the others is named at its top.
//   model.js offers: data, messages, byNumber, nothing, filters, filtering, matching, span, bytes

const data = JSON.parse(document.getElementById("data").textContent);

// A recording may call a method "constructor": only maps are asked by names from it, never objects.
const deviationsOf = new Map();
for (const [number, rule, text, level, link] of data.deviations) {
  if (!deviationsOf.has(number)) deviationsOf.set(number, []);
  deviationsOf.get(number).push({ rule, text, level, link });
}

const messages = data.entries.map((row, place) => ({
  place,
  number: row[0],
  line: row[1],
  t: row[2],
  dir: row[3] ? "a2c" : "c2a",
  kind: data.names[row[4]],
  name: data.names[row[5]],
  label: row[6],
  size: row[7],
  id: row[8],
  session: row[9] === null ? null : data.sessions[row[9]],
  turn: row[10],
  error: Boolean(row[11]),
  text: data.texts[place],
  deviations: deviationsOf.get(row[0]) ?? [],
  broken: (deviationsOf.get(row[0]) ?? []).filter((one) => one.level !== "advice").length,
  partner: null,
  took: null,
}));

const byNumber = new Map(messages.map((message) => [message.number, message]));
for (const [asked, answered, took] of data.pairs) {
  const question = byNumber.get(asked);
  const answer = byNumber.get(answered);
  if (!question || !answer) continue;
  Object.assign(question, { partner: answer, took });
  Object.assign(answer, { partner: question, took });
}
for (const number of data.unanswered) {
  const question = byNumber.get(number);
  if (question) question.unanswered = true;
}

const nothing = { q: "", dir: "", method: "", session: "", turn: "", rule: "", only: "" };
const filters = { ...nothing };

// Whether only a part of the messages is shown.
function filtering() {
  return Object.keys(nothing).some((key) => filters[key] !== "");
}

function matching() {
  const sought = filters.q && new RegExp(filters.q.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  return messages.filter(
    (message) =>
      (!filters.dir || message.dir === filters.dir) &&
      (!filters.method || message.name === filters.method) &&
      (!filters.session || message.session === filters.session) &&
      (!filters.turn || String(message.turn) === filters.turn) &&
      (!filters.rule || message.deviations.some((one) => one.rule === filters.rule)) &&
      (!filters.only.includes("errors") || message.error) &&
      (!filters.only.includes("deviations") || message.broken > 0) &&
      (!sought || sought.test(message.label) || sought.test(message.name) || sought.test(message.text ?? "")),
  );
}

function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 99.95) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours} h ${two(minutes)} min` : `${minutes} min ${two(whole % 60)} s`;
}

function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 99950) return `${(size / 1e3).toFixed(1)} kB`;
  return size < 999500 ? `${Math.round(size / 1e3)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}
