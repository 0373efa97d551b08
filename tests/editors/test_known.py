"""What `antiphon setup` writes for editors whose settings are programs, and how it finds the program that is running."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli.setup import passing, program
from antiphon.editors.known import elisp, lua, word_of

COMMAND = ['/a "b"\\c/antiphon', "agent", "--engine", "claude"]

# Comments, strings, brackets and quotes, anything else.
LISP = re.compile(r""";[^\n]*|\s+|("(?:[^"\\]|\\.)*"|[()]|#?'|[^\s()"';]+)""")


def forms(text: str) -> list[Any]:
    """The forms of a Lisp text: lists, strings in quotes, symbols; without the quotes of quoted forms."""
    stack: list[list[Any]] = [[]]
    place = 0
    while place < len(text):
        found = LISP.match(text, place)
        assert found is not None, text[place:]
        place = found.end()
        match found[1]:
            case None | "'" | "#'":
                continue
            case "(":
                stack.append([])
            case ")":
                inner = stack.pop()
                stack[-1].append(inner)
            case word:
                stack[-1].append(word)
    (top,) = stack
    return top


def after(form: list[Any], key: str) -> Any:
    return form[form.index(key) + 1]


def test_the_file_for_emacs_is_whole_and_starts_the_command() -> None:
    top = forms(elisp("Antiphon (claude)", COMMAND))
    (added,) = (form[2] for form in top if form[0] == "with-eval-after-load")
    assert added[:2] == ["add-to-list", "agent-shell-agent-configs"]
    config = added[2]
    assert (after(config, ":identifier"), after(config, ":mode-line-name")) == (
        "antiphon-claude",
        '"Antiphon (claude)"',
    )
    client = after(config, ":client-maker")[2]
    words = [after(client, ":command"), *after(client, ":command-params")]
    assert [json.loads(word) for word in words] == COMMAND
    assert top[-1] == ["provide", "antiphon-claude"]


def test_the_file_for_neovim_starts_the_command_from_both_plugins() -> None:
    text = lua("Antiphon (claude)", COMMAND)
    found = re.search(r"^local command = \{ (.*) \}$", text, re.MULTILINE)
    assert found is not None and json.loads(f"[{found[1]}]") == COMMAND
    assert 'name = "antiphon_claude"' in text and '["antiphon_claude"] = {' in text and "@" not in text
    code = re.sub(r'"(?:[^"\\]|\\.)*"|--[^\n]*', "", text)
    assert all(code.count(opening) == code.count(closing) for opening, closing in ("()", "{}"))
    assert len(re.findall(r"\bfunction\b", code)) == len(re.findall(r"\bend\b", code))


def test_control_characters_do_not_end_a_string_of_lua() -> None:
    assert r'"/a\010b\009c"' in lua("A", ["/a\nb\tc"])


@pytest.mark.parametrize(
    ("name", "word"), [("Antiphon", "antiphon"), ("Antiphon (claude)", "antiphon_claude"), ("é", ""), ("1st", "")]
)
def test_a_module_is_named_after_the_agent(name: str, word: str) -> None:
    assert word_of(name, "_") == word


def test_the_program_is_the_one_that_runs_by_the_path_it_was_found_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "tool" / "antiphon"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\n", encoding="utf-8")
    real.chmod(0o755)
    link = tmp_path / "antiphon"
    link.symlink_to(real)
    monkeypatch.setattr(sys, "argv", [str(link), "setup"])
    assert program() == (str(link),)


def test_without_a_program_it_is_python_with_our_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert program() == (str(tmp_path / "python"), "-m", "antiphon")


def test_a_program_in_the_cache_of_uv_is_reported() -> None:
    assert passing("/home/me/.cache/uv/archive-v0/x1/bin/antiphon")
    assert not passing("/home/me/.local/share/uv/tools/antiphon/bin/antiphon")
