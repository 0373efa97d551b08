"""Commands and what they print."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.codex.translate.commands import TAIL, command_line, shell_line
from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, TranslatedThread
from tests.rows import each_row

CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def prints(thread: TranslatedThread, text: str, id: str = "c") -> None:
    thread.notify("item/commandExecution/outputDelta", itemId=id, delta=text)


def screen(thread: TranslatedThread) -> str:
    """What the terminal shows in the end."""
    text = ""
    for each in thread.events:
        meta: dict[str, Any] = getattr(each, "meta", None) or {}
        text += meta.get("terminal_output", {}).get("data", "")
    return text.rpartition(CLEAR)[2]


@each_row(("written", "line"), [
    ("/bin/bash -lc 'ls -l'", "ls -l"),
    ("/usr/bin/zsh -c ls", "ls"),
    ("""bash -lc 'echo '"'"'a'"'"' b'""", "echo 'a' b"),
    ("'C:\\Windows\\pwsh.exe' -NoProfile -Command 'dir'", "dir"),
    ("bash script.sh", "bash script.sh"),
    ("bash -lc ls extra", "bash -lc ls extra"),
    ("/bin/bash -lc 'broken", "/bin/bash -lc 'broken"),
    ("ls", "ls"),
])  # fmt: skip
def test_the_line_is_shown_without_the_shell_that_runs_it(written: str, line: str) -> None:
    assert command_line(written) == line


def test_a_command_that_comes_word_by_word_is_a_line() -> None:
    assert shell_line(["bash", "-lc", "ls *"]) == "ls *"
    assert shell_line(["ls", "a b"]) == "ls 'a b'"


@pytest.mark.parametrize(("types", "kind"), [
    ((), "execute"), (("unknown",), "execute"), (("read",), "read"), (("listFiles", "read"), "read"),
    (("search", "read"), "search"), (("read", "unknown"), "execute"), (("dance",), "execute"),
])  # fmt: skip
def test_only_what_surely_looks_and_does_no_more_is_called_so(types: tuple[str, ...], kind: str) -> None:
    thread = TranslatedThread()
    thread.command("c", "x", commandActions=[{"type": type, "command": "x", "path": "p"} for type in types])
    [call] = thread.events
    assert isinstance(call, v1.ToolCall) and call.kind == kind and call.name == "Bash"
    assert [place.path for place in call.locations] == ([f"{CWD}/p"] if "read" in types else [])


def test_the_policy_can_read_what_runs_and_where() -> None:
    thread = TranslatedThread()
    thread.command("c", "make", cwd="/elsewhere")
    [call] = thread.events
    assert isinstance(call, v1.ToolCall) and call.raw_input == {"command": "make", "cwd": "/elsewhere"}


def test_a_terminal_is_announced_filled_and_ended() -> None:
    thread = TranslatedThread(terminals=True)
    thread.command("c", "make", processId="1")
    prints(thread, "a\n")
    thread.command("c", "make", "completed", aggregatedOutput="a\nb\n", exitCode=0)
    call, output, rest, end = thread.events
    assert isinstance(call, v1.ToolCall) and call.content == [v1.TerminalItem(terminal_id="c")]
    assert call.meta == {"terminal_info": {"terminal_id": "c", "cwd": CWD}}
    assert isinstance(output, v1.ToolCallUpdate) and output.meta == {
        "terminal_output": {"terminal_id": "c", "data": "a\n"}
    }
    assert isinstance(rest, v1.ToolCallUpdate) and rest.meta == {"terminal_output": {"terminal_id": "c", "data": "b\n"}}
    assert isinstance(end, v1.ToolCallUpdate)
    assert end.meta == {"terminal_exit": {"terminal_id": "c", "exit_code": 0, "signal": None}}


@given(st.lists(st.text("ab\n", max_size=6), max_size=6), st.integers(0, 3))
def test_a_terminal_shows_the_whole_output_whatever_was_missed(pieces: list[str], missed: int) -> None:
    thread = TranslatedThread(terminals=True)
    thread.command("c", "make", processId="1")
    for piece in pieces[missed:]:
        prints(thread, piece)
    thread.command("c", "make", "completed", aggregatedOutput="".join(pieces), exitCode=0)
    assert screen(thread) == "".join(pieces)


def test_a_command_that_only_looks_has_no_terminal() -> None:
    thread = TranslatedThread(terminals=True)
    actions = [{"type": "read", "command": "cat a", "path": "a"}]
    thread.command("c", "cat a", commandActions=actions)
    thread.command("c", "cat a", "completed", commandActions=actions, aggregatedOutput="x\n", exitCode=0)
    assert thread.outline == ["call c read Bash: cat a [in_progress]", "update c [completed] '```\\nx\\n```'"]


def test_a_terminal_that_is_left_open_is_ended_with_the_turn() -> None:
    thread = TranslatedThread(terminals=True)
    thread.begin()
    thread.command("c", "sleep 9", processId="1")
    thread.over("interrupted")
    update = thread.events[1]
    assert isinstance(update, v1.ToolCallUpdate) and update.meta and "terminal_exit" in update.meta


def test_a_mirror_gets_the_output_once_and_at_the_end() -> None:
    thread = TranslatedThread(mirror=True)
    thread.command("c", "make", processId="1")
    thread.command("c", "make", "failed", aggregatedOutput="oh\n", exitCode=2)
    assert thread.outline == [
        "call c execute Bash: make [in_progress]",
        "mirror c make -> 'oh\\n' 2",
        "update c [failed]",
    ]


def test_colours_are_for_terminals() -> None:
    thread = TranslatedThread()
    thread.command("c", "make")
    thread.command("c", "make", "completed", aggregatedOutput="\x1b[31mred\x1b[0m\n", exitCode=0)
    assert thread.outline[-1] == "update c [completed] '```\\nred\\n```'"


def test_the_tail_of_long_output_is_shown_from_the_start_of_a_line_and_not_each_time() -> None:
    thread = TranslatedThread()
    thread.command("c", "make", processId="1")
    for number in range(1000):
        prints(thread, f"line {number}\n")
    updates = [each for each in thread.events if isinstance(each, v1.ToolCallUpdate)]
    shown = [each.content[0].content.text for each in updates]  # type: ignore[index,union-attr]
    assert max(map(len, shown)) < TAIL + 20
    assert shown[-1].startswith("```\n…\nline ")
    assert len(updates) < 600


def test_what_is_typed_into_a_command_is_shown_while_it_runs() -> None:
    thread = TranslatedThread()
    thread.command("c", "read x", processId="1")
    thread.notify("item/commandExecution/terminalInteraction", itemId="c", processId="1", stdin="yes")
    thread.notify("item/commandExecution/terminalInteraction", itemId="c", processId="1", stdin="")
    assert thread.outline[1:] == ["update c '```\\nyes\\n```'"]


def test_output_of_an_unknown_command_is_not_shown() -> None:
    thread = TranslatedThread()
    prints(thread, "x", "nobody")
    assert thread.events == []


def test_a_command_whose_start_was_missed_is_shown_whole() -> None:
    for terminals, mirror in ((False, False), (True, False), (False, True)):
        thread = TranslatedThread(terminals=terminals, mirror=mirror)
        thread.command("c", "make", "completed", aggregatedOutput="x\n", exitCode=0)
        assert thread.outline[0].startswith("call c execute Bash: make [in_progress]")
        assert thread.outline[-1].startswith("update c [completed]")
