"""`/undo` and `/redo` in a chat in a real pseudo-terminal: the files as they were, the session forked, the prompt given back."""

import json
import os
import sys
from pathlib import Path

import pytest

from antiphon.tui.screen import PROMPT
from tests.cli.test_chat import begin, idle
from tests.duet.directories import git
from tests.snapshots.trees import seen
from tests.tui.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, Terminal, chat

pytestmark = pytest.mark.slow

DAMAGE = "rm gone.txt; mv old.txt new.txt; chmod 755 mode.sh; printf 'a\\0b' > binary; echo 2 >> ignored.log; ln -s / root; mkdir empty"


def project(place: Path) -> Path:
    """A repository with something of everything."""
    work = place / "work"
    work.mkdir()
    git(work, "init", "--quiet")
    for name, text in {"gone.txt": "here", "old.txt": "old", "mode.sh": "#!", ".gitignore": "*.log\n"}.items():
        (work / name).write_text(text, encoding="utf-8")
    (work / "binary").write_bytes(b"\0\xff\0")
    (work / "ignored.log").write_text("1\n", encoding="utf-8")
    return work


def run(terminal: Terminal, command: str) -> None:
    """Have the demo run a command."""
    terminal.ask(f"/run {command}{ENTER}", "Allow?")
    terminal.ask("y", "ended with")
    idle(terminal)


def test_undo_brings_every_file_back_forks_the_session_and_gives_the_prompt_back_and_redo_takes_it_back(
    tmp_path: Path,
) -> None:
    work = project(tmp_path)
    before = seen(work)
    with chat(tmp_path, rows=40) as terminal:
        begin(terminal)
        terminal.ask(f"the first prompt{ENTER}", "You are in work")
        idle(terminal)
        run(terminal, DAMAGE)
        damaged = seen(work)
        assert damaged != before
        shown = terminal.ask(f"/diff{ENTER}", "root  new  link to /")  # a command reports none of it
        assert "gone.txt  +0 -1  deleted\n  1 - here\n" in shown and "new.txt  +1 -0  new\n" in shown
        assert "mode.sh  mode 644 → 755\n" in shown and "ignored.log  +1 -0\n  1   1\n  2 + 2\n" in shown
        assert "binary  not text, or too large: 3 bytes → 3 bytes\n" in shown
        terminal.press(ESCAPE + ESCAPE)
        shown = terminal.wait("none of them")
        assert "Go back to before which prompt?" in shown
        assert "/run rm gone.txt" in shown and "the first prompt" in shown and "files" in shown
        shown = terminal.ask("1", "files only")
        assert "Go back to before “/run rm gone.txt" in shown
        assert "bring back gone.txt" in shown.replace("  ", " ") and "mode" in shown and "remove" in shown
        terminal.ask("y", "/redo takes this back")
        assert seen(work) == before
        terminal.wait(f"{PROMPT} /run rm gone.txt")  # given back, to be edited
        terminal.press(CTRL_C)
        terminal.ask(f"/redo{ENTER}", "The undo was taken back")
        assert seen(work) == damaged
        idle(terminal)
        terminal.ask(f"/clear{ENTER}/undo 1{ENTER}", "files only")
        terminal.ask("y", "/redo takes this back")
        assert seen(work) == before
        terminal.wait(f"{PROMPT} /run rm gone.txt")
        terminal.press(CTRL_C)
        run(terminal, "echo later > later.txt")
        terminal.ask(f"/redo{ENTER}", "there is no undo to take back")
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        resume = terminal.all.rpartition("antiphon chat --resume ")[2].split()[0]
    with chat(tmp_path, "--resume", resume, rows=40) as terminal:  # the fork: without what was undone
        terminal.wait("echo later")
        idle(terminal)
        assert "the first prompt" in terminal.all and "gone.txt" not in terminal.all
        terminal.ask(f"/undo{ENTER}", "none of them")
        assert " 2  the first prompt" in terminal.shown
        assert "remove     later.txt" in terminal.ask("1", "files only")
        terminal.ask("y", "/redo takes this back")
        assert seen(work) == before


def test_what_the_user_changed_since_is_shown_and_can_be_kept(tmp_path: Path) -> None:
    work = project(tmp_path)
    with chat(tmp_path, rows=40) as terminal:
        begin(terminal)
        run(terminal, "echo agent > both.txt; echo agent > only.txt")
        (work / "both.txt").write_text("mine\n", encoding="utf-8")
        (work / "notes.txt").write_text("mine too\n", encoding="utf-8")
        shown = terminal.ask(f"/undo 1{ENTER}", "files only")
        assert "were also changed outside of the turns" in shown
        assert "! remove     both.txt" in shown and "notes.txt" not in shown
        terminal.ask("n", "Nothing was changed.")
        assert os.path.exists(work / "only.txt")
        idle(terminal)
        terminal.ask(f"/undo 1{ENTER}", "files only")
        terminal.ask("k", "/redo takes this back")
        assert not os.path.exists(work / "only.txt")
        assert (work / "both.txt").read_text(encoding="utf-8") == "mine\n"
        assert (work / "notes.txt").read_text(encoding="utf-8") == "mine too\n"


