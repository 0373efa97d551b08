"""What the user has just allowed through `session/request_permission`, so that the write or the command itself is not asked again.

Rule 1: a grant is for one write or one command, in the session and the turn in which it was given.
Rule 2: it answers the question that the policy would ask, and nothing else: what the policy denies stays denied.
Rule 3: it is for exactly what was shown. A write has to find the file as it was when the user was asked and leave it as the diffs say; a
command has to be the same, in the same directory and without variables that choose what runs.
Rule 4: what was shown has to be true. Diffs that do not fit the file, or a new file where there is one, give no grant.
"""

import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from antiphon.permission.actions import FileNow
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
    before: bytes | None = None
    """The digest of the file as it was; None: there was none."""
    after: bytes = b""
    command: Action | None = None


class Grants:
    """What was allowed and not used yet."""

    def __init__(self) -> None:
        self._given: deque[_Grant] = deque(maxlen=MAX_GRANTS)

    def give(
        self,
        session_id: str,
        turn: object,
        action: Action,
        shown: Mapping[str, Sequence[Change]],
        files: Mapping[str, FileNow],
    ) -> None:
        """Note that the user allowed this. `shown` is what its diffs change, `files` what the files were, both by real path."""
        if action.kind == "execute":
            self._given.append(_Grant(session_id, turn, command=action))
        elif action.kind == "edit":
            for path, changes in shown.items():
                now = files.get(path)
                after = None if now is None else _changed(changes, now)
                if now is not None and after is not None:
                    before = _digest(None if now.text is None else _lines(now.text))
                    self._given.append(_Grant(session_id, turn, path, before, _digest(after) or b""))

    def may_take_write(self, session_id: str, turn: object, paths: Sequence[str]) -> bool:
        """Return whether there is a grant for this file, so that it is worth reading."""
        return any(self._holds(grant, session_id, turn) and [grant.path] == [*paths] for grant in self._given)

    def take_write(self, session_id: str, turn: object, paths: Sequence[str], content: str, now: FileNow) -> bool:
        """Use the grant for this write, if there is one. `now` is the file before it."""
        if now.there and now.text is None:
            return False
        before, after = _digest(None if now.text is None else _lines(now.text)), _digest(_lines(content))
        for grant in self._given:
            if not self._holds(grant, session_id, turn) or [grant.path] != [*paths]:
                continue
            if (grant.before, grant.after) == (before, after):
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


def _changed(changes: Sequence[Change], now: FileNow) -> str | None:
    """Return the file as the diffs leave it; None if they do not fit the file, or fit it in more than one place."""
    text = None if now.text is None else _lines(now.text)
    if now.there and text is None:
        return None
    for old, new in changes:
        if old is None or text is None:
            if old or text is not None:
                return None
            text = _lines(new)
        elif _lines(old) == text:
            text = _lines(new)
        elif _lines(old) and 0 <= text.find(_lines(old)) == text.rfind(_lines(old)):
            text = text.replace(_lines(old), _lines(new))
        else:
            return None
    return text if changes else None


def _digest(text: str | None) -> bytes | None:
    """Return the digest of a text whose line ends are joined already: done twice, `\\r\\r\\n` would be a plain end of line."""
    import hashlib  # late: most sessions never write through us

    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


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
    )  # in a shell line `A=b c` is an assignment; as words it is a program named `A=b`
