"""What holds for the gate whatever the line, the change or the order of answers is."""

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.local.roots import Workspace
from antiphon.permission.actions import FileNow, action_of
from antiphon.permission.gate import MAX_DENIALS, PermissionGate
from antiphon.permission.grants import Grants
from antiphon.permission.memory import Memory
from antiphon.policy import PolicyMode, Rule, Rules, Scope, Verdict, decide
from antiphon.protocol import v1
from antiphon.store.decisions import DecisionStore
from antiphon.store.schema import open_database
from tests.permission.gated_session import NO, OPTIONS, AgentActions, User, gated_session
from tests.policy.corpus import lines

WORK = Workspace.at("/project")
FILE = "/project/a"


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


def to_run(line: str) -> v1.RequestPermission:
    call = v1.ToolCallPatch("t", kind=v1.ToolKind.EXECUTE, name="Bash", raw_input={"command": line})
    return v1.RequestPermission("s", call, OPTIONS)


# Doubt.


@settings(max_examples=200, deadline=None)
@example("t${y}ouch x", "Bash(touch *)")
@example("env -S'touch x'", "Bash(touch *)")
@given(lines, st.sampled_from(["Bash(rm *)", "Bash(evil *)", "Bash(git push *)", "Edit(src/**)"]))
def test_without_a_user_nothing_that_a_deny_may_match_is_allowed(runner: asyncio.Runner, line: str, deny: str) -> None:
    """In `bypassPermissions` everything passes that no rule stops: what is asked there is asked because the deny may match."""
    rules = Rules.parse(deny=[deny])
    request = to_run(line)
    gate = PermissionGate(rules, on_ask="allow", workspace=WORK)
    answer = runner.run(gate.permission(request)).outcome
    stopped = decide(action_of(request, WORK), rules, PolicyMode.BYPASS).verdict is not Verdict.ALLOW
    assert (answer == v1.Selected("n")) == stopped
    assert gate.denied == len(gate.denials) == stopped


async def test_denials_are_counted_beyond_those_that_are_kept() -> None:
    gate = PermissionGate(Rules.parse(deny=["Bash(rm *)"]), workspace=WORK)
    many = MAX_DENIALS + 7
    for line in [*["ls"] * many, "rm x"]:
        await gate.permission(to_run(line))
    assert (gate.denied, gate.unattended, len(gate.denials)) == (many + 1, many, MAX_DENIALS)


# Grants.

texts = st.text(alphabet="ab\n\r", max_size=6)
before = st.none() | texts
changes = st.lists(st.tuples(st.none() | texts, texts), max_size=3)


def expected(now: str | None, shown: list[tuple[str | None, str]]) -> str | None:
    """The file as a reader of the diffs must expect it; None if they leave a doubt."""
    for old, new in shown:
        if now is None:
            now = None if old else new
        elif old == now:
            now = new
        elif old and len(now.split(old)) == 2 and now.find(old) == now.rfind(old):
            now = now.replace(old, new)
        else:
            return None
        if now is None:
            return None
    return now if shown else None


@settings(max_examples=300)
@example(
    "a\n" + "x\n" * 2500, [("a\n", "b\n")], "a\n" + "x\n" * 2500, "b\n"
)  # a line was shown, the whole file is written
@example("old", [(None, "new")], "old", "new")  # a new file was shown where there is one
@example("a", [("a", "b")], "c", "b")  # the file has changed since
@example(None, [(None, "\r\r\n")], None, "\n")  # line ends are joined once
@example("aaa", [("aa", "b")], "aaa", "ba")  # it fits in two places
@given(before, changes, before, texts)
def test_a_grant_covers_the_file_before_and_after_as_it_was_shown_and_nothing_else(
    asked: str | None, shown: list[tuple[str | None, str]], now: str | None, content: str
) -> None:
    def unix(text: str | None) -> str | None:
        return None if text is None else text.replace("\r\n", "\n")

    call = v1.ToolCallPatch("t", kind=v1.ToolKind.EDIT, name="Edit", raw_input={"path": FILE})
    action = action_of(v1.RequestPermission("s", call, OPTIONS), WORK)
    grants = Grants()
    grants.give("s", None, action, {FILE: shown}, {FILE: FileNow(asked is not None, asked)})
    taken = grants.take_write("s", None, [FILE], content, FileNow(now is not None, now))
    after = expected(unix(asked), [(unix(old), unix(new) or "") for old, new in shown])
    assert taken == (unix(now) == unix(asked) and after == unix(content))
    assert not taken or not grants.take_write("s", None, [FILE], content, FileNow(now is not None, now))


