"""`antiphon setup` as a user types it: real files in a home of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings

from antiphon.cli.setup import set_up, undo
from antiphon.editors.jsonc import parse
from antiphon.editors.known import EDITORS, OTHER_NAMES, settings_path
from tests import prepared
from tests.cli.terminal import Terminal
from tests.config.documents import documents
from tests.limits import limit

PROGRAM = str(Path(sys.executable).with_name("antiphon"))
SETTINGS = b"""\
// Zed settings
{
  "theme": "One Dark", // mine
  /* "vim_mode": true, */
  "agent_servers": {
    "Other": { "command": "other", "args": [], },
  },
}
"""


class Home:
    """A home directory, and the program in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.zed = folder / ".config" / "zed" / "settings.json"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}

    def write(self, data: bytes, path: Path | None = None) -> None:
        place = path or self.zed
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "antiphon", "setup", *words]

    def setup(self, *words: str, status: int = 0, **environment: str) -> "subprocess.CompletedProcess[str]":
        ran = prepared.run("setup", *words, cwd=self.path, env=self.env | environment, timeout=limit())
        done = subprocess.CompletedProcess(ran.args, ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        assert done.returncode == status and "Traceback" not in done.stderr, done.stderr
        if status:
            lines = done.stderr.splitlines()
            assert lines[0].startswith(("error: ", "note: ")) and lines[-1].startswith("hint: ")
        return done

    def terminal(self, *words: str) -> Terminal:
        return Terminal(self.words(*words), cwd=self.path, env=self.env)

    @property
    def files(self) -> list[str]:
        """Everything but what we keep for ourselves."""
        paths = (path.relative_to(self.path) for path in self.path.rglob("*"))
        return sorted(str(path) for path in paths if path.parts[0] != ".local")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def settings_in(path: Path) -> Any:
    value = parse(path.read_text(encoding="utf-8"))
    assert value is not None
    return value.data


# Zed.


def test_without_a_terminal_it_only_shows(home: Home) -> None:
    home.write(SETTINGS)
    done = home.setup("zed", status=1)
    assert home.zed.read_bytes() == SETTINGS and not (home.path / ".local").exists()
    assert done.stdout.startswith(f"--- {home.zed}\n+++ {home.zed}\n@@ ")
    assert f'+      "command": "{PROGRAM}",\n+      "args": ["agent"],\n' in done.stdout
    assert "--yes writes it" in done.stderr


@pytest.mark.parametrize("text", [SETTINGS, SETTINGS.rstrip(b"\n"), b"{}"])
def test_the_change_that_is_shown_can_be_applied_by_patch(home: Home, text: bytes) -> None:
    home.write(text)
    shown = home.setup("zed", status=1).stdout
    subprocess.run(["git", "init", "-q"], cwd=home.path, check=True)
    relative = shown.replace(str(home.zed), ".config/zed/settings.json")
    subprocess.run(["git", "apply", "-p0", "-"], input=relative, cwd=home.path, check=True, encoding="utf-8")
    by_patch = home.zed.read_bytes()
    home.write(text)
    home.setup("zed", "--yes")
    assert home.zed.read_bytes() == by_patch


def test_yes_writes_the_entry_and_keeps_the_rest(home: Home) -> None:
    home.write(SETTINGS)
    done = home.setup("zed", "--yes")
    assert settings_in(home.zed)["agent_servers"] == {
        "Other": {"command": "other", "args": []},
        "Antiphon": {"type": "custom", "command": PROGRAM, "args": ["agent"], "env": {}},
    }
    lines = home.zed.read_bytes().splitlines(keepends=True)
    assert [line for line in lines if line in SETTINGS.splitlines(keepends=True)] == SETTINGS.splitlines(keepends=True)
    assert str(home.zed) in done.stderr and "restart Zed" in done.stderr and "pick Antiphon" in done.stderr


def test_what_was_set_up_is_the_joint_agent_and_starts(home: Home) -> None:
    home.setup("zed", "--yes")
    ((name, entry),) = settings_in(home.zed)["agent_servers"].items()
    started = subprocess.run(
        [entry["command"], *entry["args"]],
        input=b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n',
        env=home.env | entry["env"],
        capture_output=True,
        check=True,
        timeout=limit(),
    )
    answer = json.loads(started.stdout)["result"]
    assert (name, answer["agentInfo"]["title"], answer["agentInfo"]["name"]) == ("Antiphon", "Antiphon", "antiphon")


def test_a_remote_agent_gets_the_entry_of_the_page(home: Home) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "remote.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^antiphon setup zed (.+)$", page, re.MULTILINE)
    (entry,) = re.findall(r"^```json\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    home.setup("zed", *command.replace("~", "/home/you").split(), "--yes")
    expected = json.loads(entry)["agent_servers"]
    ((name, found),) = settings_in(home.zed)["agent_servers"].items()
    assert {name: found | {"command": "antiphon"}} == expected
    done = home.setup("zed", "--undo", "--yes")
    assert "127.0.0.1:8321" in done.stdout and not home.zed.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--map", "/a=/b"], "are for `--connect`"),
        (["--connect", "nonsense"], "is not the address of an agent"),
        (["--connect", "ws://h/acp", "--map", "a"], "pair of directories"),
        (["--connect", "ws://h/acp", "--engine", "demo"], "in place of"),
        (["--connect", "ws://h/acp", "--token-file", "t"], "could read the token"),
        (["--offer-files"], "are for `--connect`"),
    ],
)
def test_a_remote_agent_that_makes_no_sense_is_refused(home: Home, words: list[str], said: str) -> None:
    assert said in home.setup("zed", *words, "--yes", status=2).stderr
    assert not home.zed.exists()


