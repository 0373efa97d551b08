"""The editors that `antiphon setup` knows: where their settings are, what is put in there, and what the user does next.

Knows places and texts; reads and writes nothing, except that it looks which of Emacs's two homes is there.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from antiphon.config.edits import EditRefused
from antiphon.editors.jsonc import JsoncEdit, has_entry, put_entry, take_entry

__all__ = [
    "EDITORS",
    "OTHER_NAMES",
    "CodeEditor",
    "Editor",
    "EditorEntry",
    "JsonEditor",
    "editors_here",
    "elisp",
    "lua",
    "settings_path",
    "word_of",
]

# --- files for editors whose settings are programs -------------------------------------------------------------------

LUA: Final = """\
-- Written by `antiphon setup neovim`; `antiphon setup neovim --undo` removes it.
local command = { @COMMAND@ }
local M = {}

-- CodeCompanion: `adapters = { acp = { @WORD@ = require("@WORD@").codecompanion } }` in its setup.
function M.codecompanion()
  local helpers = require("codecompanion.adapters.acp.helpers")
  return {
    name = "@WORD@",
    formatted_name = @NAME@,
    type = "acp",
    roles = { llm = "assistant", user = "user" },
    opts = { vision = true },
    commands = { default = command },
    defaults = { mcpServers = {}, timeout = 20000 },
    env = {},
    parameters = {
      protocolVersion = 1,
      clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
      clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
    },
    handlers = {
      setup = function()
        return true
      end,
      -- Antiphon uses the logins of Claude Code and Codex: there is nothing to sign in to before the first prompt.
      auth = function()
        return true
      end,
      form_messages = function(self, messages, capabilities)
        return helpers.form_messages(self, messages, capabilities)
      end,
      on_exit = function() end,
    },
  }
end

-- avante.nvim: `provider = "@WORD@", acp_providers = require("@WORD@").avante` in its setup.
M.avante = {
  ["@WORD@"] = { command = command[1], args = vim.list_slice(command, 2), env = {} },
}

return M
"""

ELISP: Final = """\
;;; @WORD@.el --- Antiphon in agent-shell -*- lexical-binding: t; -*-

;;; Commentary:

;; Written by `antiphon setup emacs'; `antiphon setup emacs --undo' removes it.

;;; Code:

(declare-function acp-make-client "acp")
(declare-function agent-shell-make-agent-config "agent-shell")
(defvar agent-shell-agent-configs)

(with-eval-after-load 'agent-shell
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier '@WORD@
    :mode-line-name @NAME@
    :buffer-name @NAME@
    :shell-prompt "@WORD@> "
    :shell-prompt-regexp "@WORD@> "
    :client-maker (lambda (buffer)
                    (acp-make-client :command @PROGRAM@
                                     :command-params '(@ARGUMENTS@)
                                     :context-buffer buffer)))
   t))

(provide '@WORD@)
;;; @WORD@.el ends here
"""


def word_of(name: str, joint: str) -> str:
    """An identifier for a module or a symbol, made of a display name; empty if it has no usable character."""
    word = re.sub(r"[^a-z0-9]+", joint, name.lower()).strip(joint)
    return word if word[:1].isalpha() else ""


def lua(name: str, command: Sequence[str]) -> str:
    """A module for Neovim: an adapter for CodeCompanion and a provider for avante.nvim."""
    words = ", ".join(map(_lua, command))
    return _filled(LUA, COMMAND=words, NAME=_lua(name), WORD=word_of(name, "_"))


def elisp(name: str, command: Sequence[str]) -> str:
    """A file for Emacs: a configuration of agent-shell."""
    program, *arguments = map(_elisp, command)
    return _filled(ELISP, PROGRAM=program, ARGUMENTS=" ".join(arguments), NAME=_elisp(name), WORD=word_of(name, "-"))


def _filled(text: str, **parts: str) -> str:
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], text)


def _lua(text: str) -> str:
    """A string of Lua. Control characters are written by their number: a bare line end would break it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03d}", escaped) + '"'


