"""What is sent with a turn."""

from typing import Any

import msgspec
import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.engines.codex import wire
from antiphon.engines.codex.settings import CodexSettings
from antiphon.engines.process import CliRefused
from antiphon.errors import AcpError, ConnectionClosed
from tests.agent.editor import FULL, only_prompt, playing
from tests.rows import each_row

WIDE = {
    "sandbox_workspace_write": {
        "writable_roots": [],
        "network_access": True,
    },
    "model_reasoning_summary": "concise",
}


class Configuration:
    """A server that is asked for nothing but its configuration: an answer after the other, each the text of a result or an error."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def call(self, method: str, params: dict[str, Any], kind: type[Any]) -> Any:
        assert (method, params) == ("config/read", {"cwd": "/w"})
        answer = self.answers.pop(0)
        if isinstance(answer, AcpError):
            raise answer
        return wire.read(msgspec.Raw(msgspec.json.encode(answer)), kind)


async def learning(server: Any, mode: str | None, times: int = 2, **opened: Any) -> list[Any]:
    """What comes of turns that begin one after the other: what each is started with, or the error."""
    found: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        choosing = CodexSettings(turn.session)
        choosing.begin([], msgspec.convert({"thread": {"id": "t"}, "model": "choir", **opened}, wire.ThreadOpened))
        if mode is not None:
            choosing.set_option("mode", mode)
        for _ in range(times):
            try:
                await choosing.learn(server)
                found.append(choosing.begin_turn())
            except AcpError as error:
                found.append(error)

    async with playing(only_prompt(prompt), FULL) as editor:
        await editor.turn()
    return found


ASKS = {"approvalPolicy": "on-request", "sandboxPolicy": {"type": "readOnly"}}


@pytest.mark.parametrize(
    "trouble", [CliRefused("Codex", "config/read", "no"), ["something else"]], ids=["refused", "ill"]
)
async def test_a_configuration_that_is_not_known_widens_nothing(trouble: Any) -> None:
    first, second = await learning(Configuration(trouble, {"config": WIDE}), "acceptEdits")
    assert first == {**ASKS, "summary": "auto", "collaborationMode": first["collaborationMode"]}
    assert second["sandboxPolicy"] == {"type": "readOnly", "networkAccess": True} and second["summary"] == "concise"


async def test_a_server_that_dies_is_asked_again_after_its_restart() -> None:
    lost = ConnectionClosed("it died")
    failed, turn = await learning(Configuration(lost, {"config": WIDE}), "dontAsk")
    assert failed is lost and turn["sandboxPolicy"]["networkAccess"] is True


@pytest.mark.parametrize("mode", [None, "default", "bypassPermissions"])
async def test_other_modes_need_no_configuration_and_it_is_asked_for_again(mode: str | None) -> None:
    server = Configuration(CliRefused("Codex", "config/read", "no"), {"config": WIDE})
    first, second, third = await learning(server, mode, 3)
    assert (first["summary"], second["summary"], third["summary"]) == ("auto", "concise", "concise")


WORKSPACE = {"type": "workspaceWrite", "writableRoots": ["/songs"]}
GRANULAR = {"granular": {"sandbox_approval": True}}


@each_row(
    ("approval", "sandbox", "mode", "sent"),
    [
        ("on-request", WORKSPACE, "acceptEdits", ("on-request", {"type": "readOnly"})),
        ("on-request", {**WORKSPACE, "networkAccess": True}, "acceptEdits", ("on-request", {"type": "readOnly", "networkAccess": True})),
        ("never", WORKSPACE, "dontAsk", ("on-request", {"type": "readOnly"})),
        (GRANULAR, WORKSPACE, "configured", (GRANULAR, {"type": "readOnly"})),
        ("untrusted", WORKSPACE, "configured", None),
        ("on-request", {"type": "readOnly"}, "default", None),
        ("never", {"type": "readOnly"}, "configured", None),
        ("never", {"type": "dangerFullAccess"}, "bypassPermissions", None),
        ("on-request", {"type": "dangerFullAccess"}, "configured", None),
    ],
)  # fmt: skip
async def test_a_configuration_of_the_users_own_that_lets_codex_write_the_workspace_unasked_makes_it_ask(
    approval: Any, sandbox: Any, mode: str, sent: Any
) -> None:
    """And the mode goes on to be the one that it was, also when Codex sends how the thread is set up now."""
    found: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        choosing = CodexSettings(turn.session)
        opened = {"thread": {"id": "t"}, "model": "choir", "approvalPolicy": approval, "sandbox": sandbox}
        choosing.begin([], msgspec.convert(opened, wire.ThreadOpened))
        started = choosing.begin_turn()
        found.append(
            (started.get("approvalPolicy"), started.get("sandboxPolicy")) if "sandboxPolicy" in started else None
        )
        now = {"model": "choir", "approvalPolicy": approval, "sandboxPolicy": sandbox} | started
        await choosing.settings_are(msgspec.convert(now, wire.ThreadSettings, strict=False))
        found.append(choosing.mode)
        found.append(choosing.accepts_edits)
        other = CodexSettings(turn.session)  # the same session, opened once more
        other.follow(choosing)
        opened |= {"approvalPolicy": now["approvalPolicy"], "sandbox": now["sandboxPolicy"]}
        other.begin([], msgspec.convert(opened, wire.ThreadOpened))
        found.append(other.mode)

    async with playing(only_prompt(prompt), FULL) as editor:
        await editor.turn()
    assert found == [sent, mode, sent is not None, mode]


@pytest.mark.parametrize(
    ("collaboration", "mode", "sent"),
    [
        ({"mode": "plan"}, "acceptEdits", ["default", "default"]),
        (None, "acceptEdits", ["default", "default"]),
        ({"mode": "default"}, "acceptEdits", [None, None]),
        ({"mode": "default"}, "plan", ["plan", "plan"]),
        ({"mode": "plan"}, None, [None, None]),
    ],
)
async def test_a_thread_that_may_be_in_plan_mode_is_sent_out_of_it(
    collaboration: Any, mode: str | None, sent: list[str | None]
) -> None:
    turns = await learning(Configuration({"config": {}}), mode, collaborationMode=collaboration)
    assert [turn.get("collaborationMode", {}).get("mode") for turn in turns] == sent
