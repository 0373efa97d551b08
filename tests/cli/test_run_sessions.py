"""`antiphon run` in a session that goes on: by name, the last one, by id; set as was asked."""

from pathlib import Path

import msgspec
import pytest

from tests.cli import agents
from tests.cli.program import Place

pytestmark = pytest.mark.slow  # each starts several programs


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_named_session_goes_on(place: Place) -> None:
    first = place.run("/usage", "--session", "work", "--json")
    second = place.run("/usage", "--session", "work", "--json")
    other = place.run("/usage", "--session", "play", "--json")
    assert [run.of("start")[0]["opened"] for run in (first, second, other)] == ["new", "resumed", "new"]
    assert first.result["sessionId"] == second.result["sessionId"] != other.result["sessionId"]
    assert [run.of("usage")[0]["used"] for run in (first, second, other)] == [100, 200, 100]


def test_the_last_session_of_the_directory_is_continued(place: Place) -> None:
    first = place.run("hi", "--json").result["sessionId"]
    assert place.run("hi", "--continue", "--json").result["sessionId"] == first
    (place.cwd / "sub").mkdir()
    elsewhere = place.run("hi", "--continue", "--cwd", "sub")
    assert elsewhere.status == 2 and "no session in" in elsewhere.err and "hint: " in elsewhere.err


def test_a_session_is_resumed_by_its_id(place: Place) -> None:
    first = place.run("hi", "--json").result["sessionId"]
    assert place.run("/usage", "--resume", first, "--json").of("usage")[0]["used"] == 200
    gone = place.run("hi", "--resume", "no-such-id")
    assert gone.status == 2 and gone.out == "" and "has no session `no-such-id`\n" in gone.err


def test_a_name_whose_session_is_gone_gets_a_new_one_with_a_warning(place: Place) -> None:
    words = ("hi", "--agent", place.agent(agents.Forgets), "--session", "work")
    assert place.run(*words).err == ""
    again = place.run(*words)
    assert (again.status, again.out) == (0, "hi\n") and "the session `work` is gone" in again.err


def test_a_history_that_is_replayed_is_not_shown_again(place: Place) -> None:
    words = ("hi", "--agent", place.agent(agents.Replays), "--session", "work")
    place.run(*words)
    again = place.run(*words, "--json")
    assert again.of("start")[0]["opened"] == "loaded" and "OLD" not in again.out + again.err
    assert again.result["filesChanged"] == [] and again.result["text"] == "hi"
    assert place.run(*words).out == "hi\n"


def test_an_agent_that_keeps_no_sessions_is_an_error(place: Place) -> None:
    done = place.run("hi", "--resume", "x", "--agent", place.agent(agents.TakesTextOnly))
    assert done.status == 1 and "cannot open earlier sessions" in done.err


def test_mode_model_and_settings_are_set_before_the_prompt(place: Place) -> None:
    done = place.run("/edit notes.txt", "--mode", "plan", "--on-ask", "allow")
    assert "I only look in this mode" in done.out
    assert place.run("hi", "--model", "canon").out.count("You are in") == 2
    done = place.run("hi", "--set", "greeting=on", "--set", "length=short", "--set", "thinking=on")
    assert (
        done.out.startswith("Hello! \n\nYou are in")
        and "README" not in done.out
        and done.err == "I have no model, so I look around instead.\n"
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--mode", "yolo"), "choose one of `default`, `plan`"),
        (("--model", "opus"), "choose one of `echo`, `canon`"),
        (("--set", "length=medium"), "choose one of `short`, `long`"),
        (("--set", "colour=red"), "choose one of `mode`, `model`"),
        (("--set", "greeting=perhaps"), "--set greeting=on"),
    ],
)
def test_what_cannot_be_set_is_an_error_with_the_choices(words: tuple[str, ...], hint: str, place: Place) -> None:
    done = place.run("hi", *words)
    assert (done.status, done.out) == (2, "") and hint in done.err.splitlines()[-1]


