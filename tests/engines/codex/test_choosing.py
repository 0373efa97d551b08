"""What is sent with a turn."""

from typing import Any

import msgspec
import pytest

from antiphon.agent.turn import Turn
from antiphon.engines.codex import wire
from antiphon.engines.codex.choosing import Choosing
from antiphon.engines.codex.server import ServerRefused
from antiphon.errors import AcpError, ConnectionClosed, RequestError
from tests.agent.editor import FULL, only_prompt, playing

NARROW = {
    "sandbox_workspace_write": {
        "writable_roots": [],
        "network_access": False,
        "exclude_tmpdir_env_var": True,
        "exclude_slash_tmp": True,
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

    async def prompt(turn: Turn) -> None:
        choosing = Choosing(turn.session)
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


@pytest.mark.parametrize("trouble", [ServerRefused("config/read", "no"), ["something else"]], ids=["refused", "ill"])
async def test_a_workspace_that_is_not_known_is_an_error_and_not_a_wider_sandbox(trouble: Any) -> None:
    failed, turn = await learning(Configuration(trouble, {"config": NARROW}), "acceptEdits")
    assert isinstance(failed, RequestError) and "sandbox of the workspace" in str(failed)
    assert turn["sandboxPolicy"]["excludeSlashTmp"] is True and turn["summary"] == "concise"


async def test_a_server_that_dies_is_asked_again_after_its_restart() -> None:
    lost = ConnectionClosed("it died")
    failed, turn = await learning(Configuration(lost, {"config": NARROW}), "dontAsk")
    assert failed is lost and turn["sandboxPolicy"]["excludeTmpdirEnvVar"] is True


@pytest.mark.parametrize("mode", [None, "default", "bypassPermissions"])
async def test_other_modes_need_no_configuration_and_it_is_asked_for_again(mode: str | None) -> None:
    server = Configuration(ServerRefused("config/read", "no"), {"config": NARROW})
    first, second, third = await learning(server, mode, 3)
    assert (first["summary"], second["summary"], third["summary"]) == ("auto", "concise", "concise")


async def test_a_workspace_that_the_thread_itself_tells_of_is_known() -> None:
    sandbox = {"type": "workspaceWrite", "writableRoots": ["/songs"], "excludeSlashTmp": True}
    [turn] = await learning(Configuration(ServerRefused("config/read", "no")), "acceptEdits", 1, sandbox=sandbox)
    assert turn["sandboxPolicy"] == sandbox


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
async def test_a_thread_that_may_be_in_plan_mode_is_told_to_leave_it(
    collaboration: Any, mode: str | None, sent: list[str | None]
) -> None:
    turns = await learning(Configuration({"config": {}}), mode, collaborationMode=collaboration)
    assert [turn.get("collaborationMode", {}).get("mode") for turn in turns] == sent
