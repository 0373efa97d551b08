"""Peers that cost nearly nothing: every byte is encoded before the clock starts. Knows the wire, no SDK.

`python -m benchmarks.neutral agent|client KIND COUNT SESSIONS SIZE`
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.contestants.probe import Probe, Task, big_text
from benchmarks.updates import BLOCK, TOOL_TITLE, Text, encode, lines, update_line

CHUNK: Final = 1 << 16
DRIP_PAUSE: Final = 0.001
"""Seconds between two drips: long enough for every receiver to fall asleep again."""

_ID: Final = re.compile(rb'"id":\s*("[^"]*"|-?\d+)')


def write(data: bytes | memoryview) -> None:
    """Write everything to stdout."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def read_lines() -> Iterator[bytes]:
    """Yield whole lines from stdin; a long one is joined once."""
    parts: list[bytes] = []
    while chunk := os.read(0, CHUNK):
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*parts, line])
            parts.clear()
        if rest:
            parts.append(rest)


def answer(request_id: object, result: object) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


class Agent:
    """Answers the handshake, then does to the client what the task says."""

    def __init__(self, task: Task, probe: Probe) -> None:
        self._task = task
        self._probe = probe
        self._incoming = read_lines()

    def run(self) -> None:
        sessions: list[str] = []
        prompts: list[object] = []
        for line in self._incoming:
            message = json.loads(line)
            match message.get("method"):
                case "initialize":
                    write(answer(message["id"], {"protocolVersion": 1, "agentCapabilities": {}}))
                case "session/new":
                    sessions.append(f"sess_{len(sessions):032x}")
                    if len(sessions) == self._task.sessions:
                        self._prepare(sessions)
                    write(answer(message["id"], {"sessionId": sessions[-1]}))
                case "session/prompt":
                    prompts.append(message["id"])
                case _:
                    pass
            if prompts and len(prompts) == self._task.sessions:
                self._play(sessions[0])
                write(b"".join(answer(p, {"stopReason": "end_turn"}) for p in prompts))
                prompts = []

    def _prepare(self, sessions: list[str]) -> None:
        task = self._task
        if task.kind == "big_update":
            self._lines = [update_line(sessions[0], Text(big_text(task.kind, task.size)))]
        else:
            self._lines = lines(sessions, task.count)
        self._block = b"".join(self._lines)

    def _play(self, session: str) -> None:
        self._probe.start()
        match self._task.kind:
            case "permission":
                self._ask(session)
            case "big_update":
                write(self._block)
            case "drip" | "everyday_drip":
                for index in range(self._task.count):
                    time.sleep(DRIP_PAUSE)
                    write(self._lines[index % BLOCK])
            case "big_read" | "big_read_lines":
                params = {"sessionId": session, "path": "/big.txt"}
                write(encode({"jsonrpc": "2.0", "id": 0, "method": "fs/read_text_file", "params": params}))
                next(self._incoming)
            case _:
                whole, rest = divmod(self._task.count, BLOCK)
                for _ in range(whole):
                    write(self._block)
                write(b"".join(self._lines[:rest]))
        self._probe.lap()

    def _ask(self, session: str) -> None:
        call = {"toolCallId": "call_0", "title": TOOL_TITLE}
        options = [{"optionId": "allow", "name": "Allow", "kind": "allow_once"}]
        params = {"sessionId": session, "toolCall": call, "options": options}
        question = encode({"jsonrpc": "2.0", "id": -1, "method": "session/request_permission", "params": params})
        head, tail = question.split(b"-1", 1)
        for index in range(self._task.count):
            line = head + b"%d" % index + tail
            began = time.perf_counter()
            write(line)
            if b'"result"' not in next(self._incoming):
                raise ValueError("the permission was not answered")
            self._probe.samples.append(time.perf_counter() - began)


class Client:
    """Shakes hands, prompts, swallows updates and answers questions until every prompt is answered."""

    def __init__(self, task: Task, probe: Probe) -> None:
        self._task = task
        self._probe = probe

    def run(self) -> None:
        incoming = read_lines()
        capabilities = {"fs": {"readTextFile": True, "writeTextFile": False}}
        self._call(0, "initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        next(incoming)
        sessions = []
        for index in range(self._task.sessions):
            self._call(1 + index, "session/new", {"cwd": "/", "mcpServers": []})
            sessions.append(json.loads(next(incoming))["result"]["sessionId"])
        self._big = encode(big_text(self._task.kind, self._task.size)).rstrip()
        self._probe.start()
        for index, session in enumerate(sessions):
            prompt = [{"type": "text", "text": "go"}]
            self._call(1000 + index, "session/prompt", {"sessionId": session, "prompt": prompt})
        if self._task.kind in {"permission", "big_read", "big_read_lines"}:
            self._serve(incoming)
        else:
            self._sink()
        self._probe.lap()

    def _call(self, request_id: int, method: str, params: object) -> None:
        write(encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}))

    def _sink(self) -> None:
        """Count newlines and the prompts' answers; nothing is parsed."""
        updates, ends, tail = 0, 0, b""
        needle = b'"stopReason"'
        while ends < self._task.sessions and (chunk := os.read(0, CHUNK)):
            updates += chunk.count(b"\n")
            ends += (tail + chunk).count(needle)
            tail = chunk[1 - len(needle) :]
        self._probe.handled = updates - ends

    def _serve(self, incoming: Iterator[bytes]) -> None:
        allow = b'{"outcome":{"outcome":"selected","optionId":"allow"}}'
        content = b'{"content":' + self._big + b"}"
        result = allow if self._task.kind == "permission" else content
        for line in incoming:
            if b'"stopReason"' in line or b'"error"' in line:
                return
            found = _ID.search(line)
            if found is None:
                continue
            write(b'{"jsonrpc":"2.0","id":' + found[1] + b',"result":' + result + b"}\n")
            self._probe.handled += 1


def main() -> None:
    role, kind, count, sessions, size = sys.argv[1:6]
    task, probe = Task(kind, int(count), int(sessions), int(size)), Probe()
    (Agent(task, probe) if role == "agent" else Client(task, probe)).run()
    probe.finish()


if __name__ == "__main__":
    main()
