"""Files and commands of a turn: through the client where it can, else on this machine."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from antiphon.agent.stage import Stage
from antiphon.errors import LocalProtocolError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.commands import Running
    from antiphon.local.problems import FileProblem
    from antiphon.local.roots import Roots
    from antiphon.protocol.timeouts import Timeout

__all__ = ["Working"]


class Working(Stage):
    """The verbs that touch the workspace. Paths are relative to the session's directory."""

    def path(self, path: "str | os.PathLike[str]") -> str:
        """A path as the protocol wants it: absolute."""
        return os.path.normpath(os.path.join(self.session.cwd, path))

    async def read(
        self,
        path: "str | os.PathLike[str]",
        *,
        line: int | None = None,
        limit: int | None = None,
        timeout: "Timeout" = UNSET,
    ) -> str:
        """The text of a file, or `limit` lines of it from `line` on (counted from 1). An editor gives what is not saved yet, too.

        Raises:
            RequestRefused: it cannot be read.
            RequestTimeout: the client did not respond within `timeout` seconds, by default `APPROVAL_TIMEOUT`.
        """
        self._still_on()
        place = self.path(path)
        if self.session.client.reads_files:
            question = v1.ReadTextFile(self.session.id, place, line, limit)
            return (await self.request(m.READ_TEXT_FILE, question, timeout=timeout)).content
        from antiphon.local.files import FileProblem, read_text

        try:
            return await asyncio.to_thread(read_text, place, line, limit, roots=self._roots())
        except FileProblem as error:
            raise _refused(error) from error

    async def write(self, path: "str | os.PathLike[str]", text: str, *, timeout: "Timeout" = UNSET) -> None:
        """Write a whole file.

        Raises:
            RequestRefused: it cannot be written.
            RequestTimeout: the client did not respond within `timeout` seconds, by default `APPROVAL_TIMEOUT`.
        """
        self._still_on()
        place = self.path(path)
        if self.session.client.writes_files:
            await self.request(m.WRITE_TEXT_FILE, v1.WriteTextFile(self.session.id, place, text), timeout=timeout)
            return
        from antiphon.local.files import FileProblem, write_text

        try:
            await asyncio.to_thread(write_text, place, text, roots=self._roots())  # a disk may take its time
        except FileProblem as error:
            raise _refused(error) from error

    def _roots(self) -> "Roots":
        """Where files may be touched without a client to say so: where it would let us, too."""
        from antiphon.local.roots import Roots

        return Roots([self.session.cwd, *self.session.directories])

    def run(
        self,
        command: "Sequence[str] | str",
        *,
        cwd: "str | os.PathLike[str]" = "",
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
    ) -> "Running":
        """Run a command: `async with turn.run(["make", "test"]) as running`. Leaving the block ends it.

        A list is a program and its arguments; a string is a line for the shell. `env` is added to the environment. In the block,
        `async for text in running` follows the output and `await running.finish()` waits for the end.
        """
        from antiphon.agent.commands import InTerminal, OnThisMachine

        self._still_on()
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        if not words:
            raise LocalProtocolError(
                "there is no command to run", hint="give a program and its arguments, or a line for the shell"
            )
        kind = InTerminal if self.session.client.runs_commands else OnThisMachine
        return kind(self, words, self.path(cwd), dict(env or {}), output_limit)


def _refused(error: "FileProblem") -> RequestRefused:
    """The same error that a client would answer with, so that callers need to know one only."""
    from antiphon.local.problems import code_of, message_of

    return RequestRefused(code_of(error), message_of(error), hint=error.hint)
