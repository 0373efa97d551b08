// What a Node contestant writes down about itself: the twin of probe.py.
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const [kind, count, sessions, size] = process.argv.slice(2);
export const task = { kind, count: Number(count), sessions: Number(sessions), size: Number(size) };
export const updates = JSON.parse(readFileSync(new URL("../updates.json", import.meta.url), "utf8"));
export const output = () => Writable.toWeb(process.stdout);
export const input = () => Readable.toWeb(process.stdin);

export function bigText({ kind, size }) {
  if (kind.endsWith("_lines")) return ("x".repeat(79) + "\n").repeat(size / 80 + 1).slice(0, size);
  return "x".repeat(size);
}

export function updateAt(index) {
  const text = updates.texts[index % updates.texts.length];
  const turn = Math.floor(index / updates.tool_every);
  if (index % updates.tool_every !== updates.tool_every - 1) {
    return { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  }
  const toolCallId = `call_${String(Math.floor(turn / 2) % 1000).padStart(4, "0")}`;
  if (turn % 2 === 0) {
    const { tool_title: title, tool_kind: kind } = updates;
    return { sessionUpdate: "tool_call", toolCallId, title, kind, status: "pending" };
  }
  const content = [{ type: "content", content: { type: "text", text } }];
  return { sessionUpdate: "tool_call_update", toolCallId, status: "completed", content };
}

function peakBytes() {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) * 1024;
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

export class Probe {
  handled = 0;
  samples = [];
  #cpu;
  #wall = 0;
  #seconds;

  start() {
    if (this.#cpu) return;
    this.#cpu = process.cpuUsage();
    this.#wall = performance.now();
  }

  lap() {
    this.#seconds = (performance.now() - this.#wall) / 1e3;
  }

  finish() {
    const used = this.#cpu ? process.cpuUsage(this.#cpu) : { user: 0, system: 0 };
    const report = {
      handled: this.handled,
      cpu: (used.user + used.system) / 1e6,
      wall: this.#seconds ?? (performance.now() - this.#wall) / 1e3,
      peak: peakBytes(),
      samples: this.samples.map((ms) => Math.round(ms * 1e5) / 1e2),
    };
    writeFileSync(process.env.BENCH_REPORT, JSON.stringify(report));
  }
}
