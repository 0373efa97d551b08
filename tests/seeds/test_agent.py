"""Every shape that the seeds show of a client is sent as bytes to a real agent process, and answered as they show."""

import asyncio
from pathlib import Path

import pytest

from tests.limits import limit
from tests.seeds.agent_rows import AGENT_ROWS
from tests.seeds.call_rows import CALL_ROWS
from tests.seeds.exchange import Agents, exchange_with
from tests.seeds.table import AgentRow, differences, filled

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize("row", [*AGENT_ROWS, *CALL_ROWS], ids=lambda row: f"{row.seed}: {row.name}")
async def test_what_a_client_sends_in_the_words_of_a_seed_is_done_and_answered(
    row: AgentRow, agents: Agents, tmp_path: Path
) -> None:
    async with asyncio.timeout(limit()), agents.exchange_with(row, tmp_path, {}) as talk:
        for sent in row.steps:
            await talk.play(sent)
        for asked in row.asked:
            wanted = filled(asked, talk.words)
            assert any(not differences(wanted, each) for each in talk.asked), (asked, talk.asked)


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"{not json", -32700), (b'{"jsonrpc":"2.0","id":9,"method":7}', -32600), (b"[]", -32600)],
    ids=["no JSON", "no request", "an empty batch"],
)
async def test_what_is_not_a_message_is_answered_with_its_code(line: bytes, code: int, tmp_path: Path) -> None:
    row = AgentRow("garbage", "guide", [str(code)], [])
    async with asyncio.timeout(limit()), exchange_with(row, tmp_path, {}) as talk:
        await talk.transport.send(line)
        await talk.until(lambda: any("error" in each for each in talk.answers.values()))
        (answer,) = talk.answers.values()
        assert answer["error"]["code"] == code
