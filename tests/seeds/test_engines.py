"""What the seeds show of Claude Code and Codex, sent by a stand-in for each to a real agent process, is sent to its client."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.limits import limit
from tests.seeds.engine_rows import ENGINE_ROWS
from tests.seeds.exchange import ROOT, Agents, exchange_with, is_about_the_connection
from tests.seeds.table import AgentRow, differences, filled

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "$SESSION",
    "tools": ["Read", "Edit", "Bash"],
    "model": "claude-opus-4-5-20251101",
}


VARIABLES = {"claude": "CLAUDE_CODE_EXECUTABLE", "codex": "CODEX_EXECUTABLE"}


def environment(row: AgentRow, folder: Path) -> dict[str, str]:
    """A stand-in for the program of the row's engine, with what it says to every prompt."""
    program = folder / row.agent
    stand_in = ROOT / "tests" / "engines" / row.agent / "stand_in.py"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = auth ]; then echo \'{"loggedIn": true}\'; exit; fi\n'
        f'exec "{sys.executable}" "{stand_in}" "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    lines = [INIT, *row.says] if row.agent == "claude" else row.says
    text = "\n".join(json.dumps(line) for line in lines)
    (folder / "lines.jsonl").write_text("\n\n".join([text] * 5), encoding="utf-8")
    return {
        VARIABLES[row.agent]: str(program),
        "STAND_IN_LINES": str(folder / "lines.jsonl"),
        "STAND_IN_ANSWERS": str(folder / "answers.jsonl"),
        "ANTHROPIC_API_KEY": "none",
        "IS_SANDBOX": "1",  # else Claude Code does not let root have the mode without questions
    }


@pytest.mark.parametrize("row", ENGINE_ROWS, ids=lambda row: f"{row.agent}: {row.name}, {row.steps[-1].method}")
async def test_messages_of_an_engine_in_a_seeds_words_reach_the_client(
    row: AgentRow, agents: Agents, tmp_path: Path
) -> None:
    # A Claude Code is started for each session and reads the lines of its row then. The thread of a Codex always has the same id,
    # so two of its sessions cannot be distinguished in one agent.
    shares = row.agent == "claude" and not is_about_the_connection(row)
    start, folder = (agents.exchange_with, agents.folder(row)) if shares else (exchange_with, tmp_path)
    async with asyncio.timeout(limit()), start(row, tmp_path, environment(row, folder)) as talk:
        for sent in row.steps:
            await talk.play(sent)
        for asked in row.asked:
            wanted = filled(asked, talk.words)
            assert any(not differences(wanted, each) for each in talk.asked), (asked, talk.asked)
    if row.received:
        answers = [
            json.loads(line)["result"] for line in (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        assert [differences(*pair) for pair in zip(row.received, answers, strict=True) if differences(*pair)] == [], (
            answers
        )
