"""The ways to sign in to Codex that clients are told of. Imported before `initialize` is answered, so it imports little."""

import sys
from typing import Final

from antiphon.protocol.v1.auth import AgentAuth, TerminalAuth

__all__ = ["API_KEY", "CHATGPT", "DEVICE", "KEYS", "METHODS"]

KEYS: Final = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""The variables that may hold an API key; the first that is set is taken."""


def _in_a_terminal(id: str, name: str, description: str, *words: str) -> TerminalAuth:
    # Some clients open terminals and do not say so in the protocol's way: they look for the whole command in the `_meta`.
    whole = ["-P", "-m", "antiphon", "agent", "--engine", "codex", *words]
    meta = {"terminal-auth": {"command": sys.executable, "args": whole, "label": name}}
    return TerminalAuth(id, name, description, [*words], meta=meta)


CHATGPT: Final = _in_a_terminal(
    "chatgpt-login", "ChatGPT account", "Sign in with your ChatGPT account, in a terminal and a browser.", "--login"
)
DEVICE: Final = _in_a_terminal(
    "device-login",
    "ChatGPT account, by a code",
    "Sign in with a browser on another machine: a terminal shows the code to type there.",
    "--login",
    "device",
)
API_KEY: Final = AgentAuth(
    "api-key", "OpenAI API key", f"Takes the key from {' or '.join(KEYS)} in the environment of the agent."
)

METHODS: Final = (CHATGPT, DEVICE, API_KEY)
