"""Two clients of one agent that open the same session: its updates arrive where it was opened last."""

from pathlib import Path

import pytest

from antiphon.engines.base import Host
from antiphon.engines.codex.engine import Codex
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import playing
from tests.engines.codex.alone import real
from tests.engines.codex.place import place
from tests.engines.codex.versions import EACH
from tests.engines.model.steps import Gate, Text, Wait


@pytest.mark.slow
@pytest.mark.parametrize("which", EACH)
async def test_a_prompt_fails_when_another_client_opens_its_session(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    with place(tmp_path, real(which), which) as at:
        for name, value in at.environment.items():
            if at.mark not in value:  # else what this process keeps running for itself would count as left behind
                monkeypatch.setenv(name, value)
        host, folder = Host(Codex()), str(at.folder)
        async with playing(host) as first, playing(host, leaves=1) as second:
            session = await first.open(folder)
            await first.prompt(session, "remember the river")
            at.model.answers(Text("la "), Wait(gate), Text("la"))
            singing = first.prompt(session, "sing")
            await gate.is_reached()
            await second.connection.request(m.LOAD_SESSION, v1.LoadSession(session, folder, []))
            with pytest.raises(RequestRefused, match="opened elsewhere"):
                await singing
            gate.open()
            await second.until("la")  # the turn itself goes on, and its updates arrive there
            assert (await second.prompt(session, "go on")).stop_reason is v1.StopReason.END_TURN
            assert (await first.prompt(session, "back again")).stop_reason is v1.StopReason.END_TURN
            assert "back again" in "".join(first.order) and "back again" not in "".join(second.order)
