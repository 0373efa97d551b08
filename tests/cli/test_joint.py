"""`antiphon chat` and `antiphon run` with our own agent, which joins the engines: which agent answers by default, and in which session."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client.launch import LaunchOptions, agent_name
from antiphon.config.shapes import DuetConfig, Settings
from tests.cli.program import NO_ENGINES, Place
from tests.limits import limit
from tests.tui.terminal import CTRL_D, ENTER, Terminal, chat

DEMO = '[duet]\nengines = ["demo"]\n'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.configure(DEMO)
    return made


def session_of(place: Place, *words: str, **env: str) -> str:
    done = place.run("hi", "--agent", "antiphon", "--json", *words, env=env)
    assert done.status == 0, done.err
    return str(done.result["sessionId"])


def edited(place: Place, text: str) -> str:
    """A session that an editor had, in which something was sent."""
    command = [sys.executable, "-m", "antiphon", "agent"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place.cwd,
        env={**place.env, "ANTIPHON_AUTO_RESUME": "false"},
    ) as agent:  # fmt: skip
        assert agent.stdin is not None and agent.stdout is not None
        to_agent, answers = agent.stdin, map(json.loads, agent.stdout)

        def ask(method: str, **params: Any) -> dict[str, Any]:
            to_agent.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode())
            to_agent.write(b"\n")
            to_agent.flush()
            found: dict[str, Any] = next(each for each in answers if each.get("id") == method and "result" in each)
            return found["result"]  # type: ignore[no-any-return]  # whatever it is

        ask("initialize", protocolVersion=1)
        id = str(ask("session/new", cwd=str(place.cwd), mcpServers=[])["sessionId"])
        ask("session/prompt", sessionId=id, prompt=[{"type": "text", "text": text}])
        to_agent.close()
    return id


def opened(place: Place, name: str | None, *command: str) -> tuple[str, list[str]]:
    """A client of this name opens a new session: its id, and the earlier prompts that it is sent."""
    words = [sys.executable, "-m", "antiphon", *(command or ("agent",))]
    env = {key: value for key, value in place.env.items() if key != "ANTIPHON_AUTO_RESUME"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place.cwd, env=env
    ) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        info = {} if name is None else {"clientInfo": {"name": name, "version": "1"}}
        to_agent = agent.stdin

        def ask(id: int, method: str, **params: Any) -> None:
            to_agent.write(
                json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"
            )
            to_agent.flush()

        ask(0, "initialize", protocolVersion=1, **info)
        ask(1, "session/new", cwd=str(place.cwd), mcpServers=[])
        texts: list[str] = []
        id = ""
        for line in agent.stdout:
            message = json.loads(line)
            if message.get("id") == 1:
                id = message["result"]["sessionId"]
                ask(2, "session/list")  # the history is sent right after the response, and so before this one's
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "user_message_chunk":
                texts.append(update["content"]["text"])
            if message.get("id") == 2:
                break
        agent.stdin.close()
    return id, texts


@pytest.mark.slow
@pytest.mark.parametrize("client", ["zed", "CodeCompanion.nvim", "antiphon", None])
def test_a_new_thread_in_an_editor_is_not_the_session_of_a_script(place: Place, client: str | None) -> None:
    script = session_of(place)
    id, printed = opened(place, client)
    assert id != script and printed == []


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["record", "run"])
def test_a_recording_and_a_run_of_it_begin_without_earlier_history(place: Place, tool: str) -> None:
    before = edited(place, "somebody else's words")
    recorded = ("record", "-o", str(place.cwd.parent / "talk.jsonl"), "--", sys.executable, "-m", "antiphon", "agent")
    if tool == "record":
        id, printed = opened(place, "zed", *recorded)
        assert id != before and printed == []
        return
    done = place.run("hi", "--json", "--agent", " ".join([sys.executable, "-m", "antiphon", *recorded]))
    assert done.status == 0 and done.result["sessionId"] != before, done.err


DUET = """\
[duet]
engines = ["demo", "{python} -S -m tests.seeds.second"]
route = "duet"
"""


@pytest.mark.slow
def test_each_engines_answer_is_whole_wherever_a_duet_is_read(place: Place) -> None:
    place.configure(DUET.format(python=sys.executable))
    quiet = place.run("hello", "--agent", "antiphon", "-q")
    assert quiet.status == 0 and quiet.out == quiet.out.lstrip("\n"), quiet
    both = ("**Antiphon demo**\n\nYou are in `work`", "I am a demo without a model")
    assert [each for each in both if each not in quiet.out] == [] and quiet.out.rstrip().endswith("hello")
    result = place.run("hello", "--agent", "antiphon", "--json").result
    assert result["answers"][0]["engine"] == "demo" and len(result["answers"]) == 2
    assert result["text"].strip() == quiet.out.strip()
    code = (
        "import antiphon\nwith antiphon.sync.connect('antiphon') as agent:\n"
        "    print(agent.new_session('.').prompt('hello').text())\n"
    )
    synced = subprocess.run(
        [sys.executable, "-c", code], cwd=place.cwd, env=place.env, capture_output=True, check=True, timeout=limit()
    ).stdout.decode()
    assert [each for each in both if each not in synced] == [] and synced.rstrip().endswith("hello")
    for words in (("show", "last"), ("export", "last", "--format", "html"), ("export", "last", "--format", "json")):
        shown = subprocess.run(
            [sys.executable, "-m", "antiphon", "sessions", *words],
            cwd=place.cwd, env=place.env, capture_output=True, check=True, timeout=limit(),
        ).stdout.decode()  # fmt: skip
        assert "You are in" in shown and "I am a demo" in shown and "said:" in shown, words
        assert "**Antiphon demo**" not in shown, "an entry says whose it is"


@pytest.mark.slow
def test_every_run_is_a_session_of_its_own(place: Place) -> None:
    wishes: tuple[dict[str, str], ...] = (
        {},
        {},
        {"ANTIPHON_AUTO_RESUME": "true"},
        {"BANJO_AUTO_RESUME": "on"},
        {"ANTIPHON_AUTO_RESUME": "on"},
    )
    assert len({session_of(place, **wish) for wish in wishes}) == len(wishes)


@pytest.mark.slow
def test_a_run_is_continued_and_resumed(place: Place) -> None:
    first = session_of(place)
    assert session_of(place, "--continue") == first
    second = session_of(place)
    assert session_of(place, "--continue") == second != first
    assert session_of(place, "--resume", first) == first
    assert session_of(place, "--continue") == first  # the one that was used last
    named = session_of(place, "--session", "work")
    assert session_of(place, "--session", "work") == named


@pytest.mark.slow
def test_the_latest_session_of_an_editor_is_continued(place: Place) -> None:
    ours = session_of(place)
    theirs = edited(place, "hello from the editor")
    assert session_of(place, "--continue") == theirs != ours
    assert session_of(place, "--continue") == theirs


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["antiphon", "demo"])
def test_a_chat_without_a_prompt_hides_no_other(agent: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.configure(DEMO)
    first = str(place.run("hi", "--agent", agent, "--json").result["sessionId"])
    with chat(tmp_path, agent, HOME=str(tmp_path)) as terminal:
        ready(terminal)
        leave(terminal)
    done = place.run("hi", "--agent", agent, "--json", "--continue")
    assert done.status == 0, done.err
    if agent == "antiphon":  # the demo has such a session still, though it lists none
        assert done.result["sessionId"] == first


@pytest.mark.slow
def test_a_directory_without_a_prompt_has_nothing_to_continue(place: Place, tmp_path: Path) -> None:
    with chat(tmp_path, "antiphon", HOME=str(tmp_path)) as terminal:
        ready(terminal)
        leave(terminal)
    done = place.run("hi", "--agent", "antiphon", "--continue")
    assert done.status == 2 and "to continue\n" in done.err and "hint: leave out `--continue`" in done.err


def ready(terminal: Terminal) -> None:
    terminal.wait("mode default")
    terminal.wait("   /help")


def leave(terminal: Terminal) -> None:
    terminal.wait("   /help")
    terminal.press(CTRL_D)
    assert terminal.wait_for_end() == 0


@pytest.mark.slow
def test_a_chat_is_continued_and_resumed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.configure(DEMO)
    with chat(tmp_path, "antiphon", HOME=str(tmp_path)) as terminal:
        ready(terminal)
        terminal.ask(f"/think songs{ENTER}", "songs")
        leave(terminal)
    with chat(tmp_path, "antiphon", HOME=str(tmp_path)) as terminal:
        ready(terminal)
        assert "songs" not in terminal.all  # a new one
        leave(terminal)
    with chat(tmp_path, "antiphon", "--continue", HOME=str(tmp_path)) as terminal:
        terminal.wait("/think songs")
        leave(terminal)
    [kept] = json.loads(f"[{_sessions(place)}]")
    with chat(tmp_path, "antiphon", "--resume", kept["id"], HOME=str(tmp_path)) as terminal:
        terminal.wait("/think songs")
        leave(terminal)


def _sessions(place: Place) -> str:
    words = [sys.executable, "-m", "antiphon", "sessions", "--json"]
    done = subprocess.run(words, cwd=place.cwd, env=place.env, capture_output=True, check=True, timeout=limit())
    return ",".join(done.stdout.decode().splitlines())


# The default agent.


def chosen(settings: Settings | None = None, agent: str | None = None) -> str:
    return agent_name(LaunchOptions(agent), settings or Settings())


def test_without_an_engine_the_demo_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_ENGINES.items():
        monkeypatch.setenv(name, value)
    assert chosen() == "demo"
    assert chosen(Settings(duet=DuetConfig(engines=("gemini",)))) == "antiphon"


def test_with_an_engine_our_own_agent_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CLAUDE_CODE_EXECUTABLE", NO_ENGINES["CLAUDE_CODE_EXECUTABLE"])
    monkeypatch.setenv("CODEX_EXECUTABLE", str(program))
    assert chosen() == "antiphon"
    assert chosen(Settings(agent="gemini")) == "gemini" and chosen(Settings(agent="gemini"), "demo") == "demo"
