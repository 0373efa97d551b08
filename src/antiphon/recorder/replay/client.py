"""The client's side of a recording: sends what the client sent, and compares the live agent's responses with the recorded ones.

Before a line is sent, the responses and requests that came before it in the recording must have come. Updates need not: an agent
may cut its text otherwise. They are paired with the recorded ones at the next response or request, and what has no partner by the
end is missing, or too much.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from antiphon.config.environment import with_new_sessions
from antiphon.errors import ConnectionClosed
from antiphon.recorder.replay.agent import UNKNOWN_METHOD, Player
from antiphon.recorder.replay.comparison import ABSENT, Difference, Ignored, align, content, differences, label
from antiphon.recorder.replay.script import ReplayNames, Script, anonymous, with_id, written_id
from antiphon.traffic.entries import Entry, JsonObject, as_object
from antiphon.transports.process import ProcessTransport, spawn

__all__ = ["ClientPlayer", "drive"]

RESPONSE_TIMEOUT: Final = 5.0
"""Seconds beyond the recorded time that an update is waited for, before what came after it (a cancel, mostly) is sent without."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?")


class ClientPlayer(Player):
    """Goes through the recording line by line, and on when something differs: `differences` is the result."""

    def __init__(
        self,
        script: Script,
        names: ReplayNames,
        *,
        speed: float = 1.0,
        strict: bool = False,
        ignored: Ignored | None = None,
    ) -> None:
        super().__init__(script, names, speed=speed)
        self.differences: list[Difference] = []
        self.matched = 0
        """Lines of the agent that were as recorded."""
        self._strict = strict
        self._ignored = ignored or Ignored()
        self._place = 0
        self._since = 0.0
        self._met: dict[int, float] = {}  # number of a recorded response or request of the agent → when it came
        self._furthest = 0  # the last of them
        self._missed: set[int] = set()
        self._open_requests: dict[bytes, Entry] = {}
        self._ids: dict[int, bytes] = {}
        self._updates = [line for line in script.lines if line.is_notification and not script.is_ours(line)]
        self._count = {line.number: count for count, line in enumerate(self._updates, 1)}
        self._live: list[Entry] = []  # updates that have no partner yet
        self._came = 0
        self._ends = _ends_of_work(self._updates) if script.version > 1 else {}
        self._ended = 0  # how often the agent was idle again

    @property
    def is_through(self) -> bool:
        """Whether all was sent, and every response and request has come."""
        return self._place >= len(self.script.lines)

    @property
    def wants_more(self) -> bool:
        """Whether updates are still to come that were recorded after the last response."""
        return len(self._live) < len(self._updates)

    def wait(self, now: float) -> float | None:
        due = self._due()
        return None if self.over or due is None else max(0.0, due - now)

    def _due(self) -> float | None:
        if self.is_through:
            return None
        line, before = self.script.lines[self._place], self.script.lines[self._place - 1] if self._place else None
        if self.script.is_ours(line):
            return self._since + self._pause(line, before)
        if line.is_request or self.script.request_of(line) is not None:
            return max(self._since, self._met[line.number]) if line.number in self._met else None
        if not line.is_notification or not self._is_waited_for(line):
            return self._since
        return self._since + (max(0.0, line.t - before.t) if before is not None else 0.0) + RESPONSE_TIMEOUT

    def _is_waited_for(self, line: Entry) -> bool:
        """An update is, while the agent works on something and has sent fewer than at this place of the recording."""
        works = bool(self._open_requests) or self._ended < self._ends.get(line.number, 0)
        if not works or (self._furthest > line.number and not self._ends):
            return False
        return self._came < self._count[line.number]

    def _start(self, now: float) -> None:
        self._since = now

    def _advance(self, now: float) -> None:
        while (due := self._due()) is not None and due <= now:
            line = self.script.lines[self._place]
            if self.script.is_ours(line):
                self._send_line(line)
                self._since = due
            elif line.number not in self._count:
                self._since = due
            self._place += 1

    def _send_line(self, line: Entry) -> None:
        request = self.script.request_of(line)
        if request is not None and request.number in self._missed:
            return  # it was not requested this time
        self._send(line, self._ids.get(request.number) if request is not None else None)
        if line.is_request:
            self._open_requests[written_id(line.raw)] = line

    # Messages of the agent.

    def _receive(self, entry: Entry, now: float) -> None:
        if entry.is_notification:
            self._came += 1
            self._ended += _is_idle(entry)
            self._live.append(entry)
        elif entry.is_request:
            self._receive_request(entry, now)
        elif entry.is_response:
            self._receive_response(entry, now)
        else:
            self._note(f"ignored: {label(entry)}")

    def _receive_request(self, entry: Entry, now: float) -> None:
        alike = [line for line in self.script.lines if line.is_request and line.method == entry.method]
        alike = [line for line in alike if not self.script.is_ours(line)]
        expected = next((line for line in alike if line.number not in self._met), None)
        if expected is None:
            self._differ(Difference(None, label(entry), "", ABSENT, entry.params))
            self._answer_again(entry, alike)
            return
        self._pair_updates(expected.number)
        self._compare(expected, entry, label(expected))
        self._ids[expected.number] = self.names.requests[written_id(expected.raw)] = written_id(entry.raw)
        self._meet(expected, now)

    def _answer_again(self, entry: Entry, alike: list[Entry]) -> None:
        """A request more than was recorded: it gets the last response that such a request got."""
        answers = [answer for line in alike if (answer := self.script.response_to(line)) is not None]
        if answers:
            self._out.append(with_id(self.names.line(answers[-1].raw), written_id(entry.raw)) + b"\n")
        else:
            self._refuse(written_id(entry.raw), UNKNOWN_METHOD, "Method not found")

    def _receive_response(self, entry: Entry, now: float) -> None:
        request = self._open_requests.pop(written_id(entry.raw), None)
        if request is None:
            self._differ(Difference(None, "an answer to no question", "", ABSENT, entry.msg))
            return
        expected = self.script.response_to(request)
        if expected is None:
            self._differ(Difference(None, f"answer to {label(request)}", "", ABSENT, entry.msg))
            return
        self._pair_updates(expected.number)
        self._compare(expected, entry, f"answer to {label(request)}")
        self._meet(expected, now)
        between = (line for line in self.script.lines if request.number < line.number < expected.number)
        for line in between:  # requests that were due before this response will not come any more
            if line.is_request and not self.script.is_ours(line) and line.number not in self._met:
                self._met[line.number] = now
                self._missed.add(line.number)
                self._differ(Difference(line.number, label(line), "", line.params))

    def _meet(self, expected: Entry, now: float) -> None:
        self._met[expected.number] = now
        self._furthest = max(self._furthest, expected.number)

    def _pair_updates(self, until: int) -> None:
        """Compare the updates so far. What has no partner yet may still find one."""
        before = [line for line in self._updates if line.number < until]
        found = align(before, self._live, self._words)
        self._live = found.extra
        left = {line.number for line in found.missing}
        self._updates = [line for line in self._updates if line.number >= until or line.number in left]
        for line, partner in sorted(found.pairs, key=lambda pair: pair[1].number):
            self._compare(line, partner, label(line))
        for line, partner in found.moved:
            self._differ(Difference(line.number, label(line), "its place", "here", "elsewhere"))
            self._compare(line, partner, label(line))

    def _words(self, line: Entry) -> bytes:
        """The content of an update, whatever the names in it are."""
        return msgspec.json.encode([line.method, anonymous(self.names.value(line.params))], order="deterministic")

    def _compare(self, expected: Entry, entry: Entry, what: str) -> None:
        old, new = content(expected), content(entry)
        self.names.learn(old, new)
        compared = (self.names.content(expected), new) if self._strict else (_outline(old), _outline(new))
        found = [
            Difference(expected.number, what, path, recorded, got)
            for path, recorded, got in differences(*compared)
            if not self._ignored(path) and not (_is_time(recorded) and _is_time(got))
        ]
        self.differences += found
        self.matched += not found

    def _differ(self, difference: Difference) -> None:
        """Something came that was not recorded, or did not come. That is the agent's freedom, unless we are strict."""
        if self._strict:
            self.differences.append(difference)
        else:
            self._note(str(difference))

    def _miss(self) -> None:
        self._pair_updates(self.script.lines[-1].number + 1)
        for line in self.script.lines[self._place :]:
            request = self.script.request_of(line)
            if self.script.is_ours(line) or line.number in self._met or not (line.is_request or request is not None):
                continue
            what = f"answer to {label(request)}" if request is not None else label(line)
            self.differences.append(Difference(line.number, what, "", content(line)))
        for line in self._updates:
            self._differ(Difference(line.number, label(line), "", line.params))
        for line in self._live:
            self._differ(Difference(None, label(line), "", ABSENT, line.params))


