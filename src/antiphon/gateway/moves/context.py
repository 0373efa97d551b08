"""The transcript of a session as context: for an agent that does not know the session, in front of its next prompt.

It is made of the journal, as an export is, and has what people saw: messages, calls and changes, no thoughts. The newest part of a long
session is kept.
"""

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.export.markdown import markdown
from antiphon.gateway.methods.documents import exported
from antiphon.gateway.methods.history import events_before
from antiphon.rpc.spans import params_values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.gateway.base import GatewaySession
    from antiphon.gateway.session import HubSession
    from antiphon.journal.base import JournalEntry

__all__ = ["context_block", "with_context"]

EVENTS: Final = 1000
"""Events, the newest ones, of which the context is made; about twice as many where a turn begins among them."""

CHARACTERS: Final = 96 * 1024
"""Characters of the context: some twenty thousand tokens, which every model has room for."""

_INTRODUCTION: Final = """\
[This session was with another process, on a machine that cannot be reached any more. You do not have your memory of it; this is its \
transcript{cut}. Files may have changed since. Do not repeat work that it shows as done, and do not answer it: the message of the user \
follows behind it.]
"""
_END: Final = "\n[End of the transcript.]"


async def context_block(session: "HubSession") -> bytes:
    """Return a block of a prompt with the transcript of a session so far.

    Raises:
        AcpError: the journal cannot be read.
    """
    await session.settled()  # what was recorded just now belongs to it
    entries = await events_before(session, session.last + 1, EVENTS)
    row = session.row
    return await asyncio.to_thread(_block, row, entries)


def _block(row: "GatewaySession", entries: "Sequence[JournalEntry]") -> bytes:
    text = markdown(exported(row, entries))
    is_cut = len(text) > CHARACTERS or (bool(entries) and entries[0].number > 1)
    if len(text) > CHARACTERS:
        text = _newest(text)
    introduction = _INTRODUCTION.format(cut=", its newest part" if is_cut else "")
    return msgspec.json.encode({"type": "text", "text": f"{introduction}\n{text}{_END}"})


def _newest(text: str) -> str:
    """Return the end of a text, from the beginning of a message on if one begins in it."""
    end = text[-CHARACTERS:]
    begin = end.find("\n## ")
    return end if begin < 0 else end[begin + 1 :]


def with_context(line: bytes, block: bytes) -> bytes:
    """Return a prompt with a block in front of its own."""
    for begin, end in params_values_of(line, "prompt"):
        inner = line[begin + 1 : end - 1].strip()
        return line[: begin + 1] + block + (b"," if inner else b"") + line[begin + 1 :]
    return line
