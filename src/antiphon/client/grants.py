"""What the user has just allowed through `session/request_permission`, so that the write or the command itself is not asked again.

Rule 1: a grant is for one write or one command, in the session and the turn in which it was given.
Rule 2: it answers the question that the policy would ask, and nothing else: what the policy denies stays denied.
Rule 3: it is for what was shown. A write has to be the change of the diff and nothing more, a command has to be the same, in the
same folder and without variables that choose what runs.
"""

import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from antiphon.policy import Action

__all__ = ["Grants"]

MAX_GRANTS: Final = 100
"""Grants kept of agents that ask and then do the work themselves. The oldest goes first, and is asked again."""

_SYNTAX: Final = frozenset(";&|<>()$`\\\n\r*?[]#~{}!^")
"""What makes a shell line mean something else than its words."""


Change: TypeAlias = tuple[str | None, str]
"""The old text of a diff (None: the file is new) and the new one."""


@dataclass(frozen=True, slots=True)
class _Grant:
    session_id: str
    turn: object
    path: str | None = None
    changes: tuple[Change, ...] = ()
    command: Action | None = None


class Grants:
    """What was allowed and not used yet."""

    def __init__(self) -> None:
        self._given: deque[_Grant] = deque(maxlen=MAX_GRANTS)

    def give(self, session_id: str, turn: object, action: Action, shown: Mapping[str, Sequence[Change]]) -> None:
        """The user allowed this. `shown`: what its diffs change, by real path. What was not shown is not allowed."""
        if action.kind == "execute":
            self._given.append(_Grant(session_id, turn, command=action))
        elif action.kind == "edit":
            for path, changes in shown.items():
                self._given.append(_Grant(session_id, turn, path, tuple(changes)))

    def take_write(self, session_id: str, turn: object, paths: Sequence[str], content: str, now: str | None) -> bool:
        """Use the grant for this write, if there is one. `now` is what the file has before it, None if there is none."""
        for grant in self._given:
            if not self._holds(grant, session_id, turn) or [grant.path] != [*paths]:
                continue
            if _is_change(grant.changes, _lines(content), None if now is None else _lines(now)):
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


def _is_change(changes: Sequence[Change], content: str, now: str | None) -> bool:
    """Whether writing this does what was shown: the file becomes the new text, or has each old text replaced by its new one."""
    if len(changes) == 1 and _lines(changes[0][1]) == content:
        return True
    if now is None:
        return False
    for old, new in changes:
        if not old or _lines(old) not in now:
            return False
        now = now.replace(_lines(old), _lines(new), 1)
    return bool(changes) and now == content


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
