"""What a client of version 1 was sent of tool calls and terminals, which have no form of their own in it."""

import base64
import codecs
import re
from typing import Final

from antiphon.protocol import v1, v2
from antiphon.protocol.base import JsonObject, encode

__all__ = ["MAX_SHOWN", "MAX_TERMINAL", "MAX_TOOL_CONTENT", "KnownTerminal", "KnownToolCall"]

MAX_TERMINAL: Final = 64 * 1024
"""Characters of a terminal's output that are kept and shown: the last ones."""

MAX_TOOL_CONTENT: Final = 1_000
"""Items of a tool call's content that are kept. Version 1 sends the whole list for each new item; more are reported and not shown."""

MAX_SHOWN: Final = 16 * 1024 * 1024
"""Characters of the content of all tool calls of a session that are kept. Above that the content of the oldest is forgotten."""

_ITEM: Final = 64
"""What an item of content counts beside its characters."""

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Control sequences of terminals, which a client that shows text cannot use."""


class KnownToolCall:
    """What a client of version 1 was sent of a tool call."""

    __slots__ = ("content", "forgotten", "id", "introduced", "kind", "name", "refused", "terminals", "title", "weight")

    def __init__(self, id: str) -> None:
        self.id = id
        self.title: str | None = None
        self.name: str | None = None
        self.kind = v2.ToolKind.OTHER
        self.content: list[v1.ToolContent] = []
        """In the words of version 1, but for terminals, whose text grows."""
        self.weight = 0
        """The characters of the content, about."""
        self.forgotten = False
        """Whether it had content that is not kept any more."""
        self.terminals: set[str] = set()
        self.introduced = True
        """Whether the client knows the terminals that it shows."""
        self.refused = False
        """Whether it has more content than is kept."""

    def keep(self, items: "list[v1.ToolContent]") -> int:
        """Keep more content. Returns its weight."""
        more = sum(map(_weight_of, items))
        self.content += items
        self.weight += more
        return more

    def keep_text(self, block: v1.TextBlock, meta: JsonObject | None) -> int:
        """Keep one more item, which is text. Returns its weight."""
        more = len(block.text) + _ITEM
        self.content.append(v1.ContentItem(content=block, meta=meta))
        self.weight += more
        return more

    def clear(self) -> int:
        """Keep none of the content. Returns the weight that it had."""
        weight, self.weight = self.weight, 0
        self.content = []
        return weight

    @property
    def has_room(self) -> bool:
        """Whether another item is kept."""
        return self.weight < MAX_SHOWN and len(self.content) < MAX_TOOL_CONTENT

    @property
    def shown_title(self) -> str:
        """The title to show: version 1 wants one from the start."""
        return self.title or self.name or (self.kind.value if self.kind is not v2.ToolKind.OTHER else self.id)


class KnownTerminal:
    """A terminal of the agent: the end of its output as text, and the tool call that shows it."""

    __slots__ = ("call_id", "cwd", "decoder", "exit", "id", "text", "unsent")

    def __init__(self, id: str) -> None:
        self.id = id
        self.call_id: str | None = None
        self.cwd = ""
        self.text = ""
        self.unsent: str | None = None
        """What was added since it was last sent; None if all of the text has to be sent."""
        self.exit: v2.ExitStatus | None = None
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: str) -> str | None:
        """Add output; None if it is not base64."""
        try:
            more = self.decoder.decode(base64.b64decode(data, validate=True))
        except ValueError:
            return None
        self.text = (self.text + more)[-MAX_TERMINAL:]
        if self.unsent is not None:
            self.unsent = self.unsent + more if len(self.unsent) + len(more) <= MAX_TERMINAL else None
        return more

    def replace(self, data: str | None) -> None:
        """Replace all output."""
        self.text, self.unsent = "", None
        self.decoder.reset()
        if data:
            self.add(data)

    @property
    def plain_text(self) -> str:
        """The end of the output for a client that shows nothing but text, with the exit status of a command that has failed."""
        text, exit = _ESCAPES.sub("", self.text), self.exit
        if exit is None or not (exit.exit_code or exit.signal):
            return text
        ended = f"[signal {exit.signal}]" if exit.signal else f"[exit code {exit.exit_code}]"
        return f"{text}\n{ended}" if text and not text.endswith("\n") else text + ended

    def shown(self, *, deltas: bool) -> JsonObject:
        """What is new of it, as `_meta` of its tool call shows it to a client that asked for that."""
        key, data = (
            ("terminal_output", self.text)
            if self.unsent is None or not deltas
            else ("terminal_output_delta", self.unsent)
        )
        self.unsent = ""
        meta: JsonObject = {key: {"terminal_id": self.id, "data": data}}
        if self.exit is not None:
            meta["terminal_exit"] = {
                "terminal_id": self.id,
                "exit_code": self.exit.exit_code,
                "signal": self.exit.signal,
            }
        return meta


def _weight_of(item: "v1.ToolContent") -> int:
    match item:
        case v1.ContentItem(content=v1.TextBlock(text=text)):
            return len(text) + _ITEM
        case v1.Diff():
            return len(item.old_text or "") + len(item.new_text) + _ITEM
        case v1.TerminalItem():
            return _ITEM
        case _:
            return len(encode(item)) + _ITEM
