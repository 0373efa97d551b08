"""The protocol is whole through the joint agent: what an engine can do by itself, it can do as one of several."""

import sys
from pathlib import Path

import pytest

from antiphon import v1
from antiphon.client.files import Files
from antiphon.client.terminals import Terminals
from antiphon.errors import AuthRequired, Code
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import notices, open_with
from tests.engines.claude.model.steps import Call as ClaudeCall
from tests.engines.client import Can, connected
from tests.engines.codex.model.steps import Call as CodexCall
from tests.engines.demo_client import DemoClient, demo
from tests.engines.mcp_servers.web_server import serving, stdio_server
from tests.engines.pictures import DOT
from tests.engines.places import JOINT
from tests.engines.test_demo_is_complete import DEFINITIONS, FACTS, play_everything, tags

pytestmark = pytest.mark.slow

SOUND = v1.AudioBlock("AAAA", "audio/wav")
OLDER: Call[v1.ResumeSession, v1.ResumeSessionResult] = Call(
    "unstable_resumeSession", v1.ResumeSession, v1.ResumeSessionResult, side="agent"
)


def kinds(client: DemoClient) -> set[str]:
    """The kinds of update that came."""
    updates = [frame["params"]["update"] for frame in client.frames if frame.get("method") == "session/update"]
    return {str(update["sessionUpdate"]) for update in updates}


async def test_every_update_question_and_ending_of_the_schema_passes(
    at_demo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTIPHON_CONFIG_DIR", "ANTIPHON_STATE_DIR", "ANTIPHON_AUTO_RESUME"):
        monkeypatch.setenv(name, at_demo.environment[name])
    async with demo(at_demo.folder, command=JOINT) as client:
        await play_everything(client)
        await client.prompt(await client.new(), "/mode plan")  # the same mode again, as in the tour, is no update here
    asked = {frame["method"] for frame in client.frames if "method" in frame}
    wanted = {each["name"] for each in FACTS["methods"] if each["side"] == "client" and not each.get("unstable")}
    stops = {frame["result"]["stopReason"] for frame in client.frames if "stopReason" in (frame.get("result") or ())}
    options = [
        option["kind"]
        for frame in client.frames
        if frame.get("method") == "session/request_permission"
        for option in frame["params"]["options"]
    ]
    assert tags("SessionUpdate", "sessionUpdate") <= kinds(client)
    assert wanted <= asked
    assert set(DEFINITIONS["StopReason"]["words"]) <= stops
    assert {"allow_once", "allow_always", "reject_once"} <= set(options)


async def test_files_and_terminals_are_the_clients(at_demo: Place) -> None:
    at_demo.write("song.txt", "la\nle\nli\nlo\n")
    at_demo.configure('[duet]\nengines = ["demo"]\n\n[policy]\nallow = ["Bash", "Edit"]\n')
    async with connected(at_demo, Can(files=Files(write=True), terminals=Terminals())) as client:
        read = await client.say("/read song.txt 2 1")
        await client.say("/edit new.txt la la la")
        ran = await client.say("/run echo do re mi")
        asked = [each["method"] for each in client.frames if "method" in each]
    assert "le" in str(read.of(v1.ToolCallUpdate)) and "do re mi" in ran.text + str(ran.updates)
    assert "la la la" in (at_demo.folder / "new.txt").read_text(encoding="utf-8")
    assert {"fs/read_text_file", "fs/write_text_file"} <= set(asked)
    for method in ("create", "output", "wait_for_exit", "release"):
        assert f"terminal/{method}" in asked, asked


async def test_pictures_and_texts_reach_both_models_and_sound_is_named(at: Place) -> None:
    score = v1.TextResource("do re mi fa so", f"file://{at.folder}/score.txt", "text/plain")
    at.write("linked.txt", "what the link leads to\n")
    blocks: list[v1.ContentBlock] = [
        v1.TextBlock("sing this"),
        v1.ImageBlock(DOT, "image/png"),
        v1.EmbeddedResource(score),
        v1.ResourceLink("linked.txt", f"file://{at.folder}/linked.txt"),
        SOUND,
    ]
    at.answer("one", "two")
    async with connected(at) as client:
        await open_with(client, route="duet")
        # Not by our library's own way, which would not send sound: no engine here advertises it.
        await client.agent.connection.request(m.PROMPT, v1.Prompt(client.session.id, blocks))
    for model in (at.claude.model, at.codex.model):
        seen = model.asked[0]
        assert len(seen.images) == 1
        for words in ("sing this", "do re mi fa so", "score.txt", "what the link leads to", "audio/wav"):
            assert words in seen.everything, words


async def test_servers_and_directories_reach_both_engines(at: Place, tmp_path: Path) -> None:
    added = tmp_path / "added"
    added.mkdir()
    (added / "song.txt").write_text("fa la la\n", encoding="utf-8")
    at.claude.model.answers(ClaudeCall("mcp__little__tell", {"name": "SECRET_SONG"}))
    at.claude.model.answers(ClaudeCall("Read", {"file_path": str(added / "song.txt")}))
    at.codex.model.answers(CodexCall("tell", {"name": "SECRET_SONG"}, namespace="mcp__little"))
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server(SECRET_SONG="la la la")], additional_directories=[added])
        await client.session.set_config_option("route", "duet")
        await client.say("what is the song?")
    assert any("la la la" in text for text in at.claude.model.asked[1].result_texts)
    assert "fa la la" in at.claude.model.last.result_texts[0]
    assert "la la la" in at.codex.model.last.results[0]


