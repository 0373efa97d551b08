"""`antiphon run` in a pipe: where the prompt comes from, what is written where, and the exit status."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli import agents
from tests.cli.program import Place, ended
from tests.limits import limit

CONTROL = "\x1b"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# The prompt.


def test_the_answer_is_on_stdout_and_nothing_else(place: Place) -> None:
    done = place.run("Where", "are", "we?")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("You are in `work`, which has 1 file (1 .md).\n")
    assert done.out.endswith("lists what I can show.\n")


def test_the_prompt_may_come_on_stdin(place: Place) -> None:
    assert place.run(line="/think of it\n").out == "I have thought about of it.\n"
    assert place.run("-", line="/think of it\n").out == "I have thought about of it.\n"


def test_the_prompt_may_come_from_a_file(place: Place) -> None:
    (place.cwd / "prompt.txt").write_text("/think of that", encoding="utf-8")
    assert place.run("--file", "prompt.txt").out == "I have thought about of that.\n"


def test_what_comes_on_stdin_beside_a_prompt_goes_along_as_data(place: Place) -> None:
    words = ("--agent", place.agent(agents.TakesTextOnly))
    assert place.run("review this", *words, line="diff @missing.py").out == "text text\n"
    assert place.run("review this", "-", *words, line="diff @missing.py").out == "text text\n"
    assert place.run("review this", *words, line="").out == "text\n"


@pytest.mark.slow
def test_a_stdin_on_which_nothing_comes_is_not_waited_for(place: Place) -> None:
    program = place.start("/think of it", stdin=subprocess.PIPE)
    assert program.stdout is not None and program.stdout.readline() == b"I have thought about of it.\n"
    assert "nothing came on stdin" in ended(program).err


def test_after_two_dashes_everything_is_prompt(place: Place) -> None:
    assert "I have thought about --json." in place.run("--", "/think", "--json").out


def test_files_go_along(place: Place) -> None:
    done = place.run("look at @README.md", "--attach", ".")
    assert f"With your words came `{(place.cwd / 'README.md').as_uri()}`." in done.out
    assert "With your words came a link to `work`." in done.out


def test_a_picture_is_refused_with_a_reason_where_it_is_not_taken(place: Place) -> None:
    (place.cwd / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert "9 bytes of `image/png`" in place.run("see @a.png").out
    done = place.run("see @a.png", "--agent", place.agent(agents.TakesTextOnly))
    assert (done.status, done.out) == (1, "")
    assert "error: `a.png` is image/png, and TakesTextOnly takes no images" in done.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "there is no prompt"),
        (("  ",), "there is no prompt"),
        (("x", "--loud"), "unknown option `--loud`"),
        (("x", "--timeout", "soon"), "is not a time"),
        (("x", "--timeout", "0"), "is not a time"),
        (("x", "--max-retries", "-1"), "--max-retries"),
        (("x", "--set", "key"), "is not a setting"),
        (("x", "--json", "--quiet"), "cannot be used together with"),
        (("x", "--session", "a", "--continue"), "cannot be used together with"),
        (("x", "--permission-mode", "yolo"), "`--permission-mode` does not take `yolo`"),
        (("x", "--on-ask", "maybe"), "`--on-ask` does not take `maybe`"),
        (("x", "--cwd", "nowhere"), "there is no directory"),
        (("x", "--add-dir", "nowhere"), "there is no directory"),
        (("x", "--file", "nowhere"), "cannot read `nowhere`"),
        (("fix @missing.py",), "there is no file `missing.py`"),
        (("x", "--attach", "missing"), "there is no file `missing`"),
        (("x", "--allow", "Bash(git *"), "is not a rule"),
    ],
)
def test_what_makes_no_sense_ends_with_2_and_a_hint(words: tuple[str, ...], why: str, place: Place) -> None:
    done = place.run(*words)
    assert done.status == 2 and (done.out == "") == ("--json" not in words)
    lines = done.err.splitlines()
    assert lines[0].startswith("error: ") and why in done.err and lines[-1].startswith("hint: ")


def test_help_has_every_option_and_status(place: Place) -> None:
    done = place.run("--help")
    assert done.status == 0 and done.err == ""
    for word in ("--agent", "--attach", "--json", "--on-ask", "124", "130", "@path:10-20"):
        assert word in done.out


# What is written.


def test_in_a_pipe_there_are_no_control_codes(place: Place) -> None:
    done = place.run("/edit notes.txt hello", "--allow", "Edit")
    assert done.status == 0 and CONTROL not in done.out + done.err
    assert done.out == "`notes.txt` has 1 line now.\n"
    assert "✓ Edit notes.txt" in done.err and "  +hello" in done.err
    assert (place.cwd / "notes.txt").read_text(encoding="utf-8") == "hello\n"


def test_thoughts_plan_and_usage_are_on_stderr(place: Place) -> None:
    assert "Let me think about it for a moment." in place.run("/think it").err
    assert "plan 3/3: done" in place.run("/plan").err
    assert "100 tokens (50 in, 50 out) · context 100 of 200,000" in place.run("/usage").err
    assert "! warning: A notice: warning" in place.run("/notice").err


def test_quiet_gives_the_last_message_alone(place: Place) -> None:
    done = place.run("--quiet", "/edit notes.txt hello", "--allow", "Edit")
    assert (done.out, done.err) == ("`notes.txt` has 1 line now.\n", "")


def test_messages_are_distinguished_by_an_empty_line(place: Place) -> None:
    done = place.run("/run true", "--deny", "Bash")
    assert done.out == "You did not allow it, so nothing was done.\n"
    done = place.run("/limit 5 echo one", "--allow", "Bash(echo *)")
    assert done.out == "one\n`echo one` ended with 0.\n"  # one message: the end of a call does not divide it
    done = place.run("hi", "--agent", place.agent(agents.SaysTwice))
    assert done.out == "Call.\n\nResponse.\n"


def test_updates_after_the_response_are_still_shown(place: Place) -> None:
    done = place.run("hi", "--agent", place.agent(agents.ReportsLate))
    assert done.out == "Call and response.\n"


# The exit status.


@pytest.mark.parametrize(
    ("reason", "status"), [("end_turn", 0), ("refusal", 3), ("max_tokens", 4), ("max_turn_requests", 4)]
)
def test_why_the_turn_ended_is_the_exit_status(reason: str, status: int, place: Place) -> None:
    done = place.run(f"/stop {reason}")
    assert done.status == status
    assert (f"stopped: {reason}" in done.err) == (status != 0)


def test_a_failed_turn_ends_with_1_and_a_reason(place: Place) -> None:
    done = place.run("x", "--agent", place.agent(agents.Fails))
    assert (done.status, done.out) == (1, "I begin\n")
    assert "error: the model is tired\nhint: " in done.err and "hint: " in done.err


@pytest.mark.parametrize(
    ("agent", "status", "why"),
    [
        ("no/such/program", 2, "no such program"),
        ("sh -c 'exit 3'", 1, "exited with status 3"),
    ],
)
def test_an_agent_that_does_not_start_is_an_error(agent: str, status: int, why: str, place: Place) -> None:
    done = place.run("x", "--agent", agent, "--max-retries", "0")
    assert (done.status, done.out) == (status, "") and why in done.err and "hint: " in done.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("x", "--agent", "lute"), "there is no agent named `lute`"),
        (("x", "--mcp-config", "/nope"), "cannot read `/nope`"),
        (("look at @README.md#L9:12",), "`README.md` has no line 9"),
        (("x", "-a", "p.png#L1"), "has no lines"),
        (("x", "--mode", "zz"), "error: there is no mode `zz`\n"),
        (("x", "--model", "zz"), "error: there is no model `zz`\n"),
        (("x", "--set", "zz=1"), "error: there is no setting `zz`\n"),
    ],
)
def test_what_the_arguments_name_and_is_not_there_ends_with_2(words: tuple[str, ...], why: str, place: Place) -> None:
    (place.cwd / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = place.run(*words)
    assert (done.status, done.out) == (2, "") and why in done.err and done.err.count("hint: ") == 1


def test_a_login_that_is_wanted_has_an_exit_status_of_its_own_and_the_hint_has_the_methods(place: Place) -> None:
    done = place.run("x", "--agent", place.agent(agents.WantsLogin))
    assert done.status == 7 and "wants you to sign in" in done.err
    hint = done.err.splitlines()[-1]
    assert hint.startswith("hint: ") and "`browser` (In the browser: opens a page)" in hint and "`key`" in hint


def test_a_request_that_the_user_could_not_answer_is_denied_and_ends_with_5(place: Place) -> None:
    done = place.run("/edit notes.txt hello")
    assert done.status == 5 and not (place.cwd / "notes.txt").exists()
    assert "✗ denied (edit)" in done.err and "✗ Edit notes.txt (denied)" in done.err
    assert done.err.endswith("(exit status 5); `--allow 'Edit(notes.txt)'` allows it\n")
    assert place.run("/edit notes.txt hello", "--allow", "Edit(notes.txt)").status == 0


def test_no_rule_is_named_where_none_would_help(place: Place) -> None:
    place.configure("allow = [")
    done = place.run("/edit notes.txt hello")
    assert done.status == 5 and "--allow" not in done.err and "so everything is asked. There is no user" in done.err
    assert done.err.endswith("mend the config file that the warning names\n")


def test_the_last_of_what_a_command_wrote_is_shown(place: Place) -> None:
    done = place.run("/run seq 30", "--on-ask", "allow")
    assert done.out == "`seq 30` ended with 0.\n"
    assert "✓ Run `seq 30`\n  … 20 lines before\n  21\n" in done.err and done.err.endswith("  30\n")


def test_words_and_notes_in_one_log_are_lines_of_their_own(place: Place) -> None:
    log = place.cwd / "log"
    with log.open("wb") as both:
        subprocess.run(
            place.words("/edit notes.txt hello"),
            cwd=place.cwd, env=place.env, stdin=subprocess.DEVNULL, stdout=both, stderr=both, check=False, timeout=limit(),
        )  # fmt: skip
    lines = log.read_text(encoding="utf-8").splitlines()
    assert "You did not allow it, so nothing was done." in lines and "✗ Edit notes.txt (denied)" in lines


def test_status_5_counts_before_the_stop_reason(place: Place) -> None:
    assert place.run("/edit notes.txt", "--on-ask", "deny").status == 5
    assert place.run("/edit notes.txt", "--deny", "Edit").status == 0  # a rule decided, so the user was not asked


def test_on_ask_fail_ends_the_turn_with_1(place: Place) -> None:
    done = place.run("/edit notes.txt hello", "--on-ask", "fail")
    assert done.status == 1 and not (place.cwd / "notes.txt").exists()
    assert done.err.splitlines() == [
        "✗ Edit notes.txt (denied)",
        f"error: `{place.cwd / 'notes.txt'}` needs permission, and there is no terminal to ask in",
        "hint: `--allow 'Edit(notes.txt)'` allows it",
    ]


def test_on_ask_allow_allows(place: Place) -> None:
    assert place.run("/edit notes.txt hello", "--on-ask", "allow").status == 0
    assert (place.cwd / "notes.txt").exists()


def test_an_agent_that_never_asks_gets_nothing_for_free(place: Place) -> None:
    words = ("x", "--agent", place.agent(agents.NeverAsks))
    done = place.run(*words)
    assert done.status == 5 and done.out == "fs/write_text_file: refused\nterminal/create: refused\n"
    assert sorted(os.listdir(place.cwd)) == ["README.md"]
    done = place.run(*words, "--allow", "Write", "--allow", "Bash(touch *)")
    assert done.status == 0 and done.out == "fs/write_text_file: done\nterminal/create: done\n"


@pytest.mark.parametrize(
    ("mode", "status"), [("acceptEdits", 0), ("bypassPermissions", 0), ("plan", 0), ("dontAsk", 0)]
)
def test_the_permission_mode_decides_what_no_rule_does(mode: str, status: int, place: Place) -> None:
    done = place.run("/edit notes.txt hello", "--permission-mode", mode)
    assert done.status == status
    assert (place.cwd / "notes.txt").exists() == (mode in ("acceptEdits", "bypassPermissions"))


def test_questions_are_declined_without_a_user(place: Place) -> None:
    done = place.run("/ask")
    assert (done.status, done.out) == (0, "You would rather not say.\n")
    assert "? Which part do you sing? (declined)" in done.err
    assert place.run("/visit").out == "You stayed here.\n"


# Settings.


def test_settings_of_the_user_hold_and_the_command_line_wins(place: Place) -> None:
    place.configure('agent = "lute"\n\n[policy]\nallow = ["Edit"]\n')
    assert "there is no agent named `lute`" in place.run("hi").err
    assert place.run("/edit notes.txt", "--agent", "demo").status == 0
    assert place.run("/edit other.txt", "--agent", "demo", "--deny", "Edit").out.startswith("You did not allow it")


def test_a_broken_config_file_is_reported_and_allows_nothing(place: Place) -> None:
    place.configure('[policy\nallow = ["Edit"]\n')
    done = place.run("/edit notes.txt", "--allow", "Edit")
    assert done.status == 5 and "warning: " in done.err and not (place.cwd / "notes.txt").exists()


def test_the_log_has_no_prompts_and_no_secrets(place: Place) -> None:
    words = ("my private words", "--agent", place.agent(agents.Leaks))
    done = place.run(*words, env={"MY_API_KEY": "hunter2hunter2"})
    assert (done.status, done.out) == (0, "my private words\n")
    log = place.state / "logs" / "antiphon.log"
    text = log.read_text(encoding="utf-8")
    assert "[debug] using key *** and sk-***" in text and "the run ended with 0" in text
    assert "hunter2" not in text and "0123456789abcdef" not in text and "private" not in text
    assert log.stat().st_mode & 0o077 == 0
    loud = place.run(*words, "--verbose", env={"MY_API_KEY": "hunter2hunter2"})
    assert "[debug] using key ***" in loud.err and "hunter2" not in loud.err


def test_a_state_directory_that_cannot_be_used_is_not_a_reason_to_fail(place: Place) -> None:
    place.state.write_text("a file", encoding="utf-8")
    done = place.run("/think of it", "--agent", place.agent(agents.TakesTextOnly))
    assert (done.status, done.out) == (0, "text\n") and "Traceback" not in done.err


@pytest.mark.parametrize("words", [("run",), ("chat",), ("agents",), ("policy", "explain")])
def test_help_fits_the_terminal(words: tuple[str, ...], place: Place) -> None:
    done = subprocess.run(
        [*place.words()[:-1], *words, "--help"],
        env={**place.env, "COLUMNS": "80"}, capture_output=True, encoding="utf-8", check=True, timeout=limit(),
    )  # fmt: skip
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_quiet_still_prints_what_does_not_count(place: Place) -> None:
    (place.cwd / ".antiphon").mkdir()
    (place.cwd / ".antiphon" / "config.toml").write_text('[policy]\nallow = ["Edit"]\n', encoding="utf-8")
    done = place.run("--quiet", "/echo la")
    assert done.out == "la\n" and done.err.count("antiphon policy trust") == 1 and "warning: " in done.err
    (place.cwd / ".mcp.json").write_text("{}", encoding="utf-8")
    stranger = place.run("--quiet", "hi", "--agent", place.agent(agents.TakesTextOnly))
    assert stranger.err.count(".mcp.json") == 1
