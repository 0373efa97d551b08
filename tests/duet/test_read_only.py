"""Who reviews only looks, and no engine makes the session less careful than the user wants it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import MODES, FakeEngine, FakeEngineSession, agent_over, echo, state_of

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state_of(monkeypatch.setenv, tmp_path)


async def option(editor: Editor, session: str, id: str, value: str) -> None:
    await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(session, id, value))


def mode(engine: FakeEngine) -> str:
    modes = engine.sessions[-1].modes
    return "" if modes is None else modes.current_mode_id


async def test_after_a_review_the_reviewer_is_in_its_mode_also_if_none_was_chosen() -> None:
    async def review(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        seen.append(mode(bass))
        return None

    seen: list[str] = []
    bass = FakeEngine("bass", review)
    async with playing(agent_over(FakeEngine("alto"), bass), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/review la")
        await editor.prompt(session, "/bass li")
    assert seen == ["plan", "default"]


async def test_a_mode_that_is_chosen_during_a_review_leaves_the_reviewer_reading_only() -> None:
    async def review(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        begun.set()
        await goes_on.wait()
        seen.append(mode(bass))
        return None

    begun, goes_on = asyncio.Event(), asyncio.Event()
    seen: list[str] = []
    alto, bass = FakeEngine("alto"), FakeEngine("bass", review)
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        turn = editor.prompt(session, "/review la")
        await begun.wait()
        await editor.connection.request(m.SET_MODE, v1.SetMode(session, "acceptEdits"))
        goes_on.set()
        await turn
        assert (seen, mode(alto)) == (["plan"], "acceptEdits")
        await editor.prompt(session, "/bass li")
    assert mode(bass) == "acceptEdits"


async def test_an_engine_without_a_mode_to_read_only_does_not_review() -> None:
    bass = FakeEngine("bass")
    bass.offered_modes = [v1.Mode("wild", "Wild"), v1.Mode("wilder", "Wilder")]
    async with playing(agent_over(FakeEngine("alto"), bass), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/review la")
        updates = " ".join(notice["title"] for notice in editor.updates("notice"))
    assert "no mode in which it only looks" in updates and bass.given == []


async def test_an_engine_that_only_reads_may_not_write_through_the_client_either(tmp_path: Path) -> None:
    async def write(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        path = str(tmp_path / "song.txt")
        with pytest.raises(Exception, match="denied"):
            await session.session.request(m.WRITE_TEXT_FILE, v1.WriteTextFile(session.session.id, path, "la"))
        tried.append(path)
        return None

    tried: list[str] = []
    async with playing(agent_over(FakeEngine("alto"), FakeEngine("bass", write)), FULL) as editor:
        session = await editor.open(str(tmp_path))
        await editor.prompt(session, "/review la")
    assert tried


@pytest.mark.parametrize(("guarded", "wanted", "becomes"), [
    (True, "acceptEdits", "default"),
    (False, "bypassPermissions", "default"),
    (False, "acceptEdits", "acceptEdits"),
])  # fmt: skip
async def test_an_engine_changes_the_mode_of_the_session_only_as_far_as_the_user_can_have_agreed(
    guarded: bool, wanted: str, becomes: str
) -> None:
    async def change(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        session.session.modes = v1.ModeState(wanted, [*MODES, v1.Mode("bypassPermissions", "Bypass")])
        await session.session.update(v1.CurrentModeUpdate(wanted))
        return None

    alto = FakeEngine("alto", change)
    alto.guarded = guarded
    agent = agent_over(alto, FakeEngine("bass"))
    async with playing(agent, FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "la")
        await editor.prompt(session, "/status")
        await editor.prompt(session, "/bass li")
        assert mode(agent.engines["bass"]) == becomes  # type: ignore[arg-type]  # a engine


async def test_an_engine_that_will_not_change_its_mode_is_not_left_open_twice() -> None:
    bass = FakeEngine("bass")
    bass.stubborn = True
    async with playing(agent_over(FakeEngine("alto"), bass), FULL) as editor:
        session = await editor.open()
        await editor.connection.request(m.SET_MODE, v1.SetMode(session, "acceptEdits"))
        for _ in range(2):
            with pytest.raises(RequestRefused, match="I sing as I like"):
                await editor.prompt(session, "/bass la")
    assert bass.closed == len(bass.sessions)


async def test_a_mode_of_one_engine_alone_holds_until_another_is_chosen_for_all() -> None:
    alto, bass = FakeEngine("alto"), FakeEngine("bass")
    bass.offered_modes = [*MODES, v1.Mode("humming", "Humming")]
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/duet la")
        await option(editor, session, "bass_mode", "humming")
        await editor.prompt(session, "li")
        assert (mode(alto), mode(bass)) == ("default", "humming")
        await option(editor, session, "mode", "plan")
        assert (mode(alto), mode(bass)) == ("plan", "plan")


async def test_updates_of_an_engine_that_was_closed_are_not_shown_in_the_fresh_session() -> None:
    alto = FakeEngine("alto", echo)
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "la")
        old = alto.sessions[0]
        await editor.prompt(session, "/clear")
        with pytest.raises(Exception, match="closed"):
            await old.update(v1.AgentMessageChunk(v1.TextBlock("late")))
        assert "late" not in editor.order