def test_what_a_remote_agent_may_do_is_written_into_its_entry(home: Home) -> None:
    home.setup("zed", "--connect", "ws://h/acp", "--token-file", "/t", "--plaintext", "--offer-files", "--yes")
    (entry,) = settings_in(home.zed)["agent_servers"].values()
    assert entry["args"][-4:] == ["--token-file", "/t", "--plaintext", "--offer-files"]


def test_undo_gives_back_every_byte(home: Home) -> None:
    home.write(SETTINGS)
    home.zed.chmod(0o640)
    home.setup("zed", "--yes")
    done = home.setup("zed", "--undo", "--yes")
    assert home.zed.read_bytes() == SETTINGS and home.zed.stat().st_mode & 0o777 == 0o640
    assert '-    "Antiphon": {' in done.stdout
    assert "nothing" in home.setup("zed", "--undo", "--yes", status=1).stderr


def test_undo_also_only_shows_without_a_yes(home: Home) -> None:
    home.write(SETTINGS)
    home.setup("zed", "--yes")
    with_entry = home.zed.read_bytes()
    home.setup("zed", "--undo", status=1)
    assert home.zed.read_bytes() == with_entry
    home.setup("zed", "--undo", "--yes")
    assert home.zed.read_bytes() == SETTINGS


def test_a_file_that_was_not_there_is_made_and_removed(home: Home) -> None:
    done = home.setup("zed", "--yes")
    assert "note: there is no" in done.stderr and settings_in(home.zed)["agent_servers"].keys() == {"Antiphon"}
    home.setup("zed", "--undo", "--yes")
    assert home.files == []


def test_undo_after_other_changes_takes_out_only_the_entry(home: Home) -> None:
    home.write(b"{}")
    home.setup("zed", "--yes")
    text = home.zed.read_bytes()
    home.write(b'// later\n{\n  "vim_mode": true,' + text.removeprefix(b"{"))
    home.setup("zed", "--undo", "--yes")
    assert home.zed.read_bytes() == b'// later\n{\n  "vim_mode": true\n}'


def test_undo_of_what_the_user_removed_forgets_it(home: Home) -> None:
    home.write(SETTINGS)
    home.setup("zed", "--yes")
    home.write(SETTINGS)
    assert "any more" in home.setup("zed", "--undo", "--yes").stderr
    assert home.zed.read_bytes() == SETTINGS


def test_a_second_time_there_is_nothing_to_do(home: Home) -> None:
    home.setup("zed", "--yes")
    done = home.setup("zed", "--yes")
    assert done.stdout == "" and "has it already" in done.stderr


