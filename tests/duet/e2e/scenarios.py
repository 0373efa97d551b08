"""What many tests of the joint agent do and look at."""

import asyncio
import os
import select
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from antiphon.protocol.v1.content import TextBlock
from antiphon.transcript.transcript import CallEntry, Entry, Message, NoticeEntry, Thought, Transcript
from tests.duet.e2e.editors import Place
from tests.engines.client import Client
from tests.engines.model.steps import wait_limit

__all__ = [
    "Line",
    "by",
    "engine_of",
    "first_words",
    "folded",
    "holds",
    "notices",
    "open_with",
    "repository",
    "shown",
    "stops",
]

Json = dict[str, Any]


async def open_with(client: Client, *, mode: str = "", **options: str) -> None:
    """A new session with these settings."""
    await client.open()
    for name, value in options.items():
        await client.session.set_config_option(name, value)
    if mode:
        await client.session.set_mode(mode)


def repository(at: Place) -> None:
    """Turn the folder into a git repository with all that is in it committed."""
    at.git("init", "--quiet")
    at.git("add", ".")
    at.git("commit", "--quiet", "--allow-empty", "-m", "as it was")


async def first_words(pipe: Path) -> str:
    """Read the first words that are written into a named pipe, with a limit that a plain read does not have."""

    def read() -> str:
        # Open for both, because a pipe without a writer cannot be opened for reading alone without waiting.
        with open(os.open(pipe, os.O_RDWR), "rb", buffering=0) as opened:
            readable, _, _ = select.select([opened], [], [], wait_limit())
            assert readable, "nothing was written"
            return (opened.read(1000) or b"").decode()

    return await asyncio.to_thread(read)


# Who sent what.


def engine_of(update: Json) -> str:
    """The engine that an update came from; empty if it is our own."""
    return str(((update.get("_meta") or {}).get("antiphon") or {}).get("engine", ""))


def by(client: Client, engine: str) -> str:
    """All that the client was shown as the words of an engine."""
    chunks = [each for each in client.updates_of("agent_message_chunk") if engine_of(each) == engine]
    return "".join(str(each["content"].get("text", "")) for each in chunks)


def notices(client: Client) -> str:
    """All notices of all sessions as one text."""
    return "\n".join(f"{each['title']}: {each.get('description')}" for each in client.updates_of("notice"))


def stops(client: Client) -> list[str]:
    """How the prompts were answered."""
    results = [each.get("result") for each in client.frames]
    return [str(each["stopReason"]) for each in results if isinstance(each, dict) and "stopReason" in each]


# What stands on the screen.


class Line(NamedTuple):
    """An entry of a transcript, in a form that can be compared."""

    kind: str
    text: str
    status: str = ""
    content: str = ""


def folded(transcript: Transcript) -> list[Line]:
    """What the user sees, without notices: they are about the moment, and not part of what was sent."""
    return [_line(entry) for entry in transcript.entries if not isinstance(entry, NoticeEntry)]


def shown(client: Client) -> list[Line]:
    """What the user sees of the session that is used."""
    return folded(client.session.transcript)


def _line(entry: Entry) -> Line:
    match entry:
        case Message():
            return Line(entry.speaker, _text(entry.blocks))
        case Thought():
            return Line("thought", _text(entry.blocks))
        case CallEntry():
            return Line("call", entry.title, str(entry.status), f"{entry.kind} {entry.content} {entry.raw_output}")
        case NoticeEntry():
            return Line("notice", entry.title)
        case _:
            return Line("compaction", _text(entry.blocks), str(entry.status))


def _text(blocks: Sequence[Any]) -> str:
    return "".join(block.text if isinstance(block, TextBlock) else f"[{type(block).__name__}]" for block in blocks)


def holds(whole: Sequence[Line], part: Sequence[Line]) -> bool:
    """Whether everything of a transcript is in another one that may go on from there: no entry is gone, no word is missing.

    A call that had not ended may have ended since, and one that had not begun may have got its title.
    """
    if len(whole) < len(part):
        return False
    return all(
        now.kind == then.kind and (now.text.startswith(then.text) or (then.kind == "call" and then.status == "pending"))
        for now, then in zip(whole, part, strict=False)
    )