def _outline(message: object) -> JsonObject:
    """What counts where words may differ: whether it is a result or an error, and why a turn ended, which is an update in version 2."""
    if not isinstance(message, dict):
        return {}
    result, update = message.get("result"), as_object(as_object(message.get("params")).get("update"))
    stop = {"stopReason": result["stopReason"]} if isinstance(result, dict) and "stopReason" in result else {}
    ended = {"stopReason": update["stopReason"]} if "stopReason" in update else {}
    return {
        key: stop if key == "result" else ended if key == "params" else {}
        for key in ("params", "result", "error")
        if key in message
    }


def _is_idle(line: Entry) -> bool:
    """Whether it says that the work of a session of version 2 is over."""
    update = as_object(line.params.get("update"))
    return update.get("sessionUpdate") == "state_update" and update.get("state") == "idle"


def _ends_of_work(updates: list[Entry]) -> dict[int, int]:
    """The number of an update → how often the agent has been idle when the work that it belongs to is over."""
    found, ended = {}, 0
    for line in updates:
        found[line.number] = ended + 1
        ended += _is_idle(line)
    return found


def _is_time(value: object) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


# --- a real agent: started here, and ended with everything it started

TAIL: Final = 1.0
"""Seconds in which updates may come that were recorded after the last response."""


