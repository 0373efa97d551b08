"""Undo in a chat with the real Claude Code and Codex: the files are as they were, and no model gets the undone turn again."""

from typing import Any

import pytest

from antiphon.tui.screen import PROMPT
from tests.duet.e2e.editors import Place
from tests.engines.model.steps import Text
from tests.tui.terminal import CTRL_C, ENTER, chat

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("engine", ["claude", "codex"])
def test_an_undone_turn_is_undone_in_the_files_and_never_sent_to_the_model_again(at: Place, engine: str) -> None:
    song = at.write("song.txt", "do\nre\nmi\n")
    own: Any = at.claude if engine == "claude" else at.codex  # each has a model of its own type
    own.model.answers(Text("The song is short."))
    if engine == "claude":  # a command, which reports no change of a file, and a tool that does
        own.model.answers(own.calls.command("printf zither > song.txt; touch made.txt"))
    else:
        own.model.answers(own.calls.edit_file(song, "re", "zither"))
    own.model.answers(Text("The zither is in."))
    own.model.answers(Text("From there on."))
    environment: dict[str, Any] = {**at.environment, "ANTIPHON_ROUTE": engine}
    with chat(
        at.folder.parent,
        "antiphon",
        "--permission-mode",
        "acceptEdits" if engine == "codex" else "bypassPermissions",
        rows=40,
        **environment,
    ) as terminal:
        terminal.wait("   /help")
        terminal.ask(f"look at the song{ENTER}", "The song is short.")
        terminal.wait("   /help")
        terminal.ask(f"add the zither{ENTER}", "The zither is in.")
        terminal.wait("   /help")
        assert "zither" in song.read_text(encoding="utf-8")
        terminal.ask(f"/undo 1{ENTER}", "files only")
        terminal.ask("y", "/redo takes this back")
        assert song.read_text(encoding="utf-8") == "do\nre\nmi\n" and not (at.folder / "made.txt").exists()
        assert "could not continue" not in terminal.all  # a real fork, not a summary
        terminal.wait(f"{PROMPT} add the zither")
        terminal.press(CTRL_C)
        terminal.ask(f"go on from there{ENTER}", "From there on.")
    sent = own.model.last.everything
    assert "look at the song" in sent and "The song is short." in sent and "go on from there" in sent
    assert "zither" not in sent