def test_undo_without_an_editor_undoes_all_of_them(home: Home) -> None:
    home.write(SETTINGS)
    for editor in ("zed", "vscode", "neovim"):
        home.setup(editor, "--yes")
    home.setup("--undo", "--yes")
    assert home.zed.read_bytes() == SETTINGS and home.files == [".config", ".config/zed", ".config/zed/settings.json"]
    assert "no editor has an entry" in home.setup("--undo", "--yes").stderr


def test_engines_stand_beside_each_other_and_one_is_undone(home: Home) -> None:
    home.write(SETTINGS)
    home.setup("zed", "--yes")
    home.setup("zed", "--yes", "--engine", "claude")
    servers = settings_in(home.zed)["agent_servers"]
    assert servers["Antiphon (claude)"]["args"] == ["agent", "--engine", "claude"]
    home.setup("zed", "--undo", "--yes", "--name", "Antiphon")
    assert settings_in(home.zed)["agent_servers"].keys() == {"Other", "Antiphon (claude)"}
    home.setup("zed", "--yes")
    home.setup("zed", "--undo", "--yes")
    assert home.zed.read_bytes() == SETTINGS


def test_an_older_entry_is_replaced_and_comes_back(home: Home) -> None:
    old = b'{"agent_servers": {"Antiphon": {"command": "/old/antiphon"} /* ! */}}'
    home.write(old)
    home.setup("zed", "--yes")
    assert settings_in(home.zed)["agent_servers"]["Antiphon"]["command"] == PROGRAM
    home.write(home.zed.read_bytes() + b"\n// later\n")
    home.setup("zed", "--undo", "--yes")
    assert home.zed.read_bytes() == old + b"\n// later\n"


def test_a_link_stays_a_link(home: Home) -> None:
    real = home.path / "dotfiles" / "zed.json"
    home.write(SETTINGS, real)
    home.zed.parent.mkdir(parents=True)
    home.zed.symlink_to(real)
    home.setup("zed", "--yes")
    assert home.zed.is_symlink() and "Antiphon" in settings_in(real)["agent_servers"]
    home.setup("zed", "--undo", "--yes")
    assert home.zed.is_symlink() and real.read_bytes() == SETTINGS


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"agent_servers": 1}', b'{"a": "\xff"}'])
def test_what_cannot_be_edited_is_left_alone_and_reported(home: Home, data: bytes) -> None:
    home.write(data)
    done = home.setup("zed", "--yes", status=1)
    assert home.zed.read_bytes() == data and str(home.zed) in done.stderr and done.stdout == ""
    if b"\xff" not in data:
        assert f'"command": "{PROGRAM}"' in done.stderr.splitlines()[-1]


def test_what_was_there_is_kept_where_only_the_user_can_read_it(home: Home) -> None:
    home.write(b'{"key": "secret"}')
    home.setup("zed", "--yes", ANTIPHON_STATE_DIR=str(home.path / "state"))
    (kept,) = (home.path / "state" / "setup").iterdir()
    assert "secret" in kept.read_text(encoding="utf-8") and kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents())
def test_after_setup_and_undo_the_bytes_are_the_same(tmp_path: Path, document: tuple[str, dict[str, Any]]) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(document[0].encode())
    with patch.dict(os.environ, {"ANTIPHON_STATE_DIR": str(tmp_path / "state")}):
        set_up("zed", "Antiphon", (), path, yes=True)
        assert "Antiphon" in settings_in(path)["agent_servers"]
        set_up("zed", "Other", ("--engine", "demo"), path, yes=True)
        undo("zed", None, path, yes=True)
    assert path.read_bytes() == document[0].encode()


# The question.


def test_on_a_terminal_it_asks_and_yes_writes(home: Home) -> None:
    home.write(SETTINGS)
    with home.terminal("zed") as terminal:
        terminal.wait_for("(y yes, n no):")
        assert home.zed.read_bytes() == SETTINGS
        terminal.type("y\n")
        status, shown = terminal.finish()
    assert status == 0 and "restart Zed" in shown and "Antiphon" in settings_in(home.zed)["agent_servers"]
    assert b"\x1b[32m+" in terminal.raw


@pytest.mark.parametrize("answer", ["n\n", "\n", "perhaps\n", "\x04"])
def test_anything_but_yes_writes_nothing(home: Home, answer: str) -> None:
    home.write(SETTINGS)
    with home.terminal("zed") as terminal:
        terminal.wait_for("(y yes, n no):")
        terminal.type(answer)
        status, shown = terminal.finish()
    assert status == 1 and "nothing was written" in shown and home.zed.read_bytes() == SETTINGS


