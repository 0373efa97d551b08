"""`antiphon chat` in a real pseudo-terminal, against the demo agent."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.tui.screen import PROMPT
from tests.limits import limit
from tests.tui.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, TAB, Terminal, chat

READY = "mode default"
pytestmark = pytest.mark.slow


def begin(terminal: Terminal) -> None:
    terminal.wait(READY)


def idle(terminal: Terminal) -> str:
    """Nothing runs: the state names /help."""
    return terminal.wait("   /help")


def test_text_a_plan_an_edit_and_a_command_are_shown_as_they_happen(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        assert "The demo answers" in terminal.shown and "  /help " in terminal.shown
        terminal.ask(f"Where are we?{ENTER}", "You are in work")
        idle(terminal)
        shown = terminal.ask(f"/plan{ENTER}", "Plan  3 of 3 done")
        assert "✓ Look around" in shown
        idle(terminal)
        terminal.ask(f"/edit notes.txt Sing the second voice{ENTER}", "y once")
        shown = terminal.shown
        assert "Allow?  Edit notes.txt" in shown and "+ Sing the second voice" in shown
        assert shown.count("+ Sing the second voice") == 1  # not once more above the question
        assert not (tmp_path / "work" / "notes.txt").exists()
        terminal.ask("y", "has 1 line now")
        assert (tmp_path / "work" / "notes.txt").read_text(encoding="utf-8") == "Sing the second voice\n"
        idle(terminal)
        terminal.ask(f"/run echo one && echo two{ENTER}", "$ echo one && echo two")
        shown = terminal.ask("y", "ended with 0")
        assert "✓ Run `echo one && echo two`\n  one\n  two" in shown
        idle(terminal)
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert "\n\nGo on with this session: antiphon chat --resume " in terminal.all


def test_a_denied_call_is_not_made_and_a_stray_key_is_not_an_answer(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/run touch made{ENTER}", "Allow?")
        terminal.press("x7y")  # words, in which a letter is not an answer
        terminal.press(ESCAPE)
        terminal.wait("Allow?", gone=True)
        idle(terminal)
        terminal.ask(f"/run touch made{ENTER}", "Allow?")
        terminal.ask("n", "denied")
        idle(terminal)
        assert not (tmp_path / "work" / "made").exists()
        for leaving in (ESCAPE, CTRL_C):
            terminal.ask(f"/run touch made{ENTER}", "Allow?")
            terminal.press(leaving)
            terminal.wait("Allow?", gone=True)
            idle(terminal)
        assert not (tmp_path / "work" / "made").exists()
        assert "(cancelled)" not in terminal.all  # no is not an end of the turn


def test_a_word_that_is_being_typed_when_the_question_comes_is_not_an_answer(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/run touch made{ENTER}yyyyyyy", "Allow?")
        terminal.wait("stop typing", gone=True)
        assert not (tmp_path / "work" / "made").exists()
        terminal.ask("n", "denied")
        terminal.wait(f"{PROMPT} yyyyyyy")
        assert not (tmp_path / "work" / "made").exists()


def test_always_names_the_rule_and_is_not_asked_again(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/run echo call{ENTER}", "Allow?")
        terminal.ask("a", "Always allow\n  Bash(echo call)")
        terminal.ask("s", "always in this session: Bash(echo call)")
        idle(terminal)
        terminal.press(f"/run echo call{ENTER}")
        terminal.until(lambda: terminal.all.count("echo call ended with 0") == 2)
        idle(terminal)
        terminal.ask(f"/run echo other{ENTER}", "Allow?")


def test_a_form_is_asked_field_by_field_with_defaults_and_checks(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/ask{ENTER}", "Your name [Ada]:")
        terminal.ask(ENTER, "Your voice [high]:")
        terminal.ask(f"7{ENTER}", "✗ one of them, by its number from 1 to 2")
        terminal.ask(f"2{ENTER}", "How many bars [8]:")
        terminal.ask(f"many{ENTER}", "✗ a whole number")
        terminal.ask(f"16{ENTER}", "How fast [1.0]:")
        terminal.ask(ENTER, "Again? [n]:")
        terminal.ask(f"y{ENTER}", "Which parts [call]:")
        shown = terminal.ask(f"1, 2{ENTER}", "• voice: low")
        assert "• bars: 16" in shown and "• repeat: True" in shown and "• name: Ada" in shown
        idle(terminal)
        terminal.ask(f"/ask{ENTER}", "Your name [Ada]:")
        terminal.ask(ESCAPE, "You would rather not say.")


def test_a_page_is_shown_with_its_whole_address_and_not_opened_unasked(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/visit https://example.org/a?b=c{ENTER}", "o open it in the browser")
        assert "https://example.org/a?b=c" in terminal.shown
        terminal.ask("y", "You went there.")
        terminal.wait("Done at https://example.org/a?b=c")


def test_what_is_typed_while_a_turn_runs_waits_and_comes_back_when_it_is_cancelled(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/slow 3000{ENTER}", "1 2 3")
        terminal.ask(f"the next{ENTER}", f"queued {PROMPT} the next")
        terminal.ask("a draft", f"{PROMPT} a draft")
        shown = terminal.ask(CTRL_C, "(cancelled)")
        terminal.wait(f"{PROMPT} the next\n  a draft")
        idle(terminal)
        terminal.wait("queued", gone=True)
        assert "1 2 3" in shown
        terminal.press(CTRL_C)
        terminal.wait("the next", gone=True)
        terminal.ask(CTRL_C, "Ctrl-C again to leave")
        terminal.press(CTRL_C)
        assert terminal.wait_for_end() == 0


def test_what_comes_after_a_turn_was_cancelled_is_shown_once(tmp_path: Path) -> None:
    agent = f"{sys.executable} -m tests.cli.agents ReportsWhenCancelled {tmp_path / 'log'}"
    with chat(tmp_path, "--agent", agent, PYTHONPATH=os.pathsep.join(sys.path)) as terminal:
        idle(terminal)
        terminal.ask(f"go{ENTER}", "begun")
        terminal.ask(CTRL_C, "(cancelled)")
        idle(terminal)
        assert "✗ Work  cancelled\n\nbegun and stopped\n\n(cancelled)" in terminal.all


def test_prompts_that_wait_are_sent_when_the_turn_is_over(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/slow 15{ENTER}", "1 2 3")
        terminal.ask(f"/echo the second{ENTER}", f"queued {PROMPT} /echo the second")
        terminal.wait("queued", gone=True)
        idle(terminal)
        assert terminal.all.index("14 15") < terminal.all.index(f"{PROMPT} /echo the second")


def test_long_text_goes_up_once_and_is_never_written_again(tmp_path: Path) -> None:
    with chat(tmp_path, rows=20) as terminal:
        begin(terminal)
        terminal.press(f"/many 5000{ENTER}")
        terminal.wait("4999")
        idle(terminal)
        words = terminal.all.split()
        assert [word for word in words if word.isdigit()][-5000:] == [str(number) for number in range(5000)]


def test_the_window_is_never_higher_than_the_terminal_and_survives_a_resize(tmp_path: Path) -> None:
    with chat(tmp_path, columns=80, rows=24) as terminal:
        begin(terminal)
        terminal.ask(f"/slow 3000{ENTER}", "1 2 3")
        terminal.resize(40, 12)
        terminal.wait("20 21 22")
        terminal.resize(100, 30)
        terminal.wait(f"Ctrl-C cancels   Antiphon demo (echo) · {READY}")
        terminal.ask(CTRL_C, "(cancelled)")
        idle(terminal)
        terminal.ask(f"/echo after{ENTER}", "after")


def test_commands_and_paths_are_completed(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        (tmp_path / "work" / "score.txt").write_text("la\n", encoding="utf-8")
        begin(terminal)
        shown = terminal.ask("/mo", "/model       pick a model")
        assert "/mode " in shown and "/move" in shown
        terminal.press(TAB + ENTER + " ")
        terminal.ask("pl", "Only look: Writes nothing")
        terminal.press(TAB + ENTER + ENTER)
        terminal.wait("mode: plan (nothing is changed, nothing is run)")
        terminal.wait("mode plan")
        terminal.ask("read @sc", "score.txt")
        terminal.press(TAB + ENTER + ENTER)
        terminal.wait("With your words came")


def test_our_own_commands(tmp_path: Path) -> None:
    with chat(tmp_path, rows=80) as terminal:
        begin(terminal)
        shown = terminal.ask(f"/help{ENTER}", "more about it")
        assert "Shift-Tab" in shown
        assert "//mode" in terminal.ask(f"/help agent{ENTER}", "/all ")
        terminal.ask(f"/help load{ENTER}", "/load [NUMBER|ID]       go to another session")
        shown = terminal.ask(f"/mode{ENTER}", "everything is allowed unless a rule denies it")
        assert "default            ▸ Ask first" in shown
        terminal.press(ESCAPE)
        terminal.wait(f"{PROMPT} /mode", gone=True)
        terminal.ask(f"/model can{ENTER}", "model: canon")
        terminal.ask(f"/set greeting on{ENTER}", "greeting: on")
        terminal.ask(f"/set tempo{ENTER}", "✗ there is no setting `tempo`")
        terminal.ask(f"/usage{ENTER}", "not reported any usage")
        terminal.ask(f"//usage{ENTER}", "tokens used")
        idle(terminal)
        terminal.ask(f"/usage{ENTER}", "context  ")
        terminal.ask(f"/diff{ENTER}", "There are no changes in this session")
        terminal.ask(f"/edit a.txt one{ENTER}", "Allow?")
        terminal.ask("y", "has 1 line now")
        idle(terminal)
        terminal.press(f"/clear{ENTER}")
        terminal.wait("has 1 line now", gone=True)
        terminal.ask(f"/diff{ENTER}", "a.txt  +1 -0  new")
        terminal.press(f"/exit{ENTER}")
        assert terminal.wait_for_end() == 0


def test_sessions_are_listed_and_loaded_with_their_history(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/echo the first song{ENTER}", "the first song")
        idle(terminal)
        terminal.ask(f"/new{ENTER}", "a new session")
        idle(terminal)
        terminal.ask(f"/sessions{ENTER}", "/load NUMBER or /load ID goes there")
        terminal.press(f"/clear{ENTER}")
        terminal.wait("goes there", gone=True)
        terminal.press(f"/load 1{ENTER}")
        terminal.wait(f"{PROMPT} /echo the first song")
        idle(terminal)
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
    with chat(tmp_path, "--continue") as terminal:
        terminal.wait(f"{PROMPT} /echo the first song")


def id_in_hint(terminal: Terminal) -> str:
    """The session that the last line names."""
    terminal.press(CTRL_D)
    assert terminal.wait_for_end() == 0
    return "".join(terminal.all.rpartition("antiphon chat --resume ")[2].split())


def test_the_session_that_was_left_is_gone_on_with_also_if_it_was_only_looked_at(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/echo the first song{ENTER}", "the first song")
        idle(terminal)
        first = id_in_hint(terminal)
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/echo the second song{ENTER}", "the second song")
        idle(terminal)
        terminal.ask(f"/sessions{ENTER}", "/load NUMBER or /load ID goes there")
        assert first[:8] in terminal.shown
        terminal.ask(f"/load {first[:8]}{ENTER}", f"session {first}")
        terminal.wait(f"{PROMPT} /echo the first song")
        idle(terminal)
        assert id_in_hint(terminal) == first
    for words in (("--continue",), ("--resume", first[:8]), ("--resume", first)):
        with chat(tmp_path, *words) as terminal:
            terminal.wait(f"{PROMPT} /echo the first song")
            idle(terminal)
            assert "second song" not in terminal.all
            assert id_in_hint(terminal) == first


def test_the_session_of_the_chat_that_was_left_last_is_continued_whatever_another_chat_did_meanwhile(
    tmp_path: Path,
) -> None:
    with chat(tmp_path) as long:
        begin(long)
        long.ask(f"/echo the long song{ENTER}", "the long song")
        idle(long)
        with chat(tmp_path) as short:
            begin(short)
            short.ask(f"/echo the short song{ENTER}", "the short song")
            idle(short)
            id_in_hint(short)
        left = id_in_hint(long)
    with chat(tmp_path, "--continue") as terminal:
        terminal.wait(f"{PROMPT} /echo the long song")
        idle(terminal)
        assert id_in_hint(terminal) == left


SLOW_AGENT = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        open(sys.argv[1]).read()
        list = {"sessionCapabilities": {"list": {}}}
        result = {"protocolVersion": 1, "agentCapabilities": list, "agentInfo": {"name": "slow", "version": "1"}}
    elif asked.get("method") == "session/list":
        result = {"sessions": [{"sessionId": "s-1", "cwd": asked["params"]["cwd"], "title": "An early song"}]}
    else:
        result = {"sessionId": "s"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("command", ["/sessions", "/help", "/mode", "/set"])
def test_a_command_before_the_agent_has_started_waits_as_a_prompt_does(tmp_path: Path, command: str) -> None:
    agent, gate = tmp_path / "agent.py", tmp_path / "gate"
    agent.write_text(SLOW_AGENT, encoding="utf-8")
    os.mkfifo(gate)
    with chat(tmp_path, "--agent", f"{sys.executable} {agent} {gate}") as terminal:
        terminal.wait("starting")
        terminal.ask(f"{command}{ENTER}", f"{PROMPT} {command}")
        gate.write_text("go", encoding="utf-8")
        answers = {"/sessions": "An early song", "/help": "Ctrl-C", "/mode": "Permission", "/set": "no settings"}
        terminal.wait(answers[command])
        assert "has not started yet" not in terminal.all


def test_a_login_is_asked_for_and_the_request_goes_on(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(LOCKED_AGENT, encoding="utf-8")
    with chat(tmp_path, "--agent", f"{sys.executable} {agent}") as terminal:
        terminal.wait("The agent wants you to sign in")
        assert " 1  By song" in terminal.shown
        terminal.press("1")
        terminal.wait("The agent wants you to sign in", gone=True)
        terminal.wait("locked")
        terminal.ask(f"hello{ENTER}", "signed in by song")
    with chat(tmp_path, "--agent", f"{sys.executable} {agent}") as terminal:
        terminal.wait("The agent wants you to sign in")
        terminal.press(ESCAPE)
        assert terminal.wait_for_end() == 1
        assert "error: " in terminal.all and "hint: " in terminal.all


def test_a_turn_without_a_login_asks_for_it_and_is_not_sent_twice(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    late = LOCKED_AGENT.replace("async def new_session", "async def begin").replace("prompt(self, turn):", LATE)
    agent.write_text(late, encoding="utf-8")
    with chat(tmp_path, "--agent", f"{sys.executable} {agent}") as terminal:
        terminal.wait("locked")
        terminal.ask(f"hello{ENTER}", "The agent wants you to sign in")
        terminal.press("1")
        terminal.wait("Enter sends your prompt again.")
        terminal.wait(f"{PROMPT} hello\n")
        assert "-32" not in terminal.all and "authenticate with one of" not in terminal.all
        terminal.ask(ENTER, "signed in by song")


LATE = """prompt(self, turn):
        await turn.say("hm")"""
LOCKED_AGENT = """
from antiphon import Agent, v1
from antiphon.errors import AuthRequired, Code, RequestError


