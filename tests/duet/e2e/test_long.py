"""A history of twenty thousand events."""

import pytest

from antiphon import v1
from antiphon.duet.history.events import pack, update_event
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore
from tests.duet.e2e.editors import Place
from tests.engines.client import connected

pytestmark = pytest.mark.slow

MANY = 20_000
MESSAGES = 20
"""Messages that they are pieces of."""


async def lengthen(at: Place, id: str) -> str:
    """Add to what was sent in a session: all of it."""
    pieces = [(f"piece {number} ", f"message-{number * MESSAGES // MANY}") for number in range(MANY)]
    updates = [v1.AgentMessageChunk(v1.TextBlock(text), message) for text, message in pieces]
    async with open_database(at.state) as database:
        await SessionStore(database).append(id, [pack(update_event(update, "demo")) for update in updates])
    return "".join(text for text, _ in pieces)


async def test_a_long_history_is_replayed_with_its_pieces_merged(at_demo: Place) -> None:
    async with connected(at_demo) as client:
        first = await client.say("hello")
        id = client.session.id
    added = await lengthen(at_demo, id)
    async with connected(at_demo) as client:
        again = await client.load(id)
        assert again.text == first.text + added
        chunks = client.updates_of("agent_message_chunk")
        assert len({each.get("messageId") for each in chunks}) <= len(chunks) <= MESSAGES + 10
        assert (await client.say("and now?")).stop == "end_turn"