def _elisp(text: str) -> str:
    """A string of Emacs Lisp. Anything but these two may stand in it as it is."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


NAME: Final = "Antiphon"
"""The name of the agent in an editor, unless the user gives another one."""


class EditorEntry(msgspec.Struct, frozen=True):
    """The name of the entry in an editor, and the command that it starts."""

    name: str
    command: tuple[str, ...]


class JsonEditor(msgspec.Struct, frozen=True):
    """An editor whose settings are JSON with comments, which get an entry."""

    title: str
    group: str
    """The key of that object."""
    steps: tuple[str, ...]
    """What the user does next. `{name}` is the name of our entry there."""
    fixed: tuple[tuple[str, str], ...] = ()
    """What stands in the entry besides the command."""

    def put(self, text: str | None, entry: EditorEntry) -> JsoncEdit:
        """Return the settings with the entry."""
        value: dict[str, object] = {
            **dict(self.fixed),
            "command": entry.command[0],
            "args": [*entry.command[1:]],
            "env": {},
        }
        return put_entry(text or "", self.group, entry.name, value)

    def take(self, text: str, name: str, *, made_group: bool, replaced: str | None) -> str | None:
        """Return changed settings without the entry; None if it is gone."""
        if not has_entry(text, self.group, name):
            return None
        return take_entry(text, self.group, name, made_group=made_group, replaced=replaced)

    def next_steps(self, path: Path, entry: EditorEntry) -> list[str]:
        """Return what the user has to do next."""
        return [step.format(name=entry.name) for step in self.steps]


class CodeEditor(msgspec.Struct, frozen=True):
    """An editor whose settings are a program: a file is written, and the user adds a line that loads it."""

    title: str
    sign: str
    """What stands in every file that we wrote."""
    write: Callable[[str, Sequence[str]], str]
    """Our name and command → the text of the file."""
    make_steps: Callable[[Path, str], list[str]]
    """The file and our name → what the user does next."""

    def put(self, text: str | None, entry: EditorEntry) -> JsoncEdit:
        """Return our file."""
        if text is not None and self.sign not in text:
            raise EditRefused("it is there already, and is not ours", hint="choose another --name, or move it away")
        return JsoncEdit(self.write(entry.name, entry.command))

    def take(self, text: str, name: str, *, made_group: bool, replaced: str | None) -> str | None:
        """Raise EditRefused: the user has changed the file."""
        raise EditRefused("it was changed after it was written", hint="delete it yourself if you do not need it")

    def next_steps(self, path: Path, entry: EditorEntry) -> list[str]:
        """Return the line to add, and what to do then."""
        return self.make_steps(path, entry.name)


def _neovim_steps(path: Path, name: str) -> list[str]:
    word = path.stem
    return [
        f'CodeCompanion: add to its setup   adapters = {{ acp = {{ {word} = require("{word}").codecompanion }} }}',
        f'avante.nvim: add to its setup   provider = "{word}", acp_providers = require("{word}").avante',
        f"restart Neovim, then `:CodeCompanionChat adapter={word}` or `:AvanteAsk`",
    ]


def _emacs_steps(path: Path, name: str) -> list[str]:
    return [
        f'add to your init file   (load "{path.with_suffix("")}")',
        f"install agent-shell from MELPA if you have not, restart Emacs, then `M-x agent-shell` and pick {name}",
    ]


Editor = JsonEditor | CodeEditor

EDITORS: Final[Mapping[str, Editor]] = {
    "zed": JsonEditor(
        "Zed",
        "agent_servers",
        ("restart Zed, open the agent panel, and pick {name} in the menu of its `+`",),
        fixed=(("type", "custom"),),
    ),
    "jetbrains": JsonEditor(
        "JetBrains IDEs",
        "agent_servers",
        ("restart the IDE, open AI Chat, and pick {name} in its list of agents",),
    ),
    "neovim": CodeEditor("Neovim", "Written by `antiphon setup neovim`", lua, _neovim_steps),
    "emacs": CodeEditor("Emacs", "Written by `antiphon setup emacs'", elisp, _emacs_steps),
    "vscode": JsonEditor(
        "VS Code",
        "acp.agents",
        (
            "install the extension ACP Client if you have not: code --install-extension formulahendry.acp-client",
            "restart VS Code, open ACP Client in the activity bar, and pick {name}",
        ),
    ),
}
"""The word on the command line → the editor."""


OTHER_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "nvim": ("neovim", ""), "vim": ("neovim", ""), "code": ("vscode", ""), "vs-code": ("vscode", ""),
    "intellij": ("jetbrains", ""), "idea": ("jetbrains", ""), "pycharm": ("jetbrains", ""), "webstorm": ("jetbrains", ""),
    "goland": ("jetbrains", ""), "rider": ("jetbrains", ""), "clion": ("jetbrains", ""), "rustrover": ("jetbrains", ""),
    "cursor": ("vscode", "Cursor"), "codium": ("vscode", "VSCodium"), "vscodium": ("vscode", "VSCodium"), "windsurf": ("vscode", "Windsurf"),
}  # fmt: skip
"""What else people call them → the editor, and the folder of its settings where that is another one."""

_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "zed": ("zed", "zeditor", "zed-editor"),
    "jetbrains": ("idea", "pycharm", "webstorm", "goland", "clion", "rider", "rustrover", "phpstorm"),
    "neovim": ("nvim",),
    "emacs": ("emacs",),
    "vscode": ("code", "code-insiders", "codium", "cursor"),
}


def editors_here(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> list[str]:
    """Return the editors that seem to be on this machine: their program is on the PATH, or their settings are there."""
    import shutil

    path = environment.get("PATH", os.defpath)

    def is_here(name: str) -> bool:
        folder = settings_path(name, "antiphon", environment, platform).parent
        folder = folder.parent if name in ("neovim", "vscode") else folder
        return folder.is_dir() or any(shutil.which(program, path=path) for program in _PROGRAMS[name])

    return [name for name in EDITORS if is_here(name)]


def settings_path(
    editor: str, name: str, environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Path:
    """Return the file that `setup` changes or writes.

    Raises:
        EditRefused: the name cannot be the name of a file there.
    """
    home = Path.home()
    base = Path(environment.get("XDG_CONFIG_HOME", ""))
    config = base if base.is_absolute() else home / ".config"
    match editor:
        case "zed":
            flatpak = Path(environment.get("FLATPAK_XDG_CONFIG_HOME", ""))
            if platform == "darwin":
                config = home / ".config"  # Zed does not look at XDG_CONFIG_HOME there
            elif flatpak.is_absolute():
                config = flatpak
            return config / "zed" / "settings.json"
        case "jetbrains":
            return home / ".jetbrains" / "acp.json"
        case "vscode":
            mac = home / "Library" / "Application Support"
            return (mac if platform == "darwin" else config) / "Code" / "User" / "settings.json"
        case "neovim":
            return config / environment.get("NVIM_APPNAME", "nvim") / "lua" / f"{_word(name, '_')}.lua"
        case _:
            return _emacs_home(home, config) / f"{_word(name, '-')}.el"


def _emacs_home(home: Path, config: Path) -> Path:
    """Return the home of Emacs, as Emacs chooses it."""
    old = any((home / place).exists() for place in (".emacs.d", ".emacs", ".emacs.el"))
    return config / "emacs" if not old and (config / "emacs").is_dir() else home / ".emacs.d"


def _word(name: str, joint: str) -> str:
    word = word_of(name, joint)
    if not word:
        raise EditRefused(f"no file can be named after `{name}`", hint="use letters, as in --name Antiphon")
    return word