def test_ctrl_c_at_the_question_writes_nothing(home: Home) -> None:
    home.write(SETTINGS)
    with home.terminal("zed") as terminal:
        terminal.wait_for("(y yes, n no):")
        terminal.type("\x03")
        status, _ = terminal.finish()
    assert status == 130 and home.zed.read_bytes() == SETTINGS


def test_a_file_that_changes_during_the_question_is_left_alone(home: Home) -> None:
    home.write(SETTINGS)
    with home.terminal("zed") as terminal:
        terminal.wait_for("(y yes, n no):")
        home.write(b"{}")
        terminal.type("y\n")
        status, shown = terminal.finish()
    assert status == 1 and "nothing was written" in " ".join(shown.split()) and home.zed.read_bytes() == b"{}"
    assert not [*(home.path / ".local").rglob("*.json")]


# The other editors.


def test_jetbrains_gets_an_entry_in_its_file(home: Home) -> None:
    home.setup("jetbrains", "--yes")
    path = home.path / ".jetbrains" / "acp.json"
    assert json.loads(path.read_bytes()) == {
        "agent_servers": {"Antiphon": {"command": PROGRAM, "args": ["agent"], "env": {}}}
    }


def test_vscode_gets_an_entry_for_the_acp_client(home: Home) -> None:
    path = home.path / ".config" / "Code" / "User" / "settings.json"
    home.write(b'{\n    "editor.fontSize": 14 // big\n}\n', path)
    done = home.setup("vscode", "--yes")
    assert settings_in(path)["acp.agents"] == {"Antiphon": {"command": PROGRAM, "args": ["agent"], "env": {}}}
    assert "formulahendry.acp-client" in done.stderr


@pytest.mark.parametrize(
    ("editor", "file", "line"),
    [
        ("neovim", ".config/nvim/lua/antiphon_claude.lua", 'require("antiphon_claude").codecompanion'),
        ("emacs", ".emacs.d/antiphon-claude.el", '.emacs.d/antiphon-claude")'),
    ],
)
def test_an_editor_whose_settings_are_a_program_gets_a_file_and_a_line(
    home: Home, editor: str, file: str, line: str
) -> None:
    done = home.setup(editor, "--yes", "--engine", "claude")
    text = (home.path / file).read_text(encoding="utf-8")
    assert all(f'"{word}"' in text for word in (PROGRAM, "agent", "--engine", "claude"))
    assert line in done.stderr and "@" not in text
    home.setup(editor, "--undo", "--yes")
    assert home.files == []


@pytest.mark.parametrize(
    ("editor", "file"), [("neovim", ".config/nvim/lua/antiphon.lua"), ("emacs", ".emacs.d/antiphon.el")]
)
def test_a_file_of_that_name_that_is_not_ours_is_left_alone(home: Home, editor: str, file: str) -> None:
    home.write(b"mine\n", home.path / file)
    assert "not ours" in home.setup(editor, "--yes", status=1).stderr
    assert (home.path / file).read_bytes() == b"mine\n"


def test_our_file_that_the_user_changed_is_not_deleted(home: Home) -> None:
    home.setup("neovim", "--yes")
    path = home.path / ".config" / "nvim" / "lua" / "antiphon.lua"
    home.write(path.read_bytes() + b"-- mine\n", path)
    assert "changed" in home.setup("neovim", "--undo", "--yes", status=1).stderr
    assert path.exists()


def test_another_file_can_be_named(home: Home) -> None:
    home.setup("vscode", "--yes", "--file", "~/codium.json")
    assert "acp.agents" in settings_in(home.path / "codium.json") and home.files == ["codium.json"]
    home.setup("vscode", "--undo", "--yes")
    assert home.files == []


@pytest.mark.parametrize(
    "words",
    [
        ["--yes"],
        ["--undo", "--name", "Antiphon"],
        ["vi"],
        ["zed", "--engine", "steam"],
        ["zed", "--name", " "],
        ["zed", "--name", "a\nb"],
    ],
)
def test_words_that_make_no_sense_end_in_a_hint(home: Home, words: list[str]) -> None:
    home.setup(*words, status=2)


