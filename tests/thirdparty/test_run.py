"""`antiphon run` with agents that others wrote: products with a model on loopback, and the examples of the official SDKs."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.environment import environment
from tests.interop.programs import all_programs
from tests.thirdparty import table
from tests.thirdparty.model import script, words_of
from tests.thirdparty.place import Place, place

TIMEOUT = 60.0
BOTH = ["kimi-code", "fast-agent"]
OFFICIAL = ["python", "typescript"]

Event = dict[str, Any]


def events_of(stdout: str) -> list[Event]:
    """What `--json` printed; the last one is the result."""
    events = [json.loads(line) for line in stdout.splitlines()]
    assert events[-1]["type"] == "result"
    return events


def message_text(events: list[Event]) -> str:
    return "".join(each["text"] for each in events if each["type"] == "message")


def named(where: Place) -> list[str]:
    """`antiphon run` with the agent by a name that stands in the user's settings."""
    folder = where.on.home / ".config" / "antiphon"
    folder.mkdir(parents=True)
    command = json.dumps(where.agent.command)  # a list of strings is the same in TOML
    (folder / "config.toml").write_text(f"[agents.choir]\ncommand = {command}\n", encoding="utf-8")
    where.environment["ANTIPHON_CONFIG_DIR"] = str(folder)
    return [sys.executable, "-m", "antiphon", "run", "--agent", "choir"]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BOTH)
def test_run_lets_an_agent_do_what_the_rules_allow(name: str, tmp_path: Path) -> None:
    with place(name, tmp_path) as where:
        steps = [where.read("notes.txt"), where.write("poem.txt", "Sung by one.\n"), where.run("echo sung aloud")]
        rules = ["--allow", "Edit(poem.txt)", "--allow", "Bash(echo *)"]
        done = where.on.run([*named(where), "--json", *rules, script(*steps, ["say", "All three are done."])], TIMEOUT)
        events = events_of(done.stdout)
        result = events[-1]
        assert (done.returncode, result["exitCode"], result["stopReason"]) == (0, 0, "end_turn"), (
            done.stdout + done.stderr
        )
        assert message_text(events) == result["text"] == "All three are done."
        assert events[0]["agentVersion"] == where.agent.version
        assert result["denials"] == []
        assert result["filesChanged"] == [{"path": str(where.folder / "poem.txt"), "change": "created"}]
        assert (where.folder / "poem.txt").read_text(encoding="utf-8") == "Sung by one.\n"
        read, _, ran = where.model.answers_of_tools()
        assert "second line" in read and "sung aloud" in ran
    table.note(name, f"{table.RUN}what rules allow is done, and nothing is asked")


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BOTH)
def test_run_allows_what_would_be_asked_and_continues_later_where_the_exit_status_shows_what_was_denied(
    name: str, tmp_path: Path
) -> None:
    with place(name, tmp_path) as where:
        first = script(where.run("echo sung aloud"), ["say", "It was sung."])
        done = where.on.run(where.ours("run", "--quiet", "--on-ask", "allow", first), TIMEOUT)
        assert (done.returncode, done.stdout, done.stderr) == (0, "It was sung.\n", "")
        assert "sung aloud" in where.model.answers_of_tools()[-1]
        then = script(where.write("poem.txt", "Sung by nobody.\n"), ["say", "So be it."])
        done = where.on.run(where.ours("run", "--json", "--continue", then), TIMEOUT)
        result = events_of(done.stdout)[-1]
        assert any(first in words_of(each) for each in where.model.asked[-1]["messages"]), "it is the same session"
        assert (done.returncode, result["exitCode"], result["stopReason"]) == (5, 5, "end_turn"), (
            done.stdout + done.stderr
        )
        assert [(each["kind"], each["unasked"]) for each in result["denials"]] == [("edit", True)]
        assert result["denials"][0]["subject"] == str(where.folder / "poem.txt")
        assert result["text"] == "So be it."
        assert not (where.folder / "poem.txt").exists()
    table.note(name, f"{table.RUN}`--continue` goes on with the session in another process")
    table.note(name, f"{table.RUN}exit status 5 and a list of what was denied")


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BOTH)
def test_run_is_cancelled_by_ctrl_c_with_the_agent_and_its_model(name: str, tmp_path: Path) -> None:
    with place(name, tmp_path) as where:
        command = where.ours("run", "--json", script(["hold", "This goes on and on."]))
        with subprocess.Popen(
            command, cwd=where.folder, env=where.environment, encoding="utf-8", start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as running:  # fmt: skip
            try:
                assert running.stdout is not None
                lines = iter(running.stdout)
                assert any('"type":"message"' in line for line in lines)
                running.send_signal(signal.SIGINT)
                result = json.loads([*lines][-1])
                assert running.wait(TIMEOUT) == result["exitCode"] == 130
                assert result["stopReason"] == "cancelled"
            finally:
                running.kill()
        assert where.model.hung_up.is_set()
    table.note(name, f"{table.RUN}Ctrl-C cancels the turn and ends the agent")


# --- the examples of the official SDKs ---


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFICIAL)
def test_run_drives_an_agent_of_an_official_sdk(name: str, tmp_path: Path) -> None:
    who = all_programs()[name]
    if who.missing:
        pytest.skip(f"{who.name} {who.missing}")
    with environment(tmp_path) as on:
        run = [sys.executable, "-m", "antiphon", "run", "--agent", shlex.join(who.agent), "--json"]
        poem = on.folder / "poem.txt"

        def result(*words: str) -> tuple[int, Event]:
            done = on.run([*run, *words], TIMEOUT)
            assert done.stdout, done.stderr
            return done.returncode, events_of(done.stdout)[-1]

        status, end = result("hello")
        assert (status, end.get("stopReason")) == (0, "end_turn"), end
        status, end = result(f"/edit {poem} Sung by nobody.")
        assert (status, len(end["denials"]), poem.exists()) == (5, 1, False)
        status, end = result("--allow", "Edit(poem.txt)", f"/edit {poem} Sung by one.")
        assert (status, end["denials"]) == (0, []), end
        assert poem.read_text(encoding="utf-8") == "Sung by one."
        status, end = result("--on-ask", "allow", "/run echo sung aloud")
        assert (status, end["denials"]) == (0, [])
        status, end = result(f"/read {on.folder}/notes.txt")
        assert (status, end["denials"]) == (0, [])
        status, end = result("--timeout", "2", "/slow 60")
        assert (status, end["exitCode"]) == (124, 124)
        status, end = result("/fail")
        assert status == 1 and end["error"]["message"]
