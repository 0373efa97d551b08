"""A call that was denied: marked when it fails, kept so, and still denied when the session is loaded."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.base import decoder
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import CallEntry, fold
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, agent_over, state_of

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome

_update: "msgspec.json.Decoder[v1.Update]" = decoder(v1.Update)  # type: ignore[arg-type]  # a union is a type to msgspec

OPTIONS = [
    v1.PermissionOption("yes", "Yes", v1.PermissionOptionKind.ALLOW_ONCE),
    v1.PermissionOption("no", "No", v1.PermissionOptionKind.REJECT_ONCE),
]


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state_of(monkeypatch.setenv, tmp_path)


def calls(editor: Editor) -> list[tuple[str, str, bool]]:
    entries = fold([_update.decode(msgspec.json.encode(update)) for update in editor.updates()]).entries
    return [(each.id, each.status.value, each.denied) for each in entries if isinstance(each, CallEntry)]


@pytest.mark.parametrize("route", ["alto", "duet"])
@pytest.mark.parametrize(
    ("answer", "command", "status", "denied"),
    [
        (v1.PermissionOptionKind.ALLOW_ONCE, "make", "completed", False),
        (v1.PermissionOptionKind.ALLOW_ONCE, "make", "failed", False),
        (v1.PermissionOptionKind.REJECT_ONCE, "make", "failed", True),
        (v1.PermissionOptionKind.REJECT_ONCE, "make", "completed", False),
        (None, "git push", "failed", True),  # by a rule: the client is never asked
    ],
)
async def test_a_denied_call_is_denied_when_it_fails_and_when_it_is_loaded(
    tmp_path: Path, route: str, answer: v1.PermissionOptionKind | None, command: str, status: str, denied: bool
) -> None:
    async def ask(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        name = session.engine.name
        call = v1.ToolCall(f"{name}-1", command, v1.ToolKind.EXECUTE, name="Bash", raw_input={"command": command})
        await session.send(call)
        patch = v1.ToolCallPatch(call.tool_call_id, kind=call.kind, name="Bash", raw_input=call.raw_input)
        request = v1.RequestPermission(session.session.id, patch, OPTIONS)
        await session.session.request(m.REQUEST_PERMISSION, request)
        await session.send(v1.ToolCallUpdate(call.tool_call_id, status=v1.ToolStatus(status)))
        return None

    def decide(request: v1.RequestPermission) -> v1.PermissionResult:
        [option, *_] = [each.option_id for each in request.options if each.kind == answer]
        return v1.PermissionResult(v1.Selected(option))

    (tmp_path / "config" / "config.toml").write_text('[policy]\ndeny = ["Bash(git push *)"]\n', encoding="utf-8")
    router = Router()
    router.on_request(m.REQUEST_PERMISSION, decide)
    engines = (FakeEngine("alto", ask), FakeEngine("bass", ask))
    async with playing(agent_over(*engines), FULL, router) as editor:
        session = await editor.open(str(tmp_path))
        await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(session, "route", route))
        await editor.prompt(session, "la")
        shown = calls(editor)
    names = ["alto", "bass"] if route == "duet" else ["alto"]
    assert shown == [(f"{name}-1", status, denied) for name in names]
    async with playing(agent_over(*engines), FULL) as editor:
        await editor.connection.request(m.LOAD_SESSION, v1.LoadSession(session, str(tmp_path), []))
        assert calls(editor) == shown
