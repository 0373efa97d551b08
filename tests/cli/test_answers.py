"""No text but the listed answers allows anything: at the prompts of `run`, `setup` and `sessions delete`."""

import asyncio
import io
import os
import pty
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from antiphon.cli.run.person import Person
from antiphon.cli.terminal import YES_OR_NO, Screen, TypedAnswers, answered_yes
from antiphon.permission.gate import PermissionChoice, Question
from antiphon.policy import Action, Rule, Ruling, Verdict
from antiphon.protocol import v1

QUIET: Final = 0.05
EOF: Final = "\x04"
SCOPES: Final = {"s": "session", "p": "project", "e": "everywhere"}
LISTED: Final = {"y", "yes", *SCOPES, *SCOPES.values()}
WORDS: Final = [
    "exit", "end", "stop", "skip", "quit", "please no", "pass", "says who", "yesterday", "yn", "y n", "", "ok", "sure", "\u017f", "no",
]  # fmt: skip
CALL: Final = Question(
    "s", Action(kind="execute", name="Bash", command="rm -rf build"), Ruling(Verdict.ASK, None, "mode", "Nothing decides."),
    (Rule.parse("Bash(rm -rf build)"),),
)  # fmt: skip

letters = st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("yesnopYSE \t\r\n")
typed = st.one_of(
    st.sampled_from([*WORDS, *LISTED]).map(lambda word: f"{word}\n"),
    st.lists(st.sampled_from([*WORDS, *LISTED]), min_size=2, max_size=4).map("\n".join),
    st.text(alphabet=letters, max_size=8),
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class TypedInput(io.StringIO):
    """A screen's stream in front of a pseudo-terminal. When a question is shown a text is typed, when it is shown again the line is cut."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text: str | None = text if text.endswith(("\n", "\r", EOF)) else text + EOF + EOF
        self._master, self.slave = pty.openpty()

    def write(self, text: str) -> int:
        if "(y yes" in text:
            if self._text is None:
                self.cut()
            else:
                os.write(self._master, self._text.encode())
                self._text = None
        return super().write(text)

    def cut(self) -> None:
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def __exit__(self, *_: object) -> None:
        self.cut()
        os.close(self.slave)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


def asked_by_run(runner: asyncio.Runner, what: str, text: str) -> object:
    """What a question of `run` makes of a text."""
    with TypedInput(text) as typist:
        person = Person(Screen(io.StringIO(), typist), typist.slave, QUIET)
        match what:
            case "permission":
                return runner.run(person.decide(CALL))
            case "page":
                page = v1.UrlElicitation(message="Sign in", elicitation_id="e", url="https://example.org/")
                return runner.run(person.visit(page))
            case _:
                form = v1.FormElicitation(message="Delete it all?", requested_schema=v1.Form(properties={}))
                return runner.run(person.fill_in(form))


def word_of(text: str) -> str | None:
    """The word that is alone on the only line of a text, as a terminal reads it (Enter sends a carriage return)."""
    line, end, rest = text.replace("\r", "\n").partition("\n")
    return line.strip(" \t").lower() if end and not rest and line.isascii() else None


@settings(max_examples=300)
@given(st.binary(max_size=12) | typed.map(str.encode))
def test_a_line_means_something_only_if_all_of_it_is_a_listed_word(text: bytes) -> None:
    found = TypedAnswers({"y": 1, "session": 2}).read(text)
    assert found is None or text.strip(b" \t\r\n").lower() == {1: b"y", 2: b"session"}[found]
    assert found is None or text.count(b"\n") == 1 == text.endswith(b"\n")


@quick
@example("exit\n")
@example("y\nno\n")
@example("y")
@given(typed)
def test_only_a_listed_answer_gives_permission_in_run(runner: asyncio.Runner, text: str) -> None:
    choice = asked_by_run(runner, "permission", text)
    word = word_of(text)
    assert isinstance(choice, PermissionChoice)
    assert (choice.verdict is Verdict.ALLOW) == (word in LISTED)
    scope = SCOPES.get((word or "")[:1]) if choice.verdict is Verdict.ALLOW else None
    assert choice.scope == scope


@pytest.mark.parametrize("what", ["page", "form"])
@quick
@example("exit\n")
@example("\n")
@given(typed)
def test_only_a_yes_accepts_what_else_the_agent_asks_in_run(runner: asyncio.Runner, what: str, text: str) -> None:
    accepted = isinstance(asked_by_run(runner, what, text), v1.Accepted)
    assert accepted == (word_of(text) in ("y", "yes"))


@quick
@example("y")
@given(typed)
def test_only_a_yes_agrees_to_a_change(text: str) -> None:
    with TypedInput(text) as typist:
        agreed = answered_yes(Screen(io.StringIO(), typist), typist.slave, "Write it? (y yes, n no): ", QUIET)
    assert agreed == (word_of(text) in ("y", "yes"))


def test_the_meaning_of_a_no_is_not_the_lack_of_a_meaning() -> None:
    assert (YES_OR_NO.read(b"no\n"), YES_OR_NO.read(b"nope\n")) == (False, None)
