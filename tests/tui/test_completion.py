"""What a word on the line may become."""

import subprocess
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from antiphon.tui.line.completion import ChatCompleter
from antiphon.tui.line.files import paths_for


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
    assert completed("look at @s", cwd) == ["look at @src/", "look at @setup.py", 'look at @"src/a b.py"']
    assert completed("look at @src/", cwd) == ['look at @"src/a b.py"']
    assert completed('look at @"src/a', cwd) == ['look at @"src/a b.py"']
    assert completed("mail a@s", cwd) == []


def test_a_few_letters_of_a_name_are_enough_and_the_best_name_comes_first(tmp_path: Path) -> None:
    for name in ("deep/inner/handler.py", "deep/handle.py", "other/unhandled.txt", "h/a/n/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = completed("@hand", tmp_path)
    assert found == ["@deep/handle.py", "@deep/inner/handler.py", "@other/unhandled.txt", "@h/a/n/d.py"]
    assert completed("@inner", tmp_path) == ["@deep/inner/", "@deep/inner/handler.py"]
    assert completed("@deep/handle.py:10-", tmp_path) == []  # the lines of a file


def test_what_git_ignores_is_offered_only_to_those_who_name_it(tmp_path: Path) -> None:
    for name in ("node_modules/left/pad.js", "src/pad.js", "new.txt", ".gitignore", ".env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("node_modules/\n", encoding="utf-8")
    assert completed("@", tmp_path) == ["@node_modules/", "@src/", "@new.txt"][1:]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert completed("@", tmp_path) == ["@src/", "@new.txt"]
    assert completed("@pad", tmp_path) == ["@src/pad.js"]
    assert completed("@node_modules/l", tmp_path) == ["@node_modules/left/"]
    assert completed("@.", tmp_path) == ["@.git/", "@.env", "@.gitignore"]


def test_commands_and_values_are_found_by_a_few_letters_and_by_what_they_do(tmp_path: Path) -> None:
    assert completed("/ml", tmp_path) == ["/model"]
    assert completed("/mode pn", tmp_path) == ["/mode plan"]
    assert completed("/mode ask", tmp_path) == ["/mode default"]


def test_hidden_files_are_shown_when_a_dot_was_typed(tmp_path: Path) -> None:
    cwd = place(tmp_path)
    assert paths_for("", str(cwd)) == ["src/", "setup.py"]
    assert paths_for(".", str(cwd)) == [".env"]
    assert paths_for("nowhere/x", str(cwd)) == []