def test_a_file_that_cannot_be_read_gives_and_takes_no_grant() -> None:
    grants, dark = Grants(), FileNow(there=True)
    call = v1.ToolCallPatch("t", kind=v1.ToolKind.EDIT, name="Edit", raw_input={"path": FILE})
    action = action_of(v1.RequestPermission("s", call, OPTIONS), WORK)
    for shown in ([(None, "x")], [("", "x")], [("a", "x")]):
        grants.give("s", None, action, {FILE: shown}, {FILE: dark})
        assert not grants.take_write("s", None, [FILE], "x", dark)
        assert not grants.take_write("s", None, [FILE], "x", FileNow(False))


OPENED: list[tuple[str, int]] = []
"""The names of files that were opened in this process, each with the thread."""


def note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith("watched"):
        OPENED.append((arguments[0], threading.get_ident()))


sys.addaudithook(note_opened)


@pytest.mark.parametrize(
    ("gate", "reads"),
    [
        (PermissionGate(Rules.parse(allow=["Write"])), None),
        (PermissionGate(Rules.parse(deny=["Write"])), 0),
        (PermissionGate(mode=PolicyMode.BYPASS), None),
        (PermissionGate(on_ask="allow"), None),
        (PermissionGate(on_ask="deny"), 0),
        (PermissionGate(ask=User(NO)), 1),
    ],
    ids=["allow", "deny", "mode", "on-ask allow", "on-ask deny", "asked"],
)
async def test_a_write_reads_the_old_file_in_a_thread_only_to_ask_about_it_and_once(
    tmp_path: Path, gate: PermissionGate, reads: int | None
) -> None:
    """What is written is read by the writer, too: that is counted only where nothing is written."""
    (tmp_path / "watched").write_text("old", encoding="utf-8")
    OPENED.clear()

    async def play(agent: AgentActions) -> None:
        await agent.write("watched", "new")

    async with gated_session(gate, tmp_path) as gated:
        await gated.turn(play)
    opened = [thread for name, thread in OPENED if name == "watched"]
    assert threading.get_ident() not in opened
    assert reads is None or len(opened) == reads


# Memory.


class Answer(NamedTuple):
    rule: str
    verdict: Verdict
    scope: Scope
    session: str
    project: str


answers = st.lists(
    st.builds(
        Answer, st.sampled_from(["Bash(ls)", "Bash(touch x)"]), st.sampled_from([Verdict.ALLOW, Verdict.DENY]),
        st.sampled_from(["session", "project", "everywhere"]), st.sampled_from(["", "s", "t"]), st.sampled_from(["", "/w", "/x"]),
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@example([
    Answer("Bash(ls)", Verdict.DENY, "session", "s", "/w"),
    Answer("Bash(ls)", Verdict.ALLOW, "session", "t", "/w"),
])  # fmt: skip
@given(answers)
def test_both_memories_remember_the_same(runner: asyncio.Runner, answers: list[Answer]) -> None:
    async def recalled(memory: Memory) -> list[object]:
        found: list[object] = []
        for rule, verdict, scope, session, project in answers:
            about = {"session_id": session, "project": project}
            found.append(await memory.keep([Rule.parse(rule)], verdict, scope, **about, expires_at=None))
            for session_id in ("", "s", "t"):
                for directory in ("", "/w", "/x"):
                    rows, doubt = await memory.recall(session_id, directory)
                    found.append(sorted((row.rule.text, row.verdict, row.scope) for row in rows))
                    assert doubt == ""
        return found

    async def both() -> tuple[list[object], list[object]]:
        with tempfile.TemporaryDirectory() as directory:
            async with open_database(Path(directory)) as database:
                stored = await recalled(Memory(DecisionStore(database), "demo"))
        return await recalled(Memory(None, "demo")), stored

    own, stored = runner.run(both())
    assert own == stored


# Files that name programs to run.


@pytest.mark.parametrize(
    "path",
    [".envrc", ".claude/settings.json", "sub/../.vscode/tasks.json", "link/tasks.json", "conf/x.xml", "bare.git/hooks/post-update", ".MCP.json"],
)  # fmt: skip
@pytest.mark.parametrize(
    "gate", [{"mode": PolicyMode.ACCEPT_EDITS}, {"rules": Rules.parse(allow=["Write(**)", "Edit"])}]
)
async def test_a_write_to_a_file_that_names_programs_is_asked_about(
    tmp_path: Path, path: str, gate: dict[str, object]
) -> None:
    for folder in (".vscode", "conf", "sub"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to(".vscode")
    (tmp_path / ".idea").symlink_to("conf")
    user = User(NO)

    async def play(agent: AgentActions) -> None:
        await agent.write(path, "x")
        await agent.write("free.txt", "x")

    async with gated_session(PermissionGate(ask=user, **gate), tmp_path) as gated:  # type: ignore[arg-type]  # a mode or rules
        await gated.turn(play)
    assert len(user.asked) == 1 and (tmp_path / "free.txt").exists() and not (tmp_path / path).exists()
