"""Antiphon for editors whose settings are programs: a file of our own in their language. Pure: words in, text out."""

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["elisp", "lua", "word_of"]

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
    """A word for a module or a symbol, made of a name that people read; empty if there is nothing to make it of."""
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