class Locked(Agent):
    way = None

    async def new_session(self, session):
        if self.way is None:
            raise RequestError(Code.AUTH_REQUIRED, "sign in first")

    async def authenticate(self, method_id):
        self.way = method_id

    async def prompt(self, turn):
        if self.way is None:
            raise RequestError(Code.AUTH_REQUIRED, "sign in first")
        await turn.say(f"signed in by {self.way}")


Locked("locked", auth_methods=[v1.AgentAuth("song", "By song")]).run()
"""


def test_ended_from_outside_it_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/slow 3000{ENTER}", "1 2 3")
        terminal.terminate()
        assert terminal.wait_for_end() == 0
        assert terminal.written.rindex("\x1b[?2004l") > terminal.written.rindex("\x1b[?2004h")  # pasting as before


def test_without_colour_there_is_none(tmp_path: Path) -> None:
    with chat(tmp_path, NO_COLOR="1") as terminal:
        begin(terminal)
        terminal.ask(f"/edit a.txt x{ENTER}", "Allow?")
        assert "\x1b[32m" not in terminal.written and "\x1b[33m" not in terminal.written
        assert "\x1b[38;" not in terminal.written


def test_an_agent_cannot_move_the_cursor(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        # Typed as an escape that the demo's shell makes: a title, and the bell.
        terminal.ask(f"/run printf '\\033]0;owned\\007\\033[2Jleft\\n'{ENTER}", "Allow?")
        terminal.ask("y", "left")
        assert "\x1b]0;owned" not in terminal.written


def test_without_a_terminal_the_hint_names_what_to_use(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon", "chat"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False, timeout=limit()
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'error: a chat needs a terminal\nhint: use `antiphon run "…"` in scripts and pipes\n'


@pytest.mark.parametrize("words", [("--loud",), ("demo", "--agent", "demo"), ("--cwd", "/nowhere/at/all")])
def test_words_it_does_not_know_end_in_a_hint(words: tuple[str, ...], tmp_path: Path) -> None:
    with chat(tmp_path, *words) as terminal:
        assert terminal.wait_for_end() == 2
        assert terminal.all.startswith("error: ") and "hint: " in terminal.all


def test_an_agent_that_is_not_there_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with chat(tmp_path, "nosuch") as terminal:
        assert terminal.wait_for_end() == 2
        assert "error: there is no agent named `nosuch`" in terminal.all and "hint: " in terminal.all


def test_a_session_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/plan{ENTER}", "The plan is done.")
        idle(terminal)
        for name in ("99", "nosuch"):
            terminal.ask(f"/load {name}{ENTER}", f"there is no session `{name}`")
            idle(terminal)
            assert f"session {name}\n" not in terminal.all
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert terminal.all.count("Plan  3 of 3 done") == 1 and "-32" not in terminal.all
        assert terminal.all.count("/sessions lists them") == 2


def test_a_prompt_with_a_wrong_path_comes_back_to_be_corrected_at_its_end(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/echo @./nosuch.txt{ENTER}", "there is no file")
        idle(terminal)
        terminal.ask(" and more", "@./nosuch.txt and more")


def test_a_denied_call_is_shown_as_denied(tmp_path: Path) -> None:
    with chat(tmp_path, "--deny", "Bash(touch *)") as terminal:
        begin(terminal)
        terminal.ask(f"/run touch made{ENTER}", "You did not allow it")
        shown = terminal.wait("touch made`  denied")
        assert "failed" not in shown
        idle(terminal)
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        resume = terminal.all.rpartition("antiphon chat --resume ")[2].split()[0]
    with chat(tmp_path, "--resume", resume) as terminal:  # also when it is loaded again
        assert "failed" not in terminal.wait("touch made`  denied")


def test_what_was_typed_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/echo remember{ENTER}", "remember")
        idle(terminal)
        terminal.press(CTRL_D)
        terminal.wait_for_end()
    history = tmp_path / "state" / "chat_history"
    assert "+/echo remember" in history.read_text(encoding="utf-8")
    assert os.stat(history).st_mode & 0o777 == 0o600
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask("\x1b[A", f"{PROMPT} /echo remember")


def test_the_help_fits_on_one_screen_and_leads_on(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait("say what you want")
        for columns in (80, 50, 120):
            terminal.resize(columns, 24)
            terminal.press(f"/clear{ENTER}")
            terminal.wait("Keys" if columns != 80 else "say what you want", gone=True)
            shown = terminal.ask(f"/help{ENTER}", "\n/help keys, commands, agent, NAME: more about it")
            keys = shown[shown.index("Keys\n") : shown.index("Commands\n")]
            assert keys.count("\n") == 11 and "  Ctrl-O            the rest of the last output\n" in keys
            assert "…" not in keys  # no line is cut
            theirs = shown[shown.index("Commands of Antiphon demo") :]
            assert "  /plan  " in theirs and re.search(r"  … \d+ more\n", theirs), shown
        shown = terminal.ask(f"/help undo{ENTER}", "/undo [N]")
