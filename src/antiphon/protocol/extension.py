"""The extension of version 1 by which our SDKs and the translators exchange what only version 2 has.

Agents and clients are written in version 1 here, and some things of version 2 have no place there. They are exchanged as version 2 has
them, with these names:

    ================================  =====================================================================================
    message                           what it carries
    ================================  =====================================================================================
    `_antiphon/v2/session/update`     notification: the params of `session/update` in version 2. To the translator and from it: a
                                      `state_update`; a `tool_call_update` or `terminal_update` with its `capabilities` alone
    `_antiphon/v2/tool_call/cancel`   request: the params of `tool_call/cancel`
    `_antiphon/v2/terminal/cancel`    request: the params of `terminal/cancel`
    `_antiphon/v2/session/prompt`     notification to a client: `sessionId`, `prompt` and `messageId`. The prompt was inserted
    `_meta["antiphon/version2"]`      of a prompt: its `messageId`, to an agent; a number `prompt` that the client chose, from a
                                      client. Of updates and results: words that version 1 does not have, as they were
    ================================  =====================================================================================

Both ends are in one process: an SDK uses it where its own transport translates, and a translator where the SDK that made it says so.
A peer of version 1 never receives any of it, and a peer of version 2 gets plain version 2.
"""

from typing import Final, NamedTuple

from antiphon.protocol.base import Json, JsonObject, Model
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "CANCEL_METHODS", "CANCEL_TERMINAL", "CANCEL_TOOL_CALL", "INSERTED", "KEY", "MAX_WORK", "TERMINAL", "TOOL_CALL", "UPDATE",
    "ExtensionUpdate", "InsertedPrompt", "OpenWork", "WorkState", "kept_in", "work_of",
]  # fmt: skip

KEY: Final = "antiphon/version2"
"""In `_meta`: what only version 2 has."""

TOOL_CALL: Final = "tool_call"
TERMINAL: Final = "terminal"

MAX_WORK: Final = 1_000
"""Pieces of background work, or of work that can be cancelled alone, that are kept for a session. Further ones are dropped."""


@unknown_reads_as(None)
class WorkState(Word):
    """What an agent does in a session. An unknown word means that the agent is busy in a way that this version does not know."""

    IDLE = "idle"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"


class OpenWork(NamedTuple):
    """A piece of an agent's work: a tool call or a terminal by its id. Of any other kind the id may be empty."""

    kind: str
    """`tool_call`, `terminal`, or a word that is not known here."""
    id: str


class ExtensionUpdate(Model, frozen=True):
    """An update that version 1 does not have."""

    session_id: str
    update: JsonObject


class InsertedPrompt(Model, frozen=True):
    """The agent has taken a prompt into the session, as a message with an id."""

    session_id: str
    prompt: int
    message_id: str


UPDATE: Final = Notice("_antiphon/v2/session/update", ExtensionUpdate)
INSERTED: Final = Notice("_antiphon/v2/session/prompt", InsertedPrompt)
CANCEL_TOOL_CALL: "Final[Call[Json, Json]]" = Call("_antiphon/v2/tool_call/cancel", JsonObject, JsonObject)
CANCEL_TERMINAL: "Final[Call[Json, Json]]" = Call("_antiphon/v2/terminal/cancel", JsonObject, JsonObject)

CANCEL_METHODS: Final = {
    TOOL_CALL: (CANCEL_TOOL_CALL, "toolCallId"),
    TERMINAL: (CANCEL_TERMINAL, "terminalId"),
}
"""Kind of work → the request that cancels a piece of it, and the member of its params that has the id."""


def kept_in(meta: JsonObject | None) -> JsonObject:
    """Return what `_meta` has of version 2."""
    found = meta.get(KEY) if meta else None
    return found if isinstance(found, dict) else {}


def work_of(items: object) -> tuple[OpenWork, ...] | None:
    """Read a list of background work. None: it is no list, so nothing is reported. What is no object in it is left out."""
    if not isinstance(items, list):
        return None
    found: list[OpenWork] = []
    for item in items[:MAX_WORK]:
        if isinstance(item, dict) and isinstance(kind := item.get("type"), str):
            id = item.get(CANCEL_METHODS[kind][1]) if kind in CANCEL_METHODS else None
            found.append(OpenWork(kind, id if isinstance(id, str) else ""))
    return tuple(found)
