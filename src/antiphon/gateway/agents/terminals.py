"""The terminals of the gateway's machine as clients see them: the output is text in the tool calls that name a terminal.

No client has made such a terminal, so none could show it by its id. An update that names one has its output so far in that place; when there
is more, the gateway adds an update of its own with the content of the tool call as it is then.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from antiphon.gateway.events import notification
from antiphon.rpc.spans import UNREADABLE, Span, elements_of, members_of, replaced
from antiphon.text import fenced

__all__ = ["TerminalOutputs"]

SHOWN: Final = 64 * 1024
"""Characters at the end of an output that are shown. Each change is stored: the whole of a large output is for the agent."""

KEPT: Final = 128
"""Terminals and tool calls of a session that are remembered, the released ones included: an agent may name them until its call is over."""


class _Item(msgspec.Struct, rename="camel"):
    type: str = ""
    terminal_id: str = ""


class TerminalOutputs:
    """What the terminals of one session have printed, and the tool calls that show it."""

    __slots__ = ("_calls", "_outputs", "_sent")

    def __init__(self) -> None:
        self._outputs: dict[str, str] = {}
        self._sent: dict[str, int] = {}
        """The length of the output of each terminal when it was last shown."""
        self._calls: dict[str, list[bytes | str]] = {}
        """The content of each tool call that names a terminal: what is not ours as it was written, and the ids of terminals."""

    def open(self, terminal: str) -> None:
        """Begin with a terminal that has printed nothing yet."""
        self._outputs[terminal], self._sent[terminal] = "", 0
        while len(self._outputs) > KEPT:
            oldest = next(iter(self._outputs))
            del self._outputs[oldest], self._sent[oldest]

    def put(self, session_id: str, terminal: str, output: str, *, is_over: bool) -> Iterator[bytes]:
        """Take the output of a terminal so far, and yield the updates that show it.

        One that goes on is shown each time it has doubled: an agent that looks at it often makes the journal no more than twice as large.
        """
        if terminal not in self._outputs:
            return
        self._outputs[terminal] = output[-SHOWN:]
        sent = self._sent[terminal]
        if len(output) == sent or (not is_over and len(output) < 2 * sent):
            return
        self._sent[terminal] = len(output)
        for call, content in self._calls.items():
            if terminal in content:
                update = {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": call,
                    "content": Raw(self._written(content)),
                }
                yield notification("session/update", {"sessionId": session_id, "update": update})

    def shown(self, line: bytes) -> bytes:
        """Return an update or a permission request of the agent with the output of a terminal in the place of its id."""
        if not self._outputs or b'"terminalId"' not in line:
            return line
        try:
            for call in _members(line, (0, len(line)), ("params", "update"), ("params", "toolCall")):
                for span in _members(line, call, ("content",)):
                    content = self._content(line, span)
                    if content is None:
                        continue
                    for id in _members(line, call, ("toolCallId",)):
                        self._remember(msgspec.json.decode(line[slice(*id)], type=str), content)
                    return replaced(line, [(span, self._written(content))])
        except UNREADABLE:
            pass  # what cannot be read is for the client to refuse
        return line

    def _content(self, line: bytes, span: Span) -> list[bytes | str] | None:
        """Return the items of a content with the ids of our terminals in their places; None if it names none of them."""
        if line[span[0] : span[0] + 1] != b"[":
            return None
        items: list[bytes | str] = []
        for begin, end in elements_of(line, span):
            found = msgspec.json.decode(line[begin:end], type=_Item)
            ours = found.type == "terminal" and found.terminal_id in self._outputs
            items.append(found.terminal_id if ours else line[begin:end])
        return items if any(isinstance(item, str) for item in items) else None

    def _remember(self, call: str, content: list[bytes | str]) -> None:
        self._calls.pop(call, None)
        self._calls[call] = content
        while len(self._calls) > KEPT:
            del self._calls[next(iter(self._calls))]

    def _written(self, content: list[bytes | str]) -> bytes:
        """Return a content as JSON. A terminal that has printed nothing is left out."""
        items = (item if isinstance(item, bytes) else _text(self._outputs.get(item, "")) for item in content)
        return b"[%b]" % b",".join(item for item in items if item)


def _text(output: str) -> bytes:
    return (
        msgspec.json.encode({"type": "content", "content": {"type": "text", "text": fenced(output)}}) if output else b""
    )


def _members(line: bytes, within: Span, *paths: tuple[str, ...]) -> Iterator[Span]:
    """Yield the last value at each path of members."""
    for path in paths:
        at: Span | None = within
        for name in path:
            if at is None or line[at[0] : at[0] + 1] != b"{":
                at = None
                break
            at = dict(members_of(line, at)).get(name)
        if at is not None:
            yield at
