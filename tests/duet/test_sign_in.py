"""With one engine signed in the joint agent works, also for clients that sign in by the first method and give up if that fails."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.auth import AgentAuth, TerminalAuth
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, agent_over, echo, state_of


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state_of(monkeypatch.setenv, tmp_path)


class Member(FakeEngine):
    """A engine that wants to be signed in to, with a key or in a terminal."""

    auth_methods = (TerminalAuth("login", "Login", "", ["--login"]), AgentAuth("key", "Key"))
    auth_aliases = {"older-login": "login"}  # noqa: RUF012

    def __init__(self, name: str, *, known: bool) -> None:
        super().__init__(name, self._play)
        self.known = known

    def _needed(self) -> RequestError:
        return RequestError(Code.AUTH_REQUIRED, "Authentication required", f"sign in to {self.name}")

    async def _play(self, session: FakeEngineSession, turn: AgentTurn) -> Any:
        if not self.known:
            raise self._needed()
        return await echo(session, turn)

    def authenticate(self, method_id: str) -> None:
        if not self.known:
            raise self._needed()

    def signed_in(self) -> bool:
        return self.known


async def signs_in(editor: Editor, method: str) -> bool:
    try:
        await editor.connection.request(m.AUTHENTICATE, v1.Authenticate(method))
    except RequestRefused as error:
        if error.code != Code.AUTH_REQUIRED:
            raise
        return False
    return True


def updates_of(editor: Editor, kind: str) -> str:
    updates = [frame["params"]["update"] for frame in editor.received if frame.get("method") == "session/update"]
    return " ".join(str(each) for each in updates if each["sessionUpdate"] == kind)


@pytest.mark.parametrize(("alto", "bass"), list(product((True, False), repeat=2)))
async def test_a_key_is_enough_if_any_engine_is_signed_in_and_a_login_in_a_terminal_is_checked(
    alto: bool, bass: bool
) -> None:
    async with playing(agent_over(Member("alto", known=alto), Member("bass", known=bass)), FULL) as editor:
        assert await signs_in(editor, "key") is (alto or bass)
        assert await signs_in(editor, "bass-key") is (alto or bass)
        assert await signs_in(editor, "login") is alto
        assert await signs_in(editor, "older-login") is alto
        assert await signs_in(editor, "bass-login") is bass


@pytest.mark.parametrize(("alto", "bass"), list(product((True, False), repeat=2)))
async def test_the_engine_that_is_signed_in_answers_with_a_notice(alto: bool, bass: bool) -> None:
    async with playing(agent_over(Member("alto", known=alto), Member("bass", known=bass)), FULL) as editor:
        session = await editor.open()
        if not alto and not bass:
            with pytest.raises(RequestRefused) as refusal:
                await editor.prompt(session, "la")
            assert refusal.value.code == Code.AUTH_REQUIRED
            return
        await editor.prompt(session, "la")
        await editor.prompt(session, "li")
        name = "alto" if alto else "bass"
        assert f"{name}: la" in updates_of(editor, "agent_message_chunk") and f"{name}: li" in updates_of(
            editor, "agent_message_chunk"
        )
        assert ("Alto is not signed in, so Bass answers" in updates_of(editor, "notice")) is not alto


@pytest.mark.parametrize("choice", ["command", "setting", "environment"])
async def test_an_engine_that_was_chosen_is_not_replaced(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if choice == "environment":
        monkeypatch.setenv("ANTIPHON_ROUTE", "alto")
    async with playing(agent_over(Member("alto", known=False), Member("bass", known=True)), FULL) as editor:
        session = await editor.open()
        if choice == "setting":
            await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(session, "route", "alto"))
        with pytest.raises(RequestRefused) as refusal:
            await editor.prompt(session, "/alto la" if choice == "command" else "la")
        assert refusal.value.code == Code.AUTH_REQUIRED and "bass" not in updates_of(editor, "agent_message_chunk")
