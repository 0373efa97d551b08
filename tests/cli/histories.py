"""Joint sessions for tests of `antiphon sessions`: written as the agent writes them, through the store and the events."""

import asyncio
from collections.abc import Sequence

from antiphon.duet.history import events
from antiphon.duet.history.events import EndEvent, Event, PromptEvent
from antiphon.protocol import v1
from antiphon.store.schema import open_database
from antiphon.store.sessions import EngineSessionStore, SessionStore

AT = 1767323045.0
"""2026-01-02 03:04:05 UTC."""


def asked(*prompt: str | v1.ContentBlock, by: str = "") -> PromptEvent:
    blocks = [v1.TextBlock(each) if isinstance(each, str) else each for each in prompt]
    return PromptEvent(AT, blocks, "m", by)


def message_event(text: str, engine: str = "claude", message_id: str | None = None) -> Event:
    return events.update_event(v1.AgentMessageChunk(v1.TextBlock(text), message_id), engine)


def thought(text: str, engine: str = "claude") -> Event:
    return events.update_event(v1.AgentThoughtChunk(v1.TextBlock(text)), engine)


def called(
    title: str,
    *content: v1.ToolContent,
    engine: str = "claude",
    kind: v1.ToolKind = v1.ToolKind.EXECUTE,
    status: v1.ToolStatus = v1.ToolStatus.COMPLETED,
) -> Event:
    call = v1.ToolCall(f"call {title}", title, kind=kind, status=status, content=list(content))
    return events.update_event(call, engine)


def ended(engine: str = "claude", reason: str = "end_turn", error: str = "") -> EndEvent:
    return EndEvent(AT, engine, reason, error)


def write(
    id: str,
    cwd: str,
    history: Sequence[Event | bytes],
    *,
    title: str | None = None,
    state: bytes = b"",
    engine_sessions: dict[str, str] | None = None,
    engine: str = "antiphon",
    client: str = "",
) -> None:
    """Put a session into the store of this environment."""

    async def put() -> None:
        async with open_database() as database:
            store = SessionStore(database)
            await store.create(id, engine, cwd, client=client)
            await store.append(id, [each if isinstance(each, bytes) else events.pack(each) for each in history])
            await store.rename(id, title)
            await store.set_state(id, state)
            await EngineSessionStore(database).set_engine_sessions(id, engine_sessions or {})

    asyncio.run(put())
