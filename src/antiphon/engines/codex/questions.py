"""What the server asks about a thread: whether a command may run, whether a change may be made, and questions to the user."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex.approvals import ApprovalAsker
from antiphon.engines.codex.approvals.asker import changed_files, decided_by_mode
from antiphon.engines.questions import CliQuestions

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex import wire
    from antiphon.engines.codex.settings import CodexSettings
    from antiphon.engines.codex.translate import CodexTranslator
    from antiphon.engines.events import UpdateSender
    from antiphon.protocol.base import JsonObject

__all__ = ["LARGEST", "CodexQuestions", "NewDirectories", "text_before"]

# Files that Codex asks to change: their text before, because its diffs hold the changed lines alone, and the directories that they need.

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file that is shown whole. Of a larger one only the changed lines are."""


_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def text_before(path: str) -> str | None:
    """Return the text of a file; None if it cannot be read, is too large, or is not text.

    Never waits: the model chose the path, and it may be a pipe.
    """
    try:
        descriptor = os.open(path, _OPEN)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                found = file.read(LARGEST + 1)  # the size of the file may be wrong, as below /proc
        finally:
            os.close(descriptor)
        return found.decode() if len(found) <= LARGEST else None
    except (OSError, ValueError):
        return None


class NewDirectories:
    """Directories of files that an allowed change adds.

    Codex applies a change that was allowed in a sandbox which may write the directories of the files, and makes none: in a read-only
    sandbox a file in a new directory fails (0.163 and 0.166), in the user's `default` mode too. So they are made here.
    """

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self, files: Iterable[str]) -> None:
        """Make the missing directories of these files."""
        for file in files:
            missing = []
            directory = os.path.dirname(file)
            while directory and not os.path.lexists(directory):
                missing.append(directory)
                directory = os.path.dirname(directory)
            for each in reversed(missing):
                try:
                    os.mkdir(each)
                except (OSError, ValueError):  # the change itself will fail with the reason
                    break
                self._made.append(each)

    def remove_empty(self) -> None:
        """Remove the directories in which no file was made."""
        for directory in reversed(self._made):
            with suppress(OSError):  # it has something in it
                os.rmdir(directory)
        self._made.clear()


class CodexQuestions(CliQuestions["wire.ServerRequest"]):
    """The requests of the server about one thread."""

    def __init__(
        self,
        session: "AgentSession",
        updates: "UpdateSender",
        translator: "CodexTranslator",
        settings: "CodexSettings",
    ) -> None:
        super().__init__(session, updates)
        self._asker = ApprovalAsker(session)
        self._translator = translator
        self._settings = settings
        self._directories = NewDirectories()

    def _id_of(self, request: "wire.ServerRequest") -> "wire.RequestId":
        return request.id

    async def _result_of(self, request: "wire.ServerRequest") -> "JsonObject | None":
        call = self._translator.patch_of(request.params)
        result = decided_by_mode(self._session, self._settings, request.params, call)
        if result is None:
            result = await self._asker.answer(request.method, request.params, self._user, call)
        if call is not None and result is not None and _allows(result):
            self._directories.make(changed_files(request.params, call))
            await self._send_allowed(self._translator.allowed(call.tool_call_id))
        return result

    def turn_over(self) -> None:
        """Remove what was made for the changes of a turn that has ended."""
        self._directories.remove_empty()


def _allows(result: "JsonObject") -> bool:
    """Whether an answer lets the call run."""
    decision = result.get("decision")
    name = next(iter(decision), "") if isinstance(decision, dict) else decision
    return str(name).startswith(("accept", "approved")) or result.get("action") == "accept"
