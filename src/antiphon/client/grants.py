"""What the user has just allowed through `session/request_permission`, so that the write or the command itself is not asked again.

Rule 1: a grant is for one write or one command, in the session and the turn in which it was given.
Rule 2: it answers the question that the policy would ask, and nothing else: what the policy denies stays denied.
Rule 3: it is for what was shown. A write has to contain the new text of the diff, a command has to be the same, in the same folder and
without variables that choose what runs.
"""

import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.policy import Action

__all__ = ["Grants"]

MAX_GRANTS: Final = 100
"""Grants kept of agents that ask and then do the work themselves. The oldest goes first, and is asked again."""

_SYNTAX: Final = frozenset(";&|<>()$`\\\n\r*?[]#~{}!^")
"""What makes a shell line mean something else than its words."""


@dataclass(frozen=True, slots=True)
class _Grant:
    session_id: str
    turn: object
    path: str | None = None
    texts: tuple[str, ...] = ()
    command: Action | None = None


class Grants:
    """What was allowed and not used yet."""

    def __init__(self) -> None:
        self._given: deque[_Grant] = deque(maxlen=MAX_GRANTS)

    def give(self, session_id: str, turn: object, action: Action, shown: Mapping[str, Sequence[str]]) -> None:
        """The user allowed this. `shown`: the new texts in its diffs, by real path."""
        if action.kind == "execute":
            self._given.append(_Grant(session_id, turn, command=action))
        elif action.kind == "edit":
            for path in shown or action.paths:  # where a change was shown, what else the call names was not
                self._given.append(_Grant(session_id, turn, path, tuple(map(_lines, shown.get(path, ())))))

    def take_write(self, session_id: str, turn: object, paths: Sequence[str], content: str) -> bool:
        """Use the grant for this write, if there is one."""
        content = _lines(content)
        for grant in self._given:
            if not self._holds(grant, session_id, turn) or [grant.path] != [*paths]:
                continue
            if all(text in content for text in grant.texts):
                self._given.remove(grant)
                return True
        return False

    def take_command(self, session_id: str, turn: object, action: Action) -> bool:
        """Use the grant for this command, if there is one."""
        if action.variables:
            return False
        for grant in self._given:
            if self._holds(grant, session_id, turn) and grant.command is not None and _same(grant.command, action):
                self._given.remove(grant)
                return True
        return False

    def _holds(self, grant: _Grant, session_id: str, turn: object) -> bool:
        return grant.session_id == session_id and grant.turn is turn


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _same(asked: Action, real: Action) -> bool:
    """Whether a command is the one that was shown. One may be a line and the other its words, if that makes no difference."""
    if asked.cwd != real.cwd or asked.unread or real.unread:
        return False
    if asked.command is not None and real.command is not None:
        return asked.command.strip() == real.command.strip() != ""
    wanted, found = _words(asked), _words(real)
    return wanted is not None and wanted == found


def _words(action: Action) -> tuple[str, ...] | None:
    if action.command is None:
        return action.words
    if _SYNTAX & set(action.command):
        return None
    try:
        words = tuple(shlex.split(action.command))
    except ValueError:
        return None
    return (
        words if words and "=" not in words[0] else None
    )  # `A=b c` sets a variable in a line, and is a program's name as words