async def test_a_server_that_fails_is_a_notice_and_the_session_works_without_it(at: Place) -> None:
    broken = v1.StdioServer("broken", sys.executable, ["-c", "raise SystemExit(3)"], [])
    async with connected(at) as client:
        await client.open(mcp_servers=[broken])
        assert (await client.say("hello")).text == "echo: hello"
        await client.until(lambda: [each for each in client.updates_of("notice") if "broken" in str(each)])


async def test_a_server_that_only_one_engine_reaches_is_left_out_for_the_other_with_a_notice(at: Place) -> None:
    at.claude.model.answers(ClaudeCall("mcp__little__tell", {"name": "X-Song"}))
    with serving("sse") as url:
        async with connected(at) as client:
            await client.open(mcp_servers=[v1.SseServer("little", url, [v1.HttpHeader("X-Song", "la la la")])])
            await client.session.set_config_option("route", "duet")
            reply = await client.say("what is the song?")
    assert "la la la" in at.claude.model.last.result_texts[0] and reply.stop == "end_turn"
    assert at.codex.model.asked and "`little`" in notices(client) and "Codex" in notices(client)


async def test_every_engines_ways_to_sign_in_are_offered(at: Place) -> None:
    async with connected(at, Can(terminal_login=True)) as client:
        methods = client.agent.auth_methods
    terminal = [each.args for each in methods if isinstance(each, v1.TerminalAuth)]
    assert {tuple(words[:3]) for words in terminal} == {
        ("--engine", "claude", "--login"),
        ("--engine", "codex", "--login"),
    }
    ids = [each.id for each in methods if isinstance(each, v1.TerminalAuth | v1.AgentAuth)]
    assert len(ids) == len(set(ids)) == len(methods)
    assert [each for each in methods if isinstance(each, v1.AgentAuth)]


async def test_an_engine_that_is_not_signed_in_names_its_methods(at: Place) -> None:
    del at.environment["ANTHROPIC_API_KEY"]
    async with connected(at) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.say("/claude sing")
    assert caught.value.code == Code.AUTH_REQUIRED and caught.value.methods and at.claude.model.asked == []


async def test_one_engine_that_is_signed_in_is_enough(at: Place) -> None:
    del at.environment["ANTHROPIC_API_KEY"]
    async with connected(at) as client:
        first = next(each for each in client.agent.auth_methods if isinstance(each, v1.AgentAuth))
        await client.agent.authenticate(first.id)  # as clients do that know only one way
        answer = await client.say("sing")
        assert "Claude Code is not signed in, so Codex answers" in answer.notices and answer.text == "echo: sing"
        assert client.option("route").current_value == "codex"
    assert at.claude.model.asked == [] and len(at.codex.model.asked) == 1


async def test_signing_in_and_out_reach_the_engine(at_demo: Place) -> None:
    async with connected(at_demo) as client:
        [method] = client.agent.auth_methods
        assert isinstance(method, v1.AgentAuth)
        await client.agent.logout()
        with pytest.raises(
            AuthRequired
        ):  # there is no other engine that could answer, so the session itself needs a login
            await client.open()
        await client.agent.authenticate(method.id)
        assert (await client.say("hello")).stop == "end_turn"


async def test_a_session_is_resumed_by_the_older_name_of_the_method(at_demo: Place) -> None:
    async with connected(at_demo) as client:
        await client.say("hello")
        id = client.session.id
    async with connected(at_demo) as client:
        result = await client.agent.connection.request(OLDER, v1.ResumeSession(id, str(at_demo.folder), []))
    assert result.config_options
