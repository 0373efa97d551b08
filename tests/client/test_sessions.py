"""Sessions over memory: opened, listed, changed, closed; and what is refused before it is sent."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.client.files import Files
from antiphon.client.handlers import Elicitation
from antiphon.client.terminals import Terminals
from antiphon.client.updates import EarlyUpdates
from antiphon.errors import LocalProtocolError, NotSupported, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.client.talker import END, Talker, chunk

EVERYTHING = v1.AgentCapabilities(
    load_session=True,
    mcp_capabilities=v1.McpCapabilities(http=True, sse=True, acp=True),
    session_capabilities=v1.SessionCapabilities(
        list=v1.ListSupport(),
        delete=v1.DeleteSupport(),
        additional_directories=v1.DirectoriesSupport(),
        resume=v1.ResumeSupport(),
        close=v1.CloseSupport(),
        fork=v1.ForkSupport(),
    ),
    auth=v1.AgentAuthCapabilities(logout=v1.LogoutSupport()),
)
MODES = v1.ModeState("a", [v1.Mode("a", "A"), v1.Mode("b", "B")])
MODEL = v1.SelectConfig(
    id="m",
    name="Model",
    category=v1.ConfigCategory.MODEL,
    current_value="small",
    options=[v1.SelectOption("big", "Big")],
)
MODE = v1.SelectConfig(
    id="o", name="Mode", category=v1.ConfigCategory.MODE, current_value="ask", options=[v1.SelectOption("plan", "Plan")]
)


async def test_a_session_is_opened_in_the_current_or_the_given_directory(tmp_path: Path) -> None:
    talker = Talker()
    asked = talker.answers(m.NEW_SESSION, v1.NewSessionResult("s"))
    server = v1.StdioServer("mcp", "run", [], [])
    async with talker.connect(EVERYTHING) as agent:
        here = await agent.new_session()
        assert (here.id, here.cwd) == ("s", os.getcwd())
        there = await agent.new_session(tmp_path, mcp_servers=[server], additional_directories=["extra"])
        assert there.cwd == str(tmp_path)
    assert asked == [
        v1.NewSession(os.getcwd(), []),
        v1.NewSession(str(tmp_path), [server], additional_directories=[os.getcwd() + "/extra"]),
    ]


async def test_what_the_agent_did_not_advertise_is_refused_before_it_is_sent() -> None:
    talker = Talker()
    frames: list[bytes] = []
    async with talker.connect() as agent:
        session = await agent.new_session()
        agent.connection.tap(lambda direction, _, frame: frames.append(frame))
        for attempt, capability in (
            (agent.load_session("s"), "loadSession"),
            (agent.resume_session("s"), "sessionCapabilities.resume"),
            (agent.fork_session("s"), "sessionCapabilities.fork"),
            (anext(agent.list_sessions()), "sessionCapabilities.list"),
            (agent.delete_session("s"), "sessionCapabilities.delete"),
            (agent.logout(), "auth.logout"),
            (agent.authenticate("key"), "it offers none"),
            (agent.new_session(mcp_servers=[v1.HttpServer("h", "http://h", [])]), "mcpCapabilities.http"),
            (agent.new_session(mcp_servers=[v1.SseServer("h", "http://h", [])]), "mcpCapabilities.sse"),
            (agent.new_session(mcp_servers=[v1.AcpServer("h", "1")]), "mcpCapabilities.acp"),
            (agent.new_session(additional_directories=["/"]), "sessionCapabilities.additionalDirectories"),
            (session.set_mode("a"), "no modes"),
            (session.set_model("a"), "no choice of models"),
            (session.set_config_option("a", "b"), "no settings"),
        ):
            with pytest.raises(NotSupported, match=capability):
                await attempt
        assert frames == []


async def test_loading_replays_the_history_into_the_transcript_and_to_on_update() -> None:
    talker = Talker()

    async def load(asked: v1.LoadSession) -> v1.LoadSessionResult:
        await talker.send(asked.session_id, v1.UserMessageChunk(v1.TextBlock("hi")), chunk("hello"))
        return v1.LoadSessionResult(modes=MODES)

    talker.router.on_request(m.LOAD_SESSION, load)
    received: list[v1.Update] = []
    async with talker.connect(EVERYTHING) as agent:
        session = await agent.load_session("old", on_update=received.append)
        assert (session.id, session.modes, len(received)) == ("old", MODES, 2)
        assert session.transcript.plain() == "> hi\nhello"


async def test_a_session_that_cannot_be_loaded_is_not_there() -> None:
    talker = Talker()
    async with talker.connect(EVERYTHING) as agent:
        with pytest.raises(RequestRefused, match="Method not found"):
            await agent.load_session("old")
        with pytest.raises(RequestRefused):
            await agent.resume_session("old")


async def test_a_list_of_sessions_is_followed_over_its_pages() -> None:
    talker = Talker()
    asked: list[v1.ListSessions] = []

    def page(request: v1.ListSessions) -> v1.ListSessionsResult:
        asked.append(request)
        name = request.cursor or "1"
        following = {"1": "2", "2": "3", "3": "2"}[name]  # the last one goes back, which must not go round for ever
        return v1.ListSessionsResult([v1.SessionInfo(name, "/")], following)

    talker.router.on_request(m.LIST_SESSIONS, page)
    async with talker.connect(EVERYTHING) as agent:
        assert [info.session_id async for info in agent.list_sessions("/")] == ["1", "2", "3"]
        assert {request.cwd for request in asked} == {"/"}


async def test_a_fork_a_deletion_and_a_logout_reach_the_agent() -> None:
    talker = Talker()
    talker.router.on_request(m.FORK_SESSION, lambda asked: v1.ForkSessionResult(asked.session_id + "-2", modes=MODES))
    deleted = talker.answers(m.DELETE_SESSION, v1.DeleteSessionResult())
    left = talker.answers(m.LOGOUT, v1.LogoutResult())
    async with talker.connect(EVERYTHING) as agent:
        fork = await agent.fork_session("one")
        assert (fork.id, fork.modes) == ("one-2", MODES)
        await agent.delete_session("one")
        await agent.logout()
    assert deleted == [v1.DeleteSession("one")] and left == [v1.Logout()]


async def test_modes_and_settings_are_set_and_followed() -> None:
    talker = Talker()
    talker.answers(m.NEW_SESSION, v1.NewSessionResult("s", modes=MODES, config_options=[MODEL, MODE]))
    modes = talker.answers(m.SET_MODE, v1.SetModeResult())
    settings = talker.answers(m.SET_CONFIG_OPTION, v1.SetConfigOptionResult([MODEL]))
    async with talker.connect() as agent:
        session = await agent.new_session()
        await session.set_mode("b")
        assert session.modes is not None and session.modes.current_mode_id == "b"
        await session.set_model("big")  # there is a setting for it
        assert session.config_options == [MODEL]
        await session.set_config_option("loud", True)
    assert modes == [v1.SetMode("s", "b")]
    assert settings == [v1.SetConfigOption("s", "m", "big"), v1.SetConfigOption("s", "loud", True)]


async def test_a_mode_that_is_a_setting_is_set_as_one() -> None:
    talker = Talker()
    talker.answers(m.NEW_SESSION, v1.NewSessionResult("s", config_options=[MODE]))
    sent = talker.answers(m.SET_CONFIG_OPTION, v1.SetConfigOptionResult([MODE]))
    async with talker.connect() as agent:
        session = await agent.new_session()
        await session.set_mode("plan")
    assert sent == [v1.SetConfigOption("s", "o", "plan")]


async def test_a_closed_session_takes_no_more() -> None:
    talker = Talker()
    closed = talker.answers(m.CLOSE_SESSION, v1.CloseSessionResult())
    async with talker.connect(EVERYTHING) as agent:
        session = await agent.new_session()
        await session.close()
        await session.close()
        assert closed == [v1.CloseSession("s")]
        with pytest.raises(LocalProtocolError, match="is closed"):
            await session.prompt("hi")


async def test_a_session_is_closed_here_even_if_the_agent_cannot_close_it() -> None:
    talker = Talker()
    async with talker.connect() as agent:
        session = await agent.new_session()
        await session.close()
        with pytest.raises(LocalProtocolError):
            await session.prompt("hi")


async def test_a_handler_of_updates_is_a_plain_function() -> None:
    async def slow(_: v1.Update) -> None: ...

    async with Talker().connect() as agent:
        with pytest.raises(LocalProtocolError, match="plain `def`"):
            await agent.new_session(on_update=slow)  # type: ignore[arg-type]  # the mistake that is refused


@pytest.mark.parametrize("handlers", ["none", "all", "form"])
async def test_what_we_can_do_is_computed_from_the_handlers(handlers: str) -> None:
    talker = Talker()
    hello = talker.answers(m.INITIALIZE, v1.InitializeResult(1))

    def ask(_: object) -> v1.Declined:
        return v1.Declined()

    options: dict[str, dict[str, Any]] = {
        "none": {"files": None},
        "all": {"files": Files(write=True), "terminals": Terminals(), "elicitation": ask},
        "form": {"elicitation": Elicitation(form=ask), "info": v1.Implementation("me", "2")},
    }
    async with talker.connect(**options[handlers]):
        [said] = hello
    ours = said.client_capabilities
    assert said.protocol_version == 1 and said.client_info is not None
    assert ours.session is not None and ours.session.notices is not None and ours.session.compaction is not None
    found = (ours.fs.read_text_file, ours.fs.write_text_file, ours.terminal)
    asking = ours.elicitation and (ours.elicitation.form is not None, ours.elicitation.url is not None)
    expected = {
        "none": ((False, False, False), None, "antiphon"),
        "all": ((True, True, True), (True, True), "antiphon"),
        "form": ((True, False, False), (True, False), "me"),
    }
    assert (found, asking, said.client_info.name) == expected[handlers]


async def test_files_and_terminals_work_inside_the_sessions_directories(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("inside", encoding="utf-8")
    here = os.path.realpath(tmp_path)  # noqa: ASYNC240 - before anything runs
    talker = Talker()
    outputs: list[object] = []

    async def prompt(asked: v1.Prompt) -> v1.PromptResult:
        assert talker.connection is not None
        request, session = talker.connection.request, asked.session_id
        outputs.append((await request(m.READ_TEXT_FILE, v1.ReadTextFile(session, str(tmp_path / "in")))).content)
        await request(m.WRITE_TEXT_FILE, v1.WriteTextFile(session, str(tmp_path / "out"), "written"))
        terminal = (await request(m.CREATE_TERMINAL, v1.CreateTerminal(session, "pwd"))).terminal_id
        await request(m.WAIT_FOR_EXIT, v1.WaitForExit(session, terminal))
        outputs.append((await request(m.TERMINAL_OUTPUT, v1.TerminalOutput(session, terminal))).output.strip())
        for path in ("/etc/passwd", str(tmp_path / ".." / "x")):
            with pytest.raises(RequestRefused):
                await request(m.READ_TEXT_FILE, v1.ReadTextFile(session, path))
        with pytest.raises(RequestRefused, match="no such session"):
            await request(m.READ_TEXT_FILE, v1.ReadTextFile("other", str(tmp_path / "in")))
        return END

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect(files=Files(write=True), terminals=(terminals := Terminals())) as agent:
        session = await agent.new_session(tmp_path)
        await session.prompt("hi")
        assert len(terminals) == 1
    assert outputs == ["inside", here] and len(terminals) == 0
    assert await asyncio.to_thread((tmp_path / "out").read_text, encoding="utf-8") == "written"


def test_early_updates_are_bounded_in_bytes() -> None:
    early = EarlyUpdates(limit=1000)
    for number in range(100):
        early.keep(v1.SessionUpdate("lost", chunk(str(number))))
    assert 0 < len(early) < 20
    kept = early.claim("lost")
    assert kept[-1] == chunk("99") and len(early) == 0 and early.claim("lost") == []
