"""What `/status` says."""

from typing import Any

import msgspec
import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.engines.codex import wire
from antiphon.engines.codex.commands import status_of
from tests.agent.editor import FULL, only_prompt, playing


class Account:
    """A server that is asked about the account alone."""

    def __init__(self, window: dict[str, Any]) -> None:
        self._results = {
            "account/read": {"account": {"type": "chatgpt", "email": "ada@example.org"}},
            "account/rateLimits/read": {"rateLimits": {"primary": window}},
        }

    async def call(self, method: str, params: dict[str, Any], kind: type[Any]) -> Any:
        return wire.read(msgspec.Raw(msgspec.json.encode(self._results[method])), kind)


@pytest.mark.parametrize(
    ("resets_at", "text"),
    [
        (1_900_000_000, "5 hours: 12 % used, resets 2030-03-17 17:46 UTC"),
        (None, "5 hours: 12 % used"),
        (10**18, "5 hours: 12 % used"),
        (-(10**15), "5 hours: 12 % used"),
    ],
)
async def test_a_limit_is_shown_also_if_its_end_is_not_a_valid_time(resets_at: int | None, text: str) -> None:
    found: list[str] = []
    server: Any = Account({"usedPercent": 12, "windowDurationMins": 300, "resetsAt": resets_at})

    async def prompt(turn: AgentTurn) -> None:
        found.append(await status_of(server, turn.session))

    async with playing(only_prompt(prompt), FULL) as editor:
        await editor.turn()
    assert found[0].splitlines()[-1] == f"- {text}"
