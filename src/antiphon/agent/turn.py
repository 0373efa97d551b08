"""A turn of an agent: what it can do between a prompt and its response."""

import os
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from antiphon.agent.questions import UserQuestions
from antiphon.agent.tools import LiveCall
from antiphon.errors import LocalProtocolError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.commands import RunningCommand
    from antiphon.agent.session import AgentSession
    from antiphon.local.problems import FileProblem
    from antiphon.local.roots import Roots
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.timeouts import Timeout

__all__ = ["AgentTurn"]


class AgentTurn(UserQuestions):
    """One prompt that the agent works on. Every method raises `TurnOver` once it has been answered.

    Besides what is here: `ask_permission`, `ask`, `choose`, `visit` (questions to the user), `read`, `write`, `run` (files and
    commands), `update` and `request` (anything the protocol has).
    """

    def __init__(
        self,
        session: "AgentSession",
        prompt: "Sequence[v1.ContentBlock]",
        meta: "JsonObject | None" = None,
        *,
        message_id: str | None = None,
    ) -> None:
        super().__init__(session)
        self._message_id = message_id
        self.meta: JsonObject = meta or {}
        """The `_meta` of the prompt."""
        self.prompt = tuple(prompt)
        """The content blocks of the prompt."""

    @property
    def message_id(self) -> str:
        """The id of the prompt as a message of the session: the one that a client of version 2 knows it by, else one that we make."""
        if self._message_id is None:
            self._message_id = self.session._prompt_id() or self.next_id("prompt")
        return self._message_id

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return "".join(block.text for block in self.prompt if isinstance(block, v1.TextBlock))

    @property
    def command(self) -> tuple[str, str] | None:
        """The slash command that the prompt begins with and what follows it, or None."""
        text = self.text.strip()
        if not text.startswith("/") or text[1:2].isspace() or len(text) < 2:
            return None
        name, *rest = text[1:].split(maxsplit=1)
        if "/" in name or "." in name:  # a path
            return None
        return name, rest[0] if rest else ""

    def say(self, content: "str | v1.ContentBlock", *, message_id: str | None = None) -> Awaitable[None]:
        """Send a piece of the answer: text, which is Markdown, or any other content.

        Pieces with the same `message_id` are one message, also if others come between them. Without one, a message ends where
        something else is sent. `turn.next_id("message")` makes an id.
        """
        if self._over:  # spelt out, because agents that stream do little else
            self._check_running()
        if isinstance(content, str) and message_id is None:
            return self.session.say(content)
        return self.session.update(v1.AgentMessageChunk(_block(content), message_id))

    def think(self, content: "str | v1.ContentBlock", *, message_id: str | None = None) -> Awaitable[None]:
        """Send a piece of the thinking behind the answer. `message_id` as with `say`."""
        self._check_running()
        if isinstance(content, str) and message_id is None:
            return self.session.think(content)
        return self.session.update(v1.AgentThoughtChunk(_block(content), message_id))

    def plan(self, *entries: "str | v1.PlanEntry", done: int = 0) -> Awaitable[None]:
        """Show the whole plan as it stands; it replaces the one before. Of plain texts the first `done` are completed and the next is
        being worked on."""
        return self.update(v1.Plan([_entry(entry, index, done) for index, entry in enumerate(entries)]))

    def tool(
        self,
        title: str,
        kind: v1.ToolKind = v1.ToolKind.OTHER,
        *,
        name: str | None = None,
        input: Any = v1.UNSET,
        at: "Sequence[v1.ToolLocation | str | os.PathLike[str]]" = (),
        id: str | None = None,
    ) -> LiveCall:
        """Show a tool call: `async with turn.tool("Read a.txt", v1.ToolKind.READ, at=["a.txt"]) as call`.

        `name` is the tool's own name, `input` what it was called with, `at` the files it works on.
        """
        locations = [each if isinstance(each, v1.ToolLocation) else v1.ToolLocation(self.path(each)) for each in at]
        call = v1.ToolCall(
            id or self.next_id("call"), title, kind, v1.ToolStatus.PENDING, name, locations=locations, raw_input=input
        )
        return LiveCall(self, call)

    def usage(self, used: int, size: int, cost: float | None = None, currency: str = "USD") -> Awaitable[None]:
        """Send how full the context window is, and what the session has cost so far."""
        return self.update(v1.UsageUpdate(used, size, None if cost is None else v1.Cost(cost, currency)))

    # Files and commands: through the client where it can, else on this machine. Paths are relative to the session's directory.

    def path(self, path: "str | os.PathLike[str]") -> str:
        """Return an absolute path, as the protocol wants it; relative ones start at the session's directory."""
        return os.path.normpath(os.path.join(self.session.cwd, path))

    async def read(
        self,
        path: "str | os.PathLike[str]",
        *,
        line: int | None = None,
        limit: int | None = None,
        timeout: "Timeout" = UNSET,
    ) -> str:
        """Read the text of a file, or `limit` lines of it from `line` on (counted from 1). From an editor it is the unsaved text.

        Raises:
            RequestRefused: it cannot be read.
            RequestTimeout: the client did not respond within `timeout` seconds, by default `APPROVAL_TIMEOUT`.
        """
        self._check_running()
        absolute = self.path(path)
        if self.session.client.reads_files:
            request = v1.ReadTextFile(self.session.id, absolute, line, limit)
            return (await self.request(m.READ_TEXT_FILE, request, timeout=timeout)).content
        import asyncio

        from antiphon.local.files import FileProblem, read_text

        try:
            return await asyncio.to_thread(read_text, absolute, line, limit, roots=self._roots())
        except FileProblem as error:
            raise _refused(error) from error

    async def write(self, path: "str | os.PathLike[str]", text: str, *, timeout: "Timeout" = UNSET) -> None:
        """Write a whole file.

        Raises:
            RequestRefused: it cannot be written.
            RequestTimeout: the client did not respond within `timeout` seconds, by default `APPROVAL_TIMEOUT`.
        """
        self._check_running()
        absolute = self.path(path)
        if self.session.client.writes_files:
            await self.request(m.WRITE_TEXT_FILE, v1.WriteTextFile(self.session.id, absolute, text), timeout=timeout)
            return
        import asyncio

        from antiphon.local.files import FileProblem, write_text

        try:
            await asyncio.to_thread(write_text, absolute, text, roots=self._roots())  # a disk may be slow
        except FileProblem as error:
            raise _refused(error) from error

    def _roots(self) -> "Roots":
        """The roots of files that are read and written without a client: the directories of the session."""
        from antiphon.local.roots import Roots

        return Roots([self.session.cwd, *self.session.directories])

    def run(
        self,
        command: "Sequence[str] | str",
        *,
        cwd: "str | os.PathLike[str]" = "",
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
    ) -> "RunningCommand":
        """Run a command: `async with turn.run(["make", "test"]) as running`. Leaving the block ends it.

        A list is a program and its arguments; a string is a line for the shell. `env` is added to the environment. In the block,
        `async for text in running` follows the output and `await running.finish()` waits for the end.
        """
        from antiphon.agent.commands import InTerminal, OnThisMachine

        self._check_running()
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        if not words:
            raise LocalProtocolError(
                "there is no command to run", hint="give a program and its arguments, or a line for the shell"
            )
        kind = InTerminal if self.session.client.runs_commands else OnThisMachine
        return kind(self, words, self.path(cwd), dict(env or {}), output_limit)


def _refused(error: "FileProblem") -> RequestRefused:
    """Return the error that a client would respond with, so that callers handle one only."""
    from antiphon.local.problems import code_of, message_of

    return RequestRefused(code_of(error), message_of(error), hint=error.hint)


def _block(content: object) -> v1.ContentBlock:
    """Refuse what is no content: a client would drop it in silence."""
    if isinstance(content, str):
        return v1.TextBlock(content)
    if not isinstance(content, v1.ContentBlock | v1.Unknown):
        raise TypeError(f"{content!r:.60} is neither text nor content of a message")
    return content


def _entry(entry: "str | v1.PlanEntry", index: int, done: int) -> v1.PlanEntry:
    if not isinstance(entry, str):
        return entry
    if index < done:
        status = v1.PlanStatus.COMPLETED
    else:
        status = v1.PlanStatus.IN_PROGRESS if index == done else v1.PlanStatus.PENDING
    return v1.PlanEntry(entry, v1.PlanPriority.MEDIUM, status)
