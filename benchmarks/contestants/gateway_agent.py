"""An agent for the benchmarks of the gateway: the text of a prompt says what it sends. Knows the wire, no SDK.

flood N       N updates of this session, as fast as they are taken
deal N K      waits for K such prompts, then N updates, dealt to their sessions in turn
paced N R     N updates, R in a second; the text of each is the time at which it was sent, in nanoseconds
"""

import heapq
import json
import os
import select
import time
from typing import Final

from benchmarks.neutral import answer, write
from benchmarks.updates import BLOCK, Text, lines, update_line

CHUNK: Final = 1 << 16


class Agent:
    """Reads messages, and sends what is due between them."""

    def __init__(self) -> None:
        self._sessions = 0
        self._dealt: list[tuple[str, object]] = []
        self._due: list[tuple[float, str, int, float, object]] = []
        """When the next update of a session is due, how many are left, the seconds between them, and the prompt."""

    def run(self) -> None:
        rest = b""
        while True:
            wait = None if not self._due else max(0.0, self._due[0][0] - time.monotonic())
            if select.select([0], [], [], wait)[0]:
                chunk = os.read(0, CHUNK)
                if not chunk:
                    return
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    self._message(json.loads(line))
            while self._due and self._due[0][0] <= time.monotonic():
                self._send_next()

    def _message(self, message: dict[str, object]) -> None:
        match message.get("method"):
            case "initialize":
                write(answer(message["id"], {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}))
            case "session/new":
                self._sessions += 1
                write(answer(message["id"], {"sessionId": f"sess_{os.getpid():024x}{self._sessions:08x}"}))
            case "session/load":
                write(answer(message["id"], {}))
            case "session/prompt":
                params = message["params"]
                assert isinstance(params, dict)
                self._prompt(params["sessionId"], params["prompt"][0]["text"].split(), message["id"])
            case _:
                pass

    def _prompt(self, session: str, words: list[str], id: object) -> None:
        match words:
            case ["flood", count]:
                _stream([session], int(count))
                write(answer(id, {"stopReason": "end_turn"}))
            case ["deal", count, prompts]:
                self._dealt.append((session, id))
                if len(self._dealt) == int(prompts):
                    _stream([each for each, _ in self._dealt], int(count))
                    write(b"".join(answer(each, {"stopReason": "end_turn"}) for _, each in self._dealt))
                    self._dealt.clear()
            case ["paced", count, rate]:
                every = 1 / float(rate)
                first = time.monotonic() + 0.5 + every * (self._sessions and int(session[-8:], 16) / self._sessions)
                heapq.heappush(self._due, (first, session, int(count), every, id))
            case _:
                raise ValueError(words)

    def _send_next(self) -> None:
        due, session, left, every, id = heapq.heappop(self._due)
        write(update_line(session, Text(str(time.monotonic_ns()))))
        if left > 1:
            heapq.heappush(self._due, (due + every, session, left - 1, every, id))
        else:
            write(answer(id, {"stopReason": "end_turn"}))


def _stream(sessions: list[str], count: int) -> None:
    made = lines(sessions, BLOCK)
    block = b"".join(made)
    whole, rest = divmod(count, BLOCK)
    for _ in range(whole):
        write(block)
    write(b"".join(made[:rest]))


if __name__ == "__main__":
    Agent().run()