def test_without_an_editor_it_lists_those_that_are_here(home: Home) -> None:
    home.write(SETTINGS)
    home.setup("vscode", "--yes")
    done = home.setup()
    listed = {line.split()[0]: line[11:22].strip() for line in done.stdout.splitlines()}
    assert set(listed) == set(EDITORS) and (listed["zed"], listed["vscode"]) == ("found", "set up")
    assert "next: `antiphon setup zed`" in done.stderr
    assert "found here: zed" in home.setup("--yes", status=2).stderr


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [("y\n", "y\n", 0), ("y\n", "n\n", 1), ("n\n", "", 1), ("\n", "", 1), ("exit\n", "", 1), ("zed\n", "", 1)],
)
def test_without_an_editor_it_offers_on_a_terminal_what_is_here(
    home: Home, first: str, second: str, status: int
) -> None:
    home.write(SETTINGS)
    found = [line.split()[0] for line in home.setup().stdout.splitlines() if line[11:22].strip() == "found"]
    with home.terminal() as terminal:
        for name in found:
            terminal.wait_for(f"Set up {EDITORS[name].title}? (y yes, n no):")
            terminal.type(first if name == "zed" else "n\n")
        if second:
            terminal.wait_for("Write ")
            assert home.zed.read_bytes() == SETTINGS
            terminal.type(second)
        ended, shown = terminal.finish()
    assert ended == status
    assert (home.zed.read_bytes() == SETTINGS) == (status == 1) == ("nothing was written" in shown)
    if status == 0:
        with home.terminal() as terminal:  # what is set up is not offered again
            others = [name for name in found if name != "zed"]
            for name in others:
                terminal.wait_for(f"Set up {EDITORS[name].title}?")
                terminal.type("n\n")
            assert terminal.finish()[0] == (1 if others else 0)


@pytest.mark.parametrize("word", OTHER_NAMES)
def test_other_names_of_an_editor_lead_to_it(home: Home, word: str) -> None:
    name, folder = OTHER_NAMES[word]
    hint = home.setup(word, status=2).stderr
    assert (f"did you mean `antiphon setup {name}" in hint and f"/{folder}/User/settings.json" in hint) or not folder


@pytest.mark.parametrize(
    ("editor", "linux", "mac"),
    [
        ("zed", ".config/zed/settings.json", ".config/zed/settings.json"),
        ("jetbrains", ".jetbrains/acp.json", ".jetbrains/acp.json"),
        ("vscode", ".config/Code/User/settings.json", "Library/Application Support/Code/User/settings.json"),
        ("neovim", ".config/nvim/lua/antiphon.lua", ".config/nvim/lua/antiphon.lua"),
        ("emacs", ".emacs.d/antiphon.el", ".emacs.d/antiphon.el"),
    ],
)
def test_every_editor_has_its_place(tmp_path: Path, editor: str, linux: str, mac: str) -> None:
    with patch.dict(os.environ, {"HOME": str(tmp_path)}):
        assert settings_path(editor, "Antiphon", {}, "linux") == tmp_path / linux
        assert settings_path(editor, "Antiphon", {}, "darwin") == tmp_path / mac
    assert editor in EDITORS


def test_the_places_follow_the_environment(tmp_path: Path) -> None:
    (tmp_path / "xdg" / "emacs").mkdir(parents=True)
    xdg = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    with patch.dict(os.environ, {"HOME": str(tmp_path)}):
        assert settings_path("zed", "A", xdg, "linux") == tmp_path / "xdg" / "zed" / "settings.json"
        assert settings_path("zed", "A", xdg, "darwin") == tmp_path / ".config" / "zed" / "settings.json"
        assert settings_path("zed", "A", {"FLATPAK_XDG_CONFIG_HOME": "/f"}, "linux") == Path("/f/zed/settings.json")
        assert (
            settings_path("neovim", "A", xdg | {"NVIM_APPNAME": "mine"}) == tmp_path / "xdg" / "mine" / "lua" / "a.lua"
        )
        assert settings_path("emacs", "A", xdg) == tmp_path / "xdg" / "emacs" / "a.el"
        (tmp_path / ".emacs").touch()
        assert settings_path("emacs", "A", xdg) == tmp_path / ".emacs.d" / "a.el"
