"""A new session is new, or the same client's last one in that directory; `/continue` goes on with that of any client."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import Code, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.fork_point import fork_meta
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, agent_over, state_of

PEOPLE = ("zed", "neovim", "antiphon-chat")
SCRIPTS = ("antiphon-run", "antiphon-check")
GATEWAY = "antiphon-gateway"
"""A client of many users: what one of them did last is not for the next one."""

CLIENTS = (*PEOPLE, *SCRIPTS, GATEWAY, None)


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    state_of(monkeypatch.setenv, tmp_path)
    monkeypatch.setenv("ANTIPHON_AUTO_RESUME", "true")
    return tmp_path / "state"


def texts_of(editor: Editor, kind: str = "user_message_chunk") -> list[str]:
    updates = [frame["params"]["update"] for frame in editor.received if frame.get("method") == "session/update"]
    return [update["content"]["text"] for update in updates if update["sessionUpdate"] == kind]


def notices(editor: Editor) -> list[dict[str, Any]]:
    updates = [frame["params"]["update"] for frame in editor.received if frame.get("method") == "session/update"]
    return [update for update in updates if update["sessionUpdate"] == "notice"]


VISITS = st.lists(
    st.tuples(
        st.sampled_from(CLIENTS),
        st.lists(st.tuples(st.sampled_from(("/w", "/v")), st.booleans()), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)
"""Who comes, and in which directories each begins sessions one after the other, with a prompt or without."""


@settings(max_examples=25)
@given(VISITS)
async def test_a_client_gets_a_new_session_or_its_own_last_one(
    visits: list[tuple[str | None, list[tuple[str, bool]]]],
) -> None:
    last: dict[tuple[str | None, str], str] = {}
    known: set[str] = set()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        state_of(patch.setenv, Path(folder))
        patch.setenv("ANTIPHON_AUTO_RESUME", "true")
        for client, opened in visits:
            begun: set[str] = set()
            async with playing(agent_over(FakeEngine("alto")), FULL, name=client) as editor:
                for cwd, speaks in opened:
                    expected = last.get((client, cwd)) if client in PEOPLE and cwd not in begun else None
                    begun.add(cwd)
                    id = await editor.open(cwd)
                    if expected is None:
                        assert id not in known, f"a new session of {client} in {cwd} is not new"
                    else:
                        assert id == expected, f"{client} goes on in {cwd} with that of another client"
                    known.add(id)
                    if speaks:
                        await editor.prompt(id, f"{client} was here")
                        last[client, cwd] = id


async def test_a_thread_that_was_closed_is_not_opened_again_by_a_new_one() -> None:
    async with playing(agent_over(FakeEngine("alto")), FULL, name="zed") as editor:
        first = await editor.open()
        await editor.prompt(first, "la")
        await editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(first))
        assert await editor.open() != first


async def test_a_person_sees_that_a_session_was_resumed_and_how_to_have_it_otherwise() -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        await editor.prompt(await editor.open(), "a song about rivers")
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        await editor.open()
        await editor.until("notice")
        (shown,) = notices(editor)
        assert "a song about rivers" in shown["title"] and "/clear" in shown["description"]
        assert "auto_resume" in shown["description"] and texts_of(editor) == ["a song about rivers"]


@pytest.mark.parametrize("said_before", [[], ["/status"], ["something else"]], ids=["nothing", "a command", "a prompt"])
async def test_continue_goes_on_with_the_last_session_of_any_client(said_before: list[str]) -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL, name="neovim") as editor:
        theirs = await editor.open()
        await editor.prompt(theirs, "a song about rivers")
    async with playing(agent_over(FakeEngine("alto")), FULL, name="antiphon-run") as editor:
        await editor.prompt(await editor.open(), "a script")
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        session = await editor.open()
        assert session != theirs and not texts_of(editor)
        for text in said_before:
            await editor.prompt(session, text)
        await editor.prompt(session, "/continue")
        assert texts_of(editor)[-1] == "a song about rivers" and "a script" not in texts_of(editor)
        assert any("a song about rivers" in each["title"] for each in notices(editor))
        await editor.prompt(session, "go on")
        rows = (await editor.connection.request(m.LIST_SESSIONS, v1.ListSessions())).sessions
        made = {row.session_id: (row.meta or {}).get("antiphon", {}) for row in rows}
    assert theirs in made and made[session] == {"client": "zed"} and made[theirs] == {"client": "neovim"}
    assert {"client": "antiphon-run", "script": True} in made.values()
    async with playing(agent_over(alto), FULL, name="zed") as editor:  # what it became is what it is from now on
        await editor.connection.request(m.LOAD_SESSION, v1.LoadSession(session, "/w", []))
        texts = texts_of(editor)
        assert texts[0] == "a song about rivers" and texts[-1] == "go on" and "something else" not in texts


async def test_continue_takes_any_beginning_of_an_id_and_lists_several_matches() -> None:
    async with playing(agent_over(FakeEngine("alto")), FULL, name="antiphon-run") as editor:
        script = await editor.open()
        await editor.prompt(script, "made by a script")
    async with playing(agent_over(FakeEngine("alto")), FULL, name="zed") as editor:
        session = await editor.open()
        await editor.prompt(session, "/continue nothing-like-it")
        assert "There is no session whose id begins with `nothing-like-it`" in "".join(
            texts_of(editor, "agent_message_chunk")
        )
        await editor.prompt(session, f"/continue {script[:9]}")
        assert texts_of(editor)[-1] == "made by a script"


async def test_without_an_earlier_session_continue_is_refused_with_a_message() -> None:
    async with playing(agent_over(FakeEngine("alto")), FULL, name="zed") as editor:
        session = await editor.open()
        await editor.prompt(session, "/continue")
        assert "There is no earlier session" in "".join(texts_of(editor, "agent_message_chunk"))
        await asyncio.wait_for(editor.prompt(session, "la"), 20)


async def test_a_fork_cut_before_a_prompt_gives_an_engine_that_cannot_cut_a_summary_and_reports_that() -> None:
    alto = FakeEngine("alto")  # it copies whole sessions only
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        source = await editor.open()
        for text in ("name a river", "name a song", "/help", "name a stone"):
            await editor.prompt(source, text)
        fork = v1.ForkSession(source, "/w", meta=fork_meta(["name a song", "/help", "name a stone"]))
        forked = (await editor.connection.request(m.FORK_SESSION, fork)).session_id
        await editor.prompt(forked, "go on")
        assert "name a river" in alto.given[-1] and alto.given[-1].endswith("go on")
        assert "song" not in alto.given[-1] and "stone" not in alto.given[-1]
        assert [each["title"] for each in notices(editor)] == ["Alto could not continue its session"]
        # All of it is left out: a new session, and nothing to report.
        nothing = v1.ForkSession(source, "/w", meta=fork_meta(["name a river", "name a song", "/help", "name a stone"]))
        fresh = (await editor.connection.request(m.FORK_SESSION, nothing)).session_id
        await editor.prompt(fresh, "anew")
        assert alto.given[-1] == "anew" and len(notices(editor)) == 1
        with pytest.raises(RequestRefused, match="no such prompt"):
            await editor.connection.request(m.FORK_SESSION, v1.ForkSession(source, "/w", meta=fork_meta(["never"])))
        await editor.prompt(source, "and the first")
        assert alto.given[-1] == "and the first"
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        await editor.connection.request(m.LOAD_SESSION, v1.LoadSession(forked, "/w", []))
        assert texts_of(editor) == ["name a river", "go on"]


async def test_a_session_that_had_no_prompt_begins_again_under_its_id_for_a_gateway_alone() -> None:
    async with playing(agent_over(FakeEngine("alto")), FULL) as editor:
        session = await editor.open()
    unused = {"antiphon": {"unused": True}}
    async with playing(agent_over(alto := FakeEngine("alto")), FULL) as editor:
        for id, meta in ((session, None), (session, {"antiphon": {}}), ("../../elsewhere", unused), ("nobody", unused)):
            with pytest.raises(RequestRefused) as refusal:
                await editor.connection.request(m.RESUME_SESSION, v1.ResumeSession(id, "/w", [], meta=meta))
            assert refusal.value.code == Code.RESOURCE_NOT_FOUND
        await editor.connection.request(m.RESUME_SESSION, v1.ResumeSession(session, "/w", [], meta=unused))
        await editor.prompt(session, "la")
    assert alto.given == ["la"]
