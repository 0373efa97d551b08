"""The transcript of a session while its turn is read: never behind the consumer and never ahead, also by the entries that it holds."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from antiphon import connect, v1
from antiphon.client.session import ClientSession
from antiphon.protocol.base import encode
from antiphon.transcript.entries import Entry
from antiphon.transcript.transcript import Transcript
from antiphon.transports.memory import memory_pair
from tests.connection.ends import END_TURN, Raw, answer
from tests.limits import limit
from tests.transcript.test_transcript import IDS, IMAGE, UPDATES, look
from tests.waits import turns

Bursts: TypeAlias = Sequence[tuple[int, Sequence[v1.Update]]]
"""Updates that are sent in one piece, and how often the loop turns before that."""

CONTENT = st.sampled_from([IMAGE, v1.TextBlock("loud", annotations=v1.Annotations(priority=1.0)), v1.TextBlock("")])
ANY: "st.SearchStrategy[Any]" = (
    UPDATES.filter(lambda update: update is not None)
    | st.builds(v1.AgentMessageChunk, CONTENT, IDS)
    | st.builds(v1.AgentThoughtChunk, CONTENT, IDS)
)
BURSTS = st.lists(st.tuples(st.integers(0, 3), st.lists(ANY, min_size=1, max_size=8)), max_size=8)
ACTS = st.lists(st.sampled_from(["look", "prompt", "", "", ""]), max_size=60)
"""What the consumer does after each update."""


async def play(agent: Raw, bursts: Bursts) -> None:
    """Answer what opens a session, send all in the first turn, then answer every prompt."""
    await agent.send(answer((await agent.receive())["id"], '{"protocolVersion":1}'))
    await agent.send(answer((await agent.receive())["id"], '{"sessionId":"s"}'))
    prompted = (await agent.receive())["id"]
    for pause, updates in bursts:
        await turns(pause)
        sent = [v1.SessionUpdate("s", update) for update in updates]
        await agent.send(*(b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % encode(each) for each in sent))
    while True:
        await agent.send(answer(prompted, END_TURN))
        prompted = (await agent.receive())["id"]


async def read(session: ClientSession, acts: Sequence[str]) -> None:
    """Read a turn, and compare the transcript with one that every update was applied to as it was read."""
    expected, held, others = Transcript(), dict[int, Entry](), []
    expected.add_prompt([v1.TextBlock("go")])
    rest = iter(acts)
    async for update in session.prompt("go"):
        expected.apply(update)
        held |= {entry.key: entry for entry in session.transcript.entries if entry.key not in held}
        act = next(rest, "look")
        if act == "prompt":
            others.append(session.prompt("more"))
            expected.add_prompt([v1.TextBlock("more")])
        elif act == "look":
            assert look(session.transcript) == look(expected)
            assert session.transcript.plain() == expected.plain()
            assert all(entry is held[entry.key] for entry in session.transcript.entries)
    expected.turn_ended()
    assert look(session.transcript) == look(expected)
    for other in others:
        await other


@given(BURSTS, ACTS)
def test_at_every_update_the_transcript_and_all_entries_that_are_held_are_those_of_the_updates_so_far(
    bursts: Bursts, acts: list[str]
) -> None:
    async def main() -> None:
        near, far = memory_pair()
        playing = asyncio.create_task(play(Raw(far), bursts))
        try:
            async with asyncio.timeout(limit()), connect(near) as agent:
                await read(await agent.new_session("/"), acts)
        finally:
            playing.cancel()
            await asyncio.wait([playing])
            await far.close()

    asyncio.run(main())
