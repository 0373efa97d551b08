"""The screens of `antiphon chat` with the real Claude Code and Codex: who answers, the questions, a duet."""

import re
from typing import Any

import pytest

from antiphon.tui.screen import PROMPT
from tests.duet.e2e.editors import Place
from tests.engines.claude.model.steps import Call
from tests.engines.model.steps import Text
from tests.tui.terminal import CTRL_D, ENTER, ESCAPE, chat

pytestmark = pytest.mark.slow


def test_who_answers_is_named_a_question_is_small_and_a_reason_reaches_the_model(at: Place) -> None:
    song = at.write("song.txt", "do\nre\nmi\n")
    claude: Any = at.claude
    claude.model.answers(claude.calls.edit_file(song, "re", "zither"))
    claude.model.answers(Text("No zither, then."))
    claude.model.answers(Text("Claude sings."))
    at.codex.model.answers(Text("Codex sings."))
    environment: dict[str, Any] = {**at.environment, "ANTIPHON_ROUTE": "claude"}
    with chat(at.folder.parent, "antiphon", rows=30, **environment) as terminal:
        terminal.wait("· signed in")
        found = re.compile(r"  Claude Code  answers · (\w[^·]*) · signed in\n")
        shown = terminal.until(lambda: found.search(terminal.shown) is not None, "the model is not named")
        assert "  Codex        " in shown
        terminal.ask(f"add a zither{ENTER}", "Allow?")
        terminal.wait("no, because …")
        shown = terminal.wait("waiting for you")
        question = shown[shown.index("Allow?") :].split("\n")
        assert question[0] == "Allow?  Claude Code: Edit song.txt  +1 -1"
        assert "  2 - re" in question and "  2 + zither" in question
        assert (
            question[-2].startswith("y once · a always Edit(song.txt) · ")
            and "A all edits · n no · r no, because …" in question[-2]
        )
        assert "asks" not in shown and "Reject" not in shown and len(question) <= 15
        terminal.ask("r", "Because:")
        terminal.ask(f"no zithers please{ENTER}", "No zither, then.")
        shown = terminal.wait("   /help")
        assert "no zithers please" in claude.model.last.everything
        assert "✗ Edit song.txt  denied" in shown and "rejected this tool call" not in shown
        assert song.read_text(encoding="utf-8") == "do\nre\nmi\n"
        terminal.ask(f"/duet sing{ENTER}", "Codex sings.")
        shown = terminal.wait("   /help")
        assert "● Claude Code\n" in shown and "● Codex\n" in shown and "**" not in shown
        assert "Claude Code" in shown.split("\n")[-1] and " + Codex" in shown.split("\n")[-1]
        shown = terminal.ask("/", "keys and commands")  # who answers is in sight, and not behind all other commands
        assert "  /claude " in shown and "  /duet " in shown and "  /review " in shown


def test_an_engine_that_is_signed_in_answers_instead_of_one_that_is_not(at: Place) -> None:
    environment: dict[str, Any] = {**at.environment, "ANTHROPIC_API_KEY": ""}
    at.codex.model.answers(Text("Codex sings."))
    with chat(at.folder.parent, "antiphon", rows=30, **environment) as terminal:
        shown = (
            terminal.wait("not signed in: /login").replace(" · gpt-5.5", "").replace("Opus 5.5 · ", "")
        )  # known or not yet
        assert "  Claude Code  not signed in: /login" in shown and "  Codex        answers · signed in" in shown
        terminal.wait("Codex (gpt-5.5) · mode default")
        terminal.ask(f"sing{ENTER}", "Codex sings.")


def test_signing_in_is_offered_before_the_first_prompt_and_the_prompt_comes_back(at: Place) -> None:
    environment: dict[str, Any] = {**at.environment, "ANTHROPIC_API_KEY": "", "ANTIPHON_ROUTE": "claude"}
    with chat(at.folder.parent, "antiphon", rows=30, **environment) as terminal:
        shown = terminal.wait(" 1  Claude subscription")
        assert "  Claude Code  answers · " in shown and "· not signed in: /login" in shown
        assert "\nClaude Code is not signed in\n" in shown
        terminal.press(ESCAPE)
        terminal.wait(" 1  Claude subscription", gone=True)
        terminal.ask(f"sing a song{ENTER}", " 1  Claude subscription")
        terminal.press(ESCAPE)
        shown = terminal.wait(f"{PROMPT} sing a song\nClaude Code")  # on the line again
        assert "✗ Claude Code is not signed in." in shown and "-32000" not in shown and "claude-ai-login" not in shown


@pytest.mark.parametrize("engine", ["claude", "codex"])
def test_a_denied_call_is_denied_also_when_the_session_is_opened_again(at: Place, engine: str) -> None:
    song = at.write("song.txt", "do\nre\nmi\n")
    own: Any = at.claude if engine == "claude" else at.codex
    own.model.answers(own.calls.edit_file(song, "re", "zither"))
    own.model.answers(Text("No zither, then."))
    environment: dict[str, Any] = {**at.environment, "ANTIPHON_ROUTE": engine}
    with chat(at.folder.parent, "antiphon", rows=30, **environment) as terminal:
        terminal.wait("   /help")
        terminal.ask(f"add a zither{ENTER}", "no, because …")
        terminal.press("n")
        if engine == "claude":
            terminal.wait("No zither, then.")
        shown = terminal.wait("   /help")
        assert "✗ Edit song.txt  denied" in shown and "failed" not in shown
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        resume = terminal.all.rpartition("antiphon chat --resume ")[2].split()[0]
    with chat(at.folder.parent, "antiphon", "--resume", resume[:8], rows=30, **environment) as terminal:
        terminal.wait("Edit song.txt")
        shown = terminal.wait("   /help")
        assert "✗ Edit song.txt  denied" in shown and " failed" not in shown and "rejected" not in shown


def test_a_question_of_the_model_is_shown_once_and_answered_in_one_step(at: Place) -> None:
    choices = [{"label": "SQLite", "description": "A file"}, {"label": "Postgres", "description": "A server"}]
    question = {"question": "Which database?", "header": "DB", "multiSelect": False, "options": choices}
    for answer in ("2: on port 99", "a flat file"):
        at.claude.model.answers(Call("AskUserQuestion", {"questions": [question]}))
        at.claude.model.answers(Text(f"Taken: {answer[-4:]}."))
    environment: dict[str, Any] = {**at.environment, "ANTIPHON_ROUTE": "claude"}
    with chat(at.folder.parent, "antiphon", rows=30, **environment) as terminal:
        terminal.wait("   /help")
        shown = terminal.ask(f"ask me{ENTER}", "\nDB:")
        assert shown.count("Which database?") == 1 and shown.count("SQLite") == 1 and "DB: other" not in shown
        shown = terminal.ask(f"2: on port 99{ENTER}", "Taken: t 99.")
        assert shown.count("Which database?") == 1 and "  DB: Postgres, on port 99\n" in shown
        terminal.wait("   /help")
        shown = terminal.ask(f"/clear{ENTER}ask again{ENTER}", "\nDB:")
        shown = terminal.ask(f"a flat file{ENTER}", "Taken: file.")
        assert "  DB: a flat file\n" in shown and "question_1" not in shown
    sent = at.claude.model.last.everything
    assert "Postgres" in sent and "on port 99" in sent and "a flat file" in sent