def test_an_agent_that_cannot_fork_gets_a_new_session_with_the_transcript_and_the_user_is_shown_that(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    agent = f"{sys.executable} -m tests.cli.agents Writes {log}"
    with chat(tmp_path, "--agent", agent, rows=40, PYTHONPATH=os.getcwd()) as terminal:
        terminal.wait("   /help")
        for name in ("one", "two", "three"):
            terminal.ask(f"please make {name}{ENTER}", f"wrote {name}")
            idle(terminal)
        terminal.ask(f"/undo 2{ENTER}", "files only")
        assert "Go back to before “please make two”" in terminal.shown
        terminal.ask("y", "cannot go back in a session, so this is a new one")
        terminal.wait(f"{PROMPT} please make two")
        assert "its first prompt brings the transcript so far" in terminal.shown.replace("\n", " ")
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["one"]
        terminal.press(CTRL_C)
        terminal.ask(f"please make four{ENTER}", "wrote four")
        idle(terminal)
        # All the way back: there is no transcript left to bring.
        terminal.ask(f"/clear{ENTER}/undo 2{ENTER}", "files only")
        assert "Go back to before “please make one”" in terminal.shown
        terminal.ask("y", "/redo takes this back")
        terminal.wait(f"{PROMPT} please make one")
        terminal.press(CTRL_C)
        terminal.ask(f"please make five{ENTER}", "wrote five")
    given = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("[")]
    assert [text for _, text in given[:3]] == [f"please make {name}" for name in ("one", "two", "three")]
    fourth, fifth = given[3:]
    assert len({session for session, _ in (given[0], fourth, fifth)}) == 3
    assert "| " in fourth[1] and "please make one" in fourth[1] and fourth[1].endswith("please make four")
    assert "two" not in fourth[1] and "three" not in fourth[1]
    assert fifth[1] == "please make five"


def test_further_directories_of_a_session_are_brought_back_too(tmp_path: Path) -> None:
    work, other = project(tmp_path), tmp_path / "other"
    other.mkdir()
    (other / "theirs.txt").write_text("as it was", encoding="utf-8")
    before = (seen(work), seen(other))
    with chat(tmp_path, "--add-dir", str(other), rows=40, columns=200) as terminal:
        begin(terminal)
        run(terminal, "rm ../other/theirs.txt old.txt; echo 1 > ../other/made.txt")
        shown = terminal.ask(f"/undo 1{ENTER}", "files only")
        assert f"bring back {other}/theirs.txt" in shown and f"remove     {other}/made.txt" in shown
        assert "bring back old.txt" in shown
        terminal.ask("y", "/redo takes this back")
        assert (seen(work), seen(other)) == before


def test_all_changes_are_shown_from_the_first_snapshot_that_is_kept(tmp_path: Path) -> None:
    project(tmp_path)
    with chat(tmp_path, rows=40) as terminal:
        begin(terminal)
        run(terminal, "echo 1 > one.txt")
        terminal.ask(f"/clear{ENTER}", "   /help")
        run(terminal, "echo 2 > two.txt")
        first = min((tmp_path / "state" / "undo").rglob("*.snapshot"), key=lambda path: int(path.stem))
        first.unlink()
        shown = terminal.ask(f"/clear{ENTER}/diff{ENTER}", "two.txt  +1 -0  new")
        assert "From “/run echo 2 > two.txt” on: earlier snapshots are not kept any more." in shown
        assert "one.txt" not in shown


def test_a_prompt_with_pasted_text_comes_back_whole_also_in_another_chat(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number}" for number in range(20))
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"\x1b[200~{pasted}\x1b[201~", "[20 lines]")
        terminal.ask(f" what is it?{ENTER}", "You are in work")
        idle(terminal)
        terminal.ask(f"/undo 1{ENTER}", "/redo takes this back")
        terminal.wait(f"{PROMPT} [20 lines] what is it?")
        terminal.ask(f"\x03/redo{ENTER}", "The undo was taken back")
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        resume = terminal.all.rpartition("antiphon chat --resume ")[2].split()[0]
    with chat(tmp_path, "--resume", resume) as terminal:
        idle(terminal)
        terminal.ask(f"/undo 1{ENTER}", "/redo takes this back")
        terminal.wait("line 19 what is it?")
        assert "[20 lines]" not in terminal.all


def test_undo_says_why_it_cannot_go_back(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask(f"/undo{ENTER}", "there is no prompt to go back to")
        terminal.ask(f"one{ENTER}", "You are in work")
        idle(terminal)
        terminal.ask(f"/undo 7{ENTER}", "`/undo 7` means no prompt")
        terminal.ask(f"/undo finish{ENTER}", "no undo was interrupted here")


def test_without_snapshots_only_the_conversation_goes_back(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[chat]\nundo = false\n", encoding="utf-8")
    with chat(tmp_path, rows=40) as terminal:
        begin(terminal)
        run(terminal, "echo 1 > made.txt")
        shown = terminal.ask(f"/undo 1{ENTER}", "yes, the conversation")
        assert "Files stay as they are: `chat.undo` is off in your config file" in shown
        terminal.ask("y", "/redo takes this back")
        terminal.wait(f"{PROMPT} /run echo 1 > made.txt")
        assert (tmp_path / "work" / "made.txt").exists() and not (tmp_path / "state" / "undo").exists()
