"""`antiphon chat` on a pseudo-terminal, with agents that others wrote."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.interop.environment import environment
from tests.interop.programs import all_programs
from tests.thirdparty import table
from tests.thirdparty.model import script
from tests.thirdparty.place import place

ONCE = "$ cd '"
"""How the second question of kimi-code begins: what it really runs is not what it asked for."""


KEYS = "\ny once · "
"""How the line of keys below a permission request begins."""


def leave(terminal: Terminal) -> None:
    terminal.type("/exit\r")
    status, _ = terminal.finish()
    assert status == 0, terminal.text


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["kimi-code", "fast-agent"])
def test_chat_shows_the_answer_of_a_real_agent_asks_once_about_a_command_and_cancels_a_turn(
    name: str, tmp_path: Path
) -> None:
    with (
        place(name, tmp_path) as where,
        Terminal(where.ours("chat"), cwd=where.folder, env=where.environment) as terminal,
    ):
        terminal.wait_for(lambda text: "mode " in text)
        terminal.type(script(["say", "Sung by **two halves** of a choir."]) + "\r")
        terminal.wait_for("\nSung by two halves of a choir.")
        terminal.type(script(where.run("echo sung aloud"), ["say", "It was sung."]) + "\r")
        assert "$ echo sung aloud" in terminal.wait_for(KEYS)
        terminal.type("y")
        shown = terminal.wait_for(lambda text: "\nIt was sung." in text or ONCE in text)
        assert ONCE not in shown and "sung aloud" in where.model.answers_of_tools()[-1]
        terminal.type(script(["hold", "This goes on and on."]) + "\r")
        terminal.wait_for("\nThis goes on")
        terminal.type("\x03")
        terminal.wait_for("\n(cancelled)")
        assert where.model.hung_up.wait(20)
        leave(terminal)
    table.note(name, f"{table.CHAT}an answer, a turn that is cancelled, and the way out")
    table.note(name, f"{table.CHAT}one question that shows the command, then what came of it")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["python", "typescript"])
def test_chat_with_an_agent_of_an_official_sdk(name: str, tmp_path: Path) -> None:
    who = all_programs()[name]
    if who.missing:
        pytest.skip(f"{who.name} {who.missing}")
    with environment(tmp_path) as on:
        words = [sys.executable, "-m", "antiphon", "chat", "--agent", shlex.join(who.agent)]
        with Terminal(words, cwd=on.folder, env=on.environment) as terminal:
            terminal.wait_for(lambda text: "mode " in text)
            terminal.type("hello choir\r")
            terminal.wait_for("\nYou said: hello choir")
            terminal.type(f"/edit {on.folder}/poem.txt Sung by one.\r")
            terminal.wait_for(lambda text: "Sung by one." in text.partition("Allow?")[2] and KEYS in text)
            terminal.type("y")
            terminal.wait_for(lambda text: "Allow?" not in text and "◐" not in text)
            assert (on.folder / "poem.txt").read_text(encoding="utf-8") == "Sung by one."
            leave(terminal)