def test_servers_of_a_file_reach_the_session(place: Place) -> None:
    config = {
        "mcpServers": {
            "files": {"command": "mcp-files", "args": ["."], "env": {"KEY": "${SECRET:-none}"}},
            "web": {"type": "http", "url": "https://example.org/${PLACE}", "headers": {"X": "y"}},
            "old": {"type": "sse", "url": "https://example.org/sse"},
        }
    }
    (place.cwd / "mcp.json").write_bytes(msgspec.json.encode(config))
    done = place.run("/mcp", "--mcp-config", "mcp.json", env={"PLACE": "mcp"})
    assert done.out == "- `files`: mcp-files\n- `web`: https://example.org/mcp\n- `old`: https://example.org/sse\n"
    unset = place.run("/mcp", "--mcp-config", "mcp.json")
    assert unset.status == 2 and "the variable `PLACE` is not set" in unset.err
    deaf = place.run(
        "/mcp", "--mcp-config", "mcp.json", "--agent", place.agent(agents.TakesTextOnly), env={"PLACE": "x"}
    )
    assert deaf.status == 1 and "does not reach MCP servers over HTTP" in deaf.err


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"mcpServers": {"x": {}}}', '{"mcpServers": {"x": {"command": 1}}}', "7"]
)
def test_servers_that_make_no_sense_are_an_error(text: str, place: Place) -> None:
    (place.cwd / "mcp.json").write_text(text, encoding="utf-8")
    done = place.run("hi", "--mcp-config", "mcp.json")
    assert done.status == 2 and "mcp.json" in done.err and "hint: write JSON such as" in done.err


def test_servers_and_mode_of_the_config_file_hold_for_new_sessions(place: Place) -> None:
    place.configure('mode = "yolo"\nmodel = "canon"\n\n[mcp.files]\ncommand = ["mcp-files", "."]\n')
    done = place.run("/mcp")
    assert (
        done.out == "- `files`: mcp-files\n" and "warning: the mode `yolo` of the config file is left out" in done.err
    )


def test_another_directory_may_be_used_too(place: Place) -> None:
    other = place.cwd.parent / "other"
    other.mkdir()
    (other / "a.txt").write_text("there\n", encoding="utf-8")
    assert "`a.txt`" not in place.run(f"/read {other / 'a.txt'}").out
    assert "1 line" in place.run(f"/read {other / 'a.txt'}", "--add-dir", str(other)).out


@pytest.mark.parametrize("left", ["acceptEdits", "bypassPermissions", "default", "plan"])
def test_a_session_that_was_left_in_a_wider_mode_goes_on_in_the_mode_of_the_policy(place: Place, left: str) -> None:
    words = ("--agent", place.agent(agents.HasModes), "--session", "work")
    assert place.run(left, *words).status == 0
    again = place.run("edit", *words)
    wider = left in ("acceptEdits", "bypassPermissions")
    assert again.out == f"in {'default' if wider else left}\n"
    assert not (place.cwd / "edited.txt").exists() and (again.status == 5) == (left != "plan")
    assert (f"the session was left in `{left}`, and goes on in `default`" in again.err) == wider
    allowed = place.run("edit", *words, "--permission-mode", "acceptEdits")
    assert (place.cwd / "edited.txt").exists() == (left != "plan") and allowed.status == 0


def test_a_mode_that_is_asked_for_holds_for_the_agent_and_the_policy(place: Place) -> None:
    place.env["MODE"] = "bypassPermissions"  # as the agent's own settings have it
    words = ("--agent", place.agent(agents.HasModes))
    held = place.run("edit", *words, "--permission-mode", "plan")
    assert held.out == "in plan\n" and not (place.cwd / "edited.txt").exists()
    stubborn = place.run("edit", "--agent", place.agent(agents.KeepsItsMode), "--permission-mode", "default")
    assert "the mode is `bypassPermissions`, as the agent has it" in stubborn.err
