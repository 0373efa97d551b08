"""From the lines of a file to the lines that Claude Code would have said: the same structs, for the same translator."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.engines.claude import wire
from antiphon.engines.claude.history.agents import Agents
from antiphon.engines.claude.history.chain import conversation
from antiphon.engines.claude.history.records import Index, Row, read_index, read_lines
from antiphon.engines.claude.history.typed import Finished, Printed, Said, Typed, read_text
from antiphon.protocol.base import BAD_INPUT

__all__ = ["wire_lines"]

SYNTHETIC: Final = "<synthetic>"
"""The model of a message that Claude Code made up itself."""

NO_ANSWER: Final = "No response requested."
"""What stands for the answer to a turn that was broken off; nobody was shown it."""


class _Attachment(msgspec.Struct, gc=False):
    type: str = ""
    prompt: Any = None
    commandMode: str | None = None
    source_uuid: str | None = None
    origin: Any = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    duration_ms: float | None = None


class _Marks(msgspec.Struct, rename="camel", gc=False):
    """What a file says of a line and the stream does not, or says under another name."""

    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    origin: Any = None
    tool_use_result: Any = None
    content: Any = None
    attachment: _Attachment | None = None
    compact_metadata: _Metadata | None = None


_marks: Final = msgspec.json.Decoder(_Marks)


def wire_lines(path: Path) -> Iterator[wire.Line]:
    """Everything in a session's file that was said, in its order, with the sub-agents after the calls that started them."""
    index = read_index(path)
    agents = Agents(path, index)
    waiting: list[wire.Line] = []
    for row, line in read_lines(path, conversation(index)):
        told = [*_told(row, line)]
        if told and all(isinstance(each, wire.CompactBoundary) or _is_summary(each) for each in told):
            waiting += told
            continue
        if waiting and told:
            # The command that asked for it is written down after it was done.
            told = [told[0], *waiting, *told[1:]] if _asks_to_compact(told[0]) else [*waiting, *told]
            waiting = []
        yield from told
        yield from _of_agents(agents, row)
    yield from waiting


def _of_agents(agents: Agents, row: Row) -> Iterator[wire.Line]:
    for call in row.calls:
        if (path := agents.take(call)) is None:
            continue
        index = _readable(path)
        agents.learn(index)
        for under, line in read_lines(path, index.rows):
            for told in _told(under, line):
                if isinstance(told, wire.Assistant) or (isinstance(told, wire.User) and under.results):
                    yield msgspec.structs.replace(told, parent_tool_use_id=call)
            yield from _of_agents(agents, under)


def _readable(path: Path) -> Index:
    try:
        return read_index(path, sidechain=True)
    except OSError:
        return Index([])


def _told(row: Row, line: bytes) -> Iterator[wire.Line]:
    try:
        marks = _marks.decode(line)
    except BAD_INPUT:
        marks = _Marks()
    if marks.is_compact_summary:
        yield from _summary(wire.decode(line))
        return
    if marks.is_meta or marks.is_visible_in_transcript_only:
        return
    match row.type:
        case "assistant":
            yield from _answer(row, wire.decode(line), marks)
        case "user":
            yield from _asked(row, wire.decode(line), marks)
        case "attachment" if marks.attachment is not None and marks.attachment.type == "queued_command":
            yield from _meanwhile(row, marks.attachment)
        case "system" if row.subtype == "local_command" and isinstance(marks.content, str):
            yield from _said(read_text(marks.content), row.uuid)
        case "system" if row.subtype == "compact_boundary":
            data = marks.compact_metadata or _Metadata()
            found = wire.CompactMetadata(**msgspec.structs.asdict(data))
            yield wire.CompactBoundary(compact_metadata=found, uuid=row.uuid)
        case _:
            return


def _answer(row: Row, line: wire.Line, marks: _Marks) -> Iterator[wire.Line]:
    if not isinstance(line, wire.Assistant):
        return
    texts = [block.text for block in line.message.blocks if isinstance(block, wire.TextBlock)]
    if line.message.model == SYNTHETIC and texts == [NO_ANSWER]:
        return
    if marks.is_api_error_message:  # long over: what was shown is told, and nothing fails for it
        yield from _said(Printed("\n".join(texts)), row.uuid)
    else:
        yield line


def _summary(line: wire.Line) -> Iterator[wire.Line]:
    if isinstance(line, wire.User):  # the stream marks it thus
        yield msgspec.structs.replace(line, is_synthetic=True)


def _asked(row: Row, line: wire.Line, marks: _Marks) -> Iterator[wire.Line]:
    if not isinstance(line, wire.User):
        return
    kept: list[wire.Block] = []
    for block in line.message.blocks:
        said = read_text(block.text) if isinstance(block, wire.TextBlock) else None
        if isinstance(said, Typed):
            kept.append(wire.TextBlock(text=said.text))
        elif isinstance(block, wire.TextBlock):
            yield from _said(said, row.uuid)
        else:
            kept.append(block)
    if not kept or not (row.results or _is_human(marks.origin)):
        return
    message = msgspec.structs.replace(line.message, content=kept)
    yield msgspec.structs.replace(
        line, message=message, tool_use_result=marks.tool_use_result, is_replay=False, uuid=row.uuid
    )


def _meanwhile(row: Row, found: _Attachment) -> Iterator[wire.Line]:
    """What was said while the model was at work, and reached it in the middle of its turn."""
    uuid = found.source_uuid or row.uuid
    blocks: list[wire.Block] = []
    for part in found.prompt if isinstance(found.prompt, list) else [{"type": "text", "text": found.prompt}]:
        blocks += _converted(part)
    for block in blocks:
        said = read_text(block.text) if isinstance(block, wire.TextBlock) else None
        if isinstance(said, Finished):
            yield from _said(said, uuid)
    if found.commandMode in (None, "prompt") and _is_human(found.origin) and blocks:
        yield wire.User(message=wire.Message(role="user", content=blocks), uuid=uuid)


def _converted(part: Any) -> list[wire.Block]:
    try:
        return [msgspec.convert(part, wire.Block)]
    except BAD_INPUT:
        return []


def _said(said: Said | None, uuid: str) -> Iterator[wire.Line]:
    match said:
        case Typed(text=text):
            yield wire.User(message=wire.Message(role="user", content=[wire.TextBlock(text=text)]), uuid=uuid)
        case Printed(text=text):
            message = wire.Message(id=uuid, role="assistant", model=SYNTHETIC, content=[wire.TextBlock(text=text)])
            yield wire.Assistant(message=message, uuid=uuid)
        case Finished():
            yield wire.TaskNotification(**msgspec.structs.asdict(said))
        case None:
            return


def _is_human(origin: Any) -> bool:
    return not isinstance(origin, dict) or origin.get("kind") in (None, "human")


def _is_summary(line: wire.Line) -> bool:
    return isinstance(line, wire.User) and line.is_synthetic


def _asks_to_compact(line: wire.Line) -> bool:
    if not isinstance(line, wire.User):
        return False
    first = next(iter(line.message.blocks), None)
    return isinstance(first, wire.TextBlock) and first.text.startswith("/compact")
