"""Going on by itself: real commands that list tasks, and the decision."""

import asyncio
import logging
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.duet import limits as room
from antiphon.duet.limits import LISTED, HeldNudge, Nudge, Nudges, OpenTask, prompt_text, tasks_of
from antiphon.protocol import v1
from tests.transports.children import alive, gone

AT_LIMIT = v1.StopReason.MAX_TURN_REQUESTS
SOME = [OpenTask("Write the tests", "t-1"), OpenTask("Read them")]


def script(code: str) -> Nudges:
    return Nudges([sys.executable, "-c", code])


# The command.


async def test_the_tasks_are_what_the_command_prints_in_the_directory(tmp_path: Path) -> None:
    nudging = script("import os, json; print(json.dumps([os.getcwd(), {'id': 7, 'title': 'b'}]))")
    assert await nudging.pending(tmp_path) == [OpenTask(str(tmp_path)), OpenTask("b", "7")]


async def test_the_command_reads_nothing_and_its_errors_are_ignored(tmp_path: Path) -> None:
    nudging = script("import sys; sys.stderr.write('odd'); print(sys.stdin.read() + '[\"a\"]')")
    assert await nudging.pending(tmp_path) == [OpenTask("a")]


@pytest.mark.parametrize("command", [(), ("no-such-program-here", "ls"), ("/no/such/program",)])
async def test_a_program_that_is_not_there_is_no_error(
    command: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert await Nudges(command).pending(tmp_path) is None
    assert caplog.records == []


async def test_a_project_cannot_bring_the_program_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / "dot"
    trap.write_text("#!/bin/sh\necho '[\"trap\"]'\n", encoding="utf-8")
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".::")
    assert await Nudges(["dot", "ls"]).pending(tmp_path) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('no tasks')", "not a JSON list"),
        ("print('{}')", "not a JSON list"),
        ("print('[' * 100_000)", "not a JSON list"),
        ("print('[]'); raise SystemExit(3)", "ended with 3"),
        ("print('[\"' + 'x' * 2_000_000 + '\"]')", "more than 1024 KiB"),
    ],
    ids=["words", "object", "deep", "failed", "flood"],
)
async def test_what_is_not_a_list_of_tasks_is_logged_and_gives_no_tasks(
    code: str, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await script(code).pending(tmp_path) is None
    assert words in caplog.text


HANGS = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
with open("pids", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
signal.pause()
"""


async def started(pipe: Path) -> list[int]:
    """The ids of the command and its child, once both run."""
    shown = await asyncio.to_thread(pipe.read_text, encoding="utf-8")
    return [int(pid) for pid in shown.split()]


async def test_a_command_that_is_cancelled_ends_with_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pids")
    asking = asyncio.create_task(script(HANGS).pending(tmp_path))
    pids = await started(tmp_path / "pids")
    assert all(alive(pid) for pid in pids)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await gone(*pids)


async def test_a_command_that_takes_too_long_is_killed_and_gives_no_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(room, "LIMIT", 0.01)
    assert await script("import signal; signal.pause()").pending(tmp_path) is None
    assert "took more than" in caplog.text


# What it prints.


def test_entries_are_texts_or_objects_and_those_that_are_done_do_not_count() -> None:
    sent = [
        "one",
        {"title": "two", "name": "x"},
        {"name": "three", "id": "t3", "status": "open"},
        {"text": "four\nand more"},
        {"id": "five"},
        {"unknown": 1},
        {"title": "no", "status": "Done"},
        {"title": "no", "status": "closed"},
        {"title": "no", "status": "completed"},
        {"title": "no", "done": True},
        "",
        7,
        None,
    ]
    assert tasks_of(sent) == [
        OpenTask("one"), OpenTask("two"), OpenTask("three", "t3"), OpenTask("four and more"), OpenTask("five"), OpenTask("a task without a name"),
    ]  # fmt: skip


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "title", "status", "done", "x"]), inner),
)


@given(st.lists(json_values))
def test_whatever_is_in_the_list_its_tasks_are_lines(sent: list[object]) -> None:
    for task in tasks_of(sent):
        assert task.title and "\n" not in task.title + task.id and "\x1b" not in task.title + task.id


def test_the_prompt_names_the_first_tasks() -> None:
    assert prompt_text(SOME) == "Go on with the open tasks:\n- Write the tests (t-1)\n- Read them"
    many = prompt_text([OpenTask(f"n{number}") for number in range(LISTED + 3)])
    assert many.count("\n- n") == LISTED and many.endswith("- and 3 more")


# The decision.


@pytest.mark.parametrize("stop", list(v1.StopReason))
def test_only_a_limit_is_a_reason_to_go_on(stop: v1.StopReason) -> None:
    decided = Nudges(["x"]).decide(stop, 0.0, SOME)
    assert isinstance(decided, Nudge) is (stop in (v1.StopReason.MAX_TOKENS, v1.StopReason.MAX_TURN_REQUESTS))


@pytest.mark.parametrize("tasks", [None, []])
def test_without_tasks_there_is_nothing_to_go_on_with(tasks: list[OpenTask] | None) -> None:
    assert Nudges(["x"]).decide(AT_LIMIT, 0.0, tasks) is None


def test_switched_off_it_does_nothing() -> None:
    nudging = Nudges(["x"])
    nudging.enabled = False
    assert nudging.decide(AT_LIMIT, 0.0, SOME) is None


def test_it_cools_down_and_then_goes_on() -> None:
    nudging = Nudges(["x"], cooldown=30)
    assert nudging.decide(AT_LIMIT, 100.0, SOME) == Nudge(prompt_text(SOME), 1)
    assert nudging.decide(AT_LIMIT, 100.0, SOME) == Nudge(prompt_text(SOME), 1)  # deciding changes nothing
    nudging.nudged(100.0)
    held = nudging.decide(AT_LIMIT, 117.5, SOME)
    assert isinstance(held, HeldNudge) and "2 tasks are left" in held.why.sentence and "in 13 s" in held.why.hint
    assert nudging.decide(AT_LIMIT, 130.0, SOME) == Nudge(prompt_text(SOME), 2)


def test_it_has_a_maximum_until_the_next_prompt_of_the_user() -> None:
    nudging = Nudges(["x"], cooldown=0, maximum=2)
    for now in (1.0, 2.0):
        assert isinstance(nudging.decide(AT_LIMIT, now, SOME), Nudge)
        nudging.nudged(now)
    held = nudging.decide(AT_LIMIT, 1000.0, SOME[:1])
    assert isinstance(held, HeldNudge) and "1 task is left" in held.why.sentence and "2 times" in held.why.sentence
    nudging.begin_prompt()
    assert nudging.decide(AT_LIMIT, 2.0, SOME) == Nudge(prompt_text(SOME), 1)
