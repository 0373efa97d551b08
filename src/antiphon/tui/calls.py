"""A tool call as lines: what it is, how far, what came of it. Pure; what a terminal has written is given to it."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.protocol import v1
from antiphon.transcript.entries import CallEntry
from antiphon.tui.clean import clean, exact, one_line, output_lines
from antiphon.tui.diffs import bounded, change_of, diff_texts

__all__ = ["MARKS", "Tail", "TailOf", "WordOf", "call_texts", "command_of", "content_word", "near"]

DIFF_LINES: Final = 24
"""Lines of a diff in the conversation. `/diff` shows more."""

OUTPUT_LINES: Final = 10
"""The last lines of a command's output."""

TEXT_LINES: Final = 6
"""Lines of what else a call shows."""

MARKS: Final = {
    v1.ToolStatus.PENDING: ("○", "dim"),
    v1.ToolStatus.IN_PROGRESS: ("◐", "yellow"),
    v1.ToolStatus.COMPLETED: ("✓", "green"),
    v1.ToolStatus.FAILED: ("✗", "red"),
}


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of what a terminal has written, and how its command ended if it has."""

    text: str
    ended: str | None = None


TailOf: TypeAlias = Callable[[str], Tail | None]
"""By the terminal's id."""

WordOf: TypeAlias = Callable[[str], str]
"""What became of a call that failed, by its id."""


def near(path: str, cwd: str) -> str:
    """A path as short as it is clear."""
    inside = os.path.relpath(path, cwd) if os.path.isabs(path) and cwd else path
    return path if inside.startswith("..") else inside


def call_texts(
    call: CallEntry, cwd: str, tail_of: TailOf, spinner: str | None = None, failed: str = "failed"
) -> list[RenderableType]:
    """The line of the call, and below it what it shows. `failed` is what to call it if it did."""
    mark, style = MARKS[call.status.meaning]
    if spinner is not None and call.status.meaning == v1.ToolStatus.IN_PROGRESS:
        mark = spinner
    title = one_line(call.label)
    head = Text.assemble((mark, style), " ", (title, "bold"), no_wrap=True, overflow="ellipsis")
    if call.status.meaning == v1.ToolStatus.FAILED:
        head.append(f"  {'denied' if call.denied else failed}", "red")
    below: list[Text] = []
    command = command_of(call.raw_input)
    if command is not None and one_line(command) not in title:
        below += bounded([Text(f"$ {line}", "cyan") for line in exact(command).splitlines()], TEXT_LINES)
    for item in call.content:
        below += _item_texts(item, call, cwd, tail_of)
    return [head, *(Padding(text, (0, 0, 0, 2), expand=False) for text in below)]


def _item_texts(item: v1.ToolContent, call: CallEntry, cwd: str, tail_of: TailOf) -> list[Text]:
    match item:
        case v1.Diff(path=path, new_text=new, old_text=old):
            change = change_of(old, new)
            counts = f"+{change.added} -{change.removed}" + ("" if old is not None else "  new")
            head = Text.assemble(exact(near(path, cwd)), ("  " + counts, "dim"))
            return [head, *diff_texts(change, DIFF_LINES)]
        case v1.TerminalItem(terminal_id=id):
            return _terminal_texts(tail_of(id) or _tail_of_output(call.raw_output))
        case v1.ContentItem(content=v1.TextBlock(text=text)):
            lines = [Text(clean(line), "dim") for line in unfenced(text).strip("\n").splitlines()]
            if call.kind.meaning == v1.ToolKind.EXECUTE:
                return bounded(lines, OUTPUT_LINES, tail=True)
            return bounded(lines, TEXT_LINES)
        case v1.ContentItem(content=block):
            return [Text(content_word(block), "dim")]
        case _:
            return [Text(f"[{item.kind}]", "dim")]


_FENCED: Final = re.compile(r"\s*(`{3,})[^\n`]*\n(.*?)\n?\1\s*", re.DOTALL)


def unfenced(text: str) -> str:
    """What stands in a fence, if the text is one and nothing else: output that an agent sends as Markdown is shown as output."""
    whole = _FENCED.fullmatch(text)
    return whole[2] if whole is not None and whole[1] not in whole[2] else text


def _terminal_texts(tail: Tail | None) -> list[Text]:
    if tail is None:
        return []
    texts = bounded([Text(line, "dim") for line in output_lines(tail.text)], OUTPUT_LINES, tail=True)
    return [*texts, Text(tail.ended, "dim italic")] if tail.ended else texts


def _tail_of_output(raw: object) -> Tail | None:
    """What a terminal of another time wrote, if the agent kept it."""
    text = raw.get("output") if isinstance(raw, Mapping) else None
    return Tail(text) if isinstance(text, str) else None


def command_of(raw: object) -> str | None:
    """The command line in a call's input, under the names that agents use."""
    if not isinstance(raw, Mapping):
        return None
    for name in ("command", "cmd", "script"):
        match raw.get(name):
            case str(line) if line.strip():
                return line
            case list(words) if words and all(isinstance(word, str) for word in words):
                import shlex

                return shlex.join(words)
            case _:
                pass
    return None


def content_word(block: v1.ContentBlock) -> str:
    """Content that is no text, as words in brackets."""
    match block:
        case v1.TextBlock(text=text):
            return clean(text)
        case v1.ImageBlock(mime_type=mime, data=data):
            return f"[image: {one_line(mime)}, {_size(data)}]"
        case v1.AudioBlock(mime_type=mime, data=data):
            return f"[audio: {one_line(mime)}, {_size(data)}]"
        case v1.ResourceLink(name=name, uri=uri):
            return f"[link: {one_line(name)}, {exact(uri)}]"
        case v1.EmbeddedResource(resource=resource):
            return f"[resource: {exact(resource.uri)}]"
        case _:
            return f"[{block.kind}]"


def _size(data: str) -> str:
    count = len(data) * 3 // 4
    return f"{count} bytes" if count < 10_000 else f"{count // 1024} KiB"
