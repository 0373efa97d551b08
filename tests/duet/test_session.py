"""A joint session over engines of our own making: who answers, in which order, what each of them receives, and how it ends."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.agent.prompts import STEERING
from antiphon.agent.turn import AgentTurn
from antiphon.duet.agent import JointAgent
from antiphon.errors import Advice, Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, agent_over, state_of
from tests.waits import idle

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state_of(monkeypatch.setenv, tmp_path)


async def choose(editor: Editor, session: str, **options: str) -> None:
    for option, value in options.items():
        await editor.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(session, option, value))


def words(editor: Editor) -> str:
    """All that was sent, in order."""
    chunks = editor.updates("agent_message_chunk")
    return "".join(chunk["content"]["text"] for chunk in chunks)


def notices(editor: Editor) -> list[str]:
    return [notice["title"] for notice in editor.updates("notice")]


async def test_alone_an_engine_has_no_label() -> None:
    async with playing(agent_over(FakeEngine("alto"), FakeEngine("bass")), FULL) as editor:
        await editor.prompt(await editor.open(), "la")
        assert words(editor) == "alto: la"


async def test_in_a_duet_the_primary_answers_first_and_each_message_has_a_name() -> None:
    async with playing(agent_over(FakeEngine("alto"), FakeEngine("bass")), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet", primary_agent="bass")
        await editor.prompt(session, "la")
        assert words(editor) == "**Bass**\n\nbass: la\n\n**Alto**\n\nalto: la"


async def test_each_engine_receives_what_the_other_answered_with_its_next_prompt() -> None:
    alto, bass = FakeEngine("alto"), FakeEngine("bass")
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet")
        await editor.prompt(session, "one")
        await editor.prompt(session, "two")
    assert alto.given[0] == "one" and "alto: one" in bass.given[0] and bass.given[0].endswith("one")
    assert "bass: one" in alto.given[1] and "alto: one" not in alto.given[1]


async def test_engines_that_only_read_work_at_the_same_time_and_their_messages_stay_whole() -> None:
    both, begun = asyncio.Barrier(2), asyncio.Event()

    async def speak(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        await both.wait()  # neither gets here before the other does
        if session.engine.name == "bass":
            await begun.wait()
        for piece in ("one ", "two ", "three"):
            await session.send(v1.AgentMessageChunk(v1.TextBlock(piece)))
            begun.set()
            await idle()  # the other one sends a piece of its own
        return None

    async with playing(agent_over(FakeEngine("alto", speak), FakeEngine("bass", speak)), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet")
        await editor.connection.request(m.SET_MODE, v1.SetMode(session, "plan"))
        await editor.prompt(session, "la")
        assert words(editor) == "**Alto**\n\none two three\n\n**Bass**\n\none two three"


@pytest.mark.parametrize("error", [RequestError(-32050, "Hoarse", "no voice"), ValueError("a bug")])
async def test_an_engine_that_fails_is_shown_and_the_other_answers(error: Exception) -> None:
    async def fail(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        raise error

    async with playing(agent_over(FakeEngine("alto", fail), FakeEngine("bass")), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet")
        ended = await editor.prompt(session, "la")
        assert ended.stop_reason == v1.StopReason.END_TURN
        assert "bass: la" in words(editor) and any("Alto" in notice for notice in notices(editor))


async def test_if_all_fail_the_prompt_fails_with_the_first_error() -> None:
    async def fail(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        raise RequestError(-32050, "Hoarse", session.engine.name)

    async with playing(agent_over(FakeEngine("alto", fail), FakeEngine("bass", fail)), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet")
        with pytest.raises(RequestRefused) as refusal:
            await editor.prompt(session, "la")
        assert (refusal.value.code, refusal.value.data) == (-32050, "alto")


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("end_turn", "end_turn", "end_turn"),
        ("end_turn", "max_tokens", "max_tokens"),
        ("refusal", "max_tokens", "refusal"),
        ("max_turn_requests", "refusal", "max_turn_requests"),
    ],
)
async def test_how_it_ended_is_the_first_reason_that_is_none_of_peace(first: str, second: str, merged: str) -> None:
    def ends(reason: str) -> Any:
        async def end(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
            return v1.StopReason(reason)

        return end

    async with playing(agent_over(FakeEngine("alto", ends(first)), FakeEngine("bass", ends(second))), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet")
        assert (await editor.prompt(session, "la")).stop_reason == v1.StopReason(merged)


async def test_cancelling_ends_the_one_that_sings_and_those_that_would_have_and_the_next_prompt_works() -> None:
    async def hold(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        if "stay" in turn.text:
            await session.send(v1.AgentMessageChunk(v1.TextBlock("holding")))
            await asyncio.Event().wait()
        return await asyncio.shield(asyncio.ensure_future(_nothing()))

    bass = FakeEngine("bass")
    async with playing(agent_over(FakeEngine("alto", hold), bass), FULL) as editor:
        session = await editor.open()
        await choose(editor, session, route="duet")
        turn = editor.prompt(session, "stay")
        await editor.until("holding")
        editor.cancel(session)
        assert (await turn).stop_reason == v1.StopReason.CANCELLED
        assert bass.given == []
        assert (await editor.prompt(session, "go")).stop_reason == v1.StopReason.END_TURN
        assert len(bass.given) == 1


async def _nothing() -> None:
    return None


async def test_the_reviewer_gets_the_prompt_and_the_transcript_only_reads_and_findings_are_handed_back(
    tmp_path: Path,
) -> None:
    async def review(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        modes.append(session.session.modes.current_mode_id if session.session.modes else "")
        found = "No findings." if len(bass.given) > 1 else "- song.txt:1 is flat"
        await session.send(v1.AgentMessageChunk(v1.TextBlock(found)))
        return None

    async def work(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        (tmp_path / "song.txt").write_text(f"verse {len(alto.given)}\n", encoding="utf-8")
        await session.send(v1.AgentMessageChunk(v1.TextBlock("I wrote it.")))
        return None

    modes: list[str] = []
    alto, bass = FakeEngine("alto", work), FakeEngine("bass", review)
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open(str(tmp_path))
        await choose(editor, session, route="review", review="fix")
        await editor.prompt(session, "write a song")
    assert len(alto.given) == 2 and "song.txt:1 is flat" in alto.given[1]
    assert len(bass.given) == 2 and modes == ["plan", "plan"]
    assert all(part in bass.given[0] for part in ("write a song", "I wrote it.", "+verse 1"))
    assert "+verse 2" in bass.given[1]


async def test_a_reviewer_may_not_change_anything_whatever_would_allow_it(tmp_path: Path) -> None:
    async def try_to_write(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        asked = v1.ToolCallPatch("c1", title="Edit song.txt", kind=v1.ToolKind.EDIT, name="Edit",
                                 locations=[v1.ToolLocation(str(tmp_path / "song.txt"))])  # fmt: skip
        options = [
            v1.PermissionOption("yes", "Yes", v1.PermissionOptionKind.ALLOW_ONCE),
            v1.PermissionOption("no", "No", v1.PermissionOptionKind.REJECT_ONCE),
        ]
        request = v1.RequestPermission(session.session.id, asked, options)
        answers.append((await session.session.request(m.REQUEST_PERMISSION, request)).outcome)
        return None

    answers: list[v1.PermissionOutcome] = []
    async with playing(agent_over(FakeEngine("alto"), FakeEngine("bass", try_to_write)), FULL) as editor:
        session = await editor.open(str(tmp_path))
        await choose(editor, session, route="review")
        await editor.prompt(session, "la")
    assert answers == [v1.Selected("no")]


async def test_an_engine_that_cannot_be_opened_leaves_the_session_usable_and_is_tried_again() -> None:
    alto = FakeEngine("alto")
    alto.broken = RequestError(Code.AUTH_REQUIRED, "Authentication required", "sign in first")
    async with playing(agent_over(alto, FakeEngine("bass")), FULL) as editor:
        session = await editor.open()
        with pytest.raises(RequestRefused) as refusal:
            await editor.prompt(session, "/alto la")  # who is chosen is not replaced by one that is signed in
        assert refusal.value.code == Code.AUTH_REQUIRED
        alto.broken = None
        await editor.prompt(session, "la")
        assert words(editor).endswith("alto: la")


async def test_commands_of_an_engine_are_listed_beside_ours_and_one_that_is_hidden_has_its_name_before_it() -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto, FakeEngine("bass")), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/alto:review now")
        updates = [command["name"] for command in editor.updates("available_commands_update")[-1]["availableCommands"]]
        await editor.prompt(session, "/tune up")
    assert {"alto", "bass", "duet", "review", "clear", "tune", "alto:review"} <= set(updates)
    assert alto.given == ["/review now", "/tune up"]


async def test_a_mode_is_set_for_every_engine_and_for_those_that_come_later() -> None:
    alto, bass = FakeEngine("alto"), FakeEngine("bass")
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        await editor.connection.request(m.SET_MODE, v1.SetMode(session, "acceptEdits"))
        await editor.prompt(session, "/bass la")
    assert alto.modes == ["acceptEdits"] and bass.modes == ["acceptEdits"]


async def test_closing_closes_every_part() -> None:
    alto, bass = FakeEngine("alto"), FakeEngine("bass")
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/duet la")
        await editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session))
        assert (alto.closed, bass.closed) == (1, 1)


async def test_a_label_stands_apart_from_the_message_before_it_also_for_clients_that_join_everything() -> None:
    async def bare(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        await session.send(v1.AgentMessageChunk(v1.TextBlock("la")))
        return None

    async with playing(agent_over(FakeEngine("alto", bare), FakeEngine("bass", bare)), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/duet la")
        assert words(editor) == "**Alto**\n\nla\n\n**Bass**\n\nla"


async def test_the_title_is_the_first_prompt_that_is_not_a_command() -> None:
    async with playing(agent_over(FakeEngine("alto"), FakeEngine("bass")), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/status")
        await editor.prompt(session, "/bass")
        await editor.prompt(session, "/alto a song about rivers")
        await editor.prompt(session, "/bass another one")
    assert [update["title"] for update in editor.updates("session_info_update")] == ["a song about rivers"]


async def test_an_engine_that_is_not_here_is_not_another_ones_business() -> None:
    alto = FakeEngine("alto")
    async with playing(JointAgent({"alto": alto}, {"bass": Advice("there is no bass", "hire one")}), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/bass la")
        await editor.prompt(session, "/status")
    assert "there is no bass" in words(editor) and "hire one" in words(editor) and alto.given == []
    assert words(editor).count("there is no bass") == 2


async def test_what_is_added_to_a_turn_stands_before_the_answer_to_it(tmp_path: Path) -> None:
    async def hold(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        await session.send(v1.AgentMessageChunk(v1.TextBlock("holding"), "m1"))
        await added.wait()
        return None

    async def steer(self: FakeEngineSession, turn: AgentTurn) -> bool:
        await self.send(v1.AgentMessageChunk(v1.TextBlock("thanks"), "m2"))
        await idle()
        added.set()
        return True

    added = asyncio.Event()
    alto = FakeEngine("alto", hold)
    alto.steers = True
    alto.steer = steer
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        turn = editor.prompt(session, "one")
        await editor.until("holding")
        call = Call(STEERING, v1.Prompt, dict[str, str])
        assert await editor.connection.request(call, v1.Prompt(session, [v1.TextBlock("two")])) == {
            "outcome": "injected"
        }
        await turn
    async with playing(agent_over(alto), FULL) as editor:
        await editor.connection.request(m.LOAD_SESSION, v1.LoadSession(session, "/w", []))
        updates = [update["content"]["text"] for update in editor.updates() if "content" in update]
        assert updates == ["one", "holding", "two", "thanks"]
