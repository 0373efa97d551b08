"""What a word on the line may become."""

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from antiphon.tui.input import ChatCompleter, paths_for


def completed(text: str, cwd: Path) -> list[str]:
    completer = ChatCompleter(
        lambda: [("mode", "modes"), ("model", "models"), ("help", "")],
        lambda command: [("plan", "look"), ("default", "ask")] if command == "mode" else [],
        lambda: str(cwd),
    )
    found = completer.get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + each.start_position] + each.text for each in found]


def place(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a b.py").touch()
    (tmp_path / "setup.py").touch()
    (tmp_path / ".env").touch()
    return tmp_path


def test_commands_are_completed_at_the_beginning_of_the_line_only(tmp_path: Path) -> None:
    assert completed("/mo", tmp_path) == ["/mode", "/model"]
    assert completed("say /mo", tmp_path) == []
    assert completed("/mode", tmp_path) == ["/model"]


def test_values_follow_their_command(tmp_path: Path) -> None:
    assert completed("/mode p", tmp_path) == ["/mode plan"]
    assert completed("/help p", tmp_path) == []


def test_paths_are_completed_behind_an_at(tmp_path: Path) -> None:
    cwd = place(tmp_path)
    assert completed("look at @s", cwd) == ["look at @src/", "look at @setup.py"]
    assert completed("look at @src/", cwd) == ['look at @"src/a b.py"']
    assert completed('look at @"src/a', cwd) == ['look at @"src/a b.py"']
    assert completed("mail a@s", cwd) == []


def test_hidden_files_are_shown_when_a_dot_was_typed(tmp_path: Path) -> None:
    cwd = place(tmp_path)
    assert paths_for("", str(cwd)) == ["src/", "setup.py"]
    assert paths_for(".", str(cwd)) == [".env"]
    assert paths_for("nowhere/x", str(cwd)) == []
