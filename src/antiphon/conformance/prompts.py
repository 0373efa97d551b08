"""Prompts that make an agent do something: defaults for agents with a model, a file for others, and those of our demo."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from antiphon.errors import AcpError

__all__ = ["AUTH", "DEMO", "PURPOSES", "BadPrompts", "Prompts"]

PURPOSES: Final[dict[str, tuple[str, str]]] = {
    "say": ("send a short message and end the turn", "Say hello in one short sentence. Do not use any tool."),
    "long": (
        "work until it is cancelled, with a message now and then",
        "Count from 1 to 2000 in English words, one number a line. Do not use any tool and do not stop early.",
    ),
    "many": (
        "send a long message in many pieces",
        "Count from 1 to 200 in English words, one number a line. Do not use any tool.",
    ),
    "read": ("read {file}", "Read the file {file} and tell me what its first line says."),
    "write": ("write {text} into {file}", "Write exactly this text into the file {file}: {text}"),
    "run": ("run {command}", "Run this command in a terminal and tell me what it printed: {command}"),
    "long_run": ("run {command}, which takes a minute", "Run this command in a terminal: {command}"),
    "ask": ("ask for permission, whatever for", "Write exactly this text into the file {file}: {text}"),
    "plan": ("make a plan", "Make a plan of three steps for a small program, as a plan, and do nothing else."),
    "think": ("think aloud", "Think about whether 91 is a prime, then say yes or no."),
    "form": ("ask the user to fill in a form", ""),
    "visit": ("ask the user to open an address", ""),
}
"""Name → what the agent is to do, and the words that most agents with a model understand; empty without such a prompt."""


class BadPrompts(AcpError):
    """A file of prompts that cannot be used."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The words for each purpose."""

    words: Mapping[str, str] = field(default_factory=dict)

    def text(self, purpose: str, **places: object) -> str:
        """The prompt for a purpose; empty if no prompt is known for it."""
        found = self.words.get(purpose, PURPOSES[purpose][1])
        for name, value in places.items():
            found = found.replace("{" + name + "}", str(value))
        return found

    @classmethod
    def read(cls, path: Path) -> "Prompts":
        """Read prompts from a TOML file with a line for each purpose.

        Raises:
            BadPrompts: it is no such file.
        """
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadPrompts(
                f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
                hint="`antiphon check --show-prompts` prints one to start from",
            ) from None
        for name, words in found.items():
            if name not in PURPOSES or not isinstance(words, str):
                raise BadPrompts(
                    f"{path}: `{name}` is no purpose with a text", hint=f"the purposes are {', '.join(PURPOSES)}."
                )
        return cls(found)


# --- the prompts of our demo agent

AUTH: Final = "demo"
"""How to sign in: it always works."""

DEMO: Final = Prompts(
    {
        "say": "/think about it",
        "long": "/slow 1000",
        "many": "/many 50",
        "read": "/read {file}",
        "write": "/edit {file} {text}",
        "run": "/run {command}",
        "long_run": "/run {command}",
        "ask": "/permission",
        "plan": "/plan",
        "think": "/think hard",
        "form": "/ask",
        "visit": "/visit",
    }
)