async def drive(player: ClientPlayer, command: Sequence[str], cwd: str, timeout: float) -> str | None:
    """Play against this agent. Why it ended early, in words, if it did: it died, or was silent for so many seconds."""
    agent = await spawn(command, cwd=cwd, env=with_new_sessions())
    try:
        return await _run(player, agent, timeout)
    except ConnectionClosed as error:
        return str(error)
    finally:
        await agent.close()


async def _run(player: ClientPlayer, agent: ProcessTransport, timeout: float) -> str | None:
    clock = asyncio.get_running_loop().time
    receiving = asyncio.ensure_future(agent.receive())
    try:
        while True:
            for line in player.ready(clock()):
                await agent.send(line.rstrip(b"\n"))
            if player.is_through and not player.wants_more:
                return None
            pause = player.wait(clock())
            limit = TAIL if player.is_through else timeout
            await asyncio.wait([receiving], timeout=limit if pause is None else pause)
            if receiving.done():
                frame = receiving.result()
                if frame is None:
                    return None if player.is_through else str(agent.lost)
                player.receive(bytes(frame) if isinstance(frame, bytes | bytearray) else frame.head, clock())
                receiving = asyncio.ensure_future(agent.receive())
            elif pause is None:
                return None if player.is_through else f"the agent was silent for {limit:g} seconds"
    finally:
        player.end(clock())
        receiving.cancel()
        await asyncio.wait([receiving])
