"""A tool call while it runs. It is shown as pending, then in progress, and always ends as completed, failed or cancelled."""

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from antiphon.agent.questions import OPTIONS, Permission
from antiphon.errors import AcpError, LocalProtocolError, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.timeouts import NO_TIMEOUT

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from antiphon.agent.commands import FinishedCommand
    from antiphon.agent.turn import AgentTurn
    from antiphon.agent.work import CancellablePart
    from antiphon.protocol.timeouts import Timeout

__all__ = ["LiveCall"]


class LiveCall:
    """A tool call that the user sees: `async with turn.tool(…) as call`. An exception in the block, also a cancellation, makes it failed."""

    def __init__(self, turn: "AgentTurn", call: v1.ToolCall) -> None:
        self._turn = turn
        self._call = call
        self._content: list[v1.ToolContent] = list(call.content)
        self._locations: list[v1.ToolLocation] = list(call.locations)
        self._failed = False
        self._denied = False
        self._shown = False
        self._last_changes: dict[str, Any] = {}
        self.status = call.status
        self.id = call.tool_call_id
        self.cancelled = False
        """Whether the client cancelled this call alone, in a block of `cancellable`."""

    async def __aenter__(self) -> Self:
        from asyncio import CancelledError

        self._shown = True
        try:
            await self._turn.update(self._call)
        except CancelledError:  # while the client was slow to read: the call is shown, and there is no block to leave
            self._fail()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if self.cancelled and not isinstance(error, Exception):
            self._fail(**self._last_changes, meta=_cancelled_status(self._turn))
        elif error is None and not self._failed:
            if self.status == v1.ToolStatus.PENDING:
                # Not awaited: cancelled in between, it would never be completed.
                _ = self._patch(status=v1.ToolStatus.IN_PROGRESS)
            await self._patch(status=v1.ToolStatus.COMPLETED)
        elif isinstance(error, Exception):
            self.fail(_reason(error))
            self._fail(content=list(self._content), **self._denial())
        else:
            self._fail(**self._last_changes, **self._denial())

    def _denial(self) -> dict[str, Any]:
        """Return the mark of a call that was not allowed: a client shows it as denied, also when the session is loaded again."""
        return {"meta": {"antiphon": {"denied": True}}} if self._denied else {}

    def _fail(self, **changes: Any) -> None:
        with suppress(
            AcpError
        ):  # the turn may be over, or the client gone; the error that is being raised has the reason
            # Not awaited: this may be a cancelled task, and a slow client must not hold it up.
            _ = self._patch(status=v1.ToolStatus.FAILED, **changes)

    def _patch(self, **changes: Any) -> Awaitable[None]:
        if not self._shown:
            raise LocalProtocolError("this tool call is not shown yet", hint="async with turn.tool(…) as call")
        sent = self._turn.update(v1.ToolCallUpdate(self.id, **changes))
        self.status = changes.get("status", self.status)
        return sent

    async def start(self) -> None:
        """Show the call as in progress. To show any content does that too."""
        if self.status == v1.ToolStatus.PENDING:
            await self._patch(status=v1.ToolStatus.IN_PROGRESS)

    def fail(self, reason: str | None = None) -> None:
        """Let the call end as failed, without an exception, and show the reason."""
        self._failed = True
        if reason is not None:
            self._content.append(_text(reason))
            self._last_changes = {"content": list(self._content)}

    def cancellable(self) -> "CancellablePart":
        """Let the client cancel this call alone: `async with call.cancellable():` around its work.

        If it does, the block is left by a cancellation, `call.cancelled` is true, and the turn goes on after the block. The call ends as
        cancelled. In version 1 no client can do that, so the block is nothing but a block.
        """
        from antiphon.agent.work import CancellablePart

        return CancellablePart(self, self._turn.session)

    async def permitted(
        self, options: "Sequence[v1.PermissionOption]" = OPTIONS, *, timeout: "Timeout" = NO_TIMEOUT
    ) -> Permission:
        """Ask the user whether the call may run. True: it runs. False: it ends as failed; leave the block.

        Raises:
            RequestTimeout: there was no answer within `timeout` seconds; by default it is waited for without a limit.
        """
        patch = v1.ToolCallPatch(
            self.id,
            title=self._call.title,
            kind=self._call.kind,
            status=self.status,
            name=v1.UNSET if self._call.name is None else self._call.name,
            content=list(self._content),
            locations=list(self._locations),
            raw_input=self._call.raw_input,
        )
        permission = await self._turn.ask_permission(patch, options, timeout=timeout)
        self._denied = not permission and permission.option is not None  # else the request was cancelled
        if permission:
            await self.start()
        else:
            self.fail()
        return permission

    async def show(self, *content: "str | v1.ContentBlock | v1.ToolContent", raw: Any = v1.UNSET) -> None:
        """Add to the content of the call: text, any content, diffs, terminals. `raw` is the output of the tool itself."""
        await self.start()
        self._content += [_item(each) for each in content]
        await self._patch(content=list(self._content), raw_output=raw)

    def preview(self, *content: "str | v1.ContentBlock | v1.ToolContent") -> Awaitable[None]:
        """Add to the content of the call while it waits for permission."""
        self._content += [_item(each) for each in content]
        return self._patch(content=list(self._content))

    async def diff(self, path: "str | os.PathLike[str]", new_text: str, old_text: str | None = None) -> None:
        """Add a change to a file; no `old_text` means that the file is new."""
        await self.show(v1.Diff(self._turn.path(path), new_text, old_text))

    async def at(self, path: "str | os.PathLike[str]", line: int | None = None) -> None:
        """Add a file that the call works on, so that an editor can follow."""
        self._locations.append(v1.ToolLocation(self._turn.path(path), line))
        await self._patch(locations=list(self._locations))

    async def rename(self, title: str) -> None:
        """Change the title of the call."""
        await self._patch(title=title)

    async def run(
        self, command: "Sequence[str] | str", *, timeout: float | None = NO_TIMEOUT, **how: Any
    ) -> "FinishedCommand":
        """Run a command, shown live where the client can, and wait for its end. The same arguments as `turn.run`.

        Raises:
            RequestTimeout: it ran for more than `timeout` seconds, and was killed.
        """
        await self.start()
        async with self._turn.run(command, **how) as running:
            if running.terminal_id is not None:
                await self.show(v1.TerminalItem(running.terminal_id))
            finished = await running.finish(timeout=timeout)
        if running.terminal_id is None and finished.output:
            await self.show(finished.output)
        # The terminal goes with the session; a client that loads the session later has this.
        raw = {"output": finished.output, "exitCode": finished.exit_code, "signal": finished.signal}
        await self._patch(raw_output=raw)
        return finished


def _cancelled_status(turn: "AgentTurn") -> "dict[str, Any] | None":
    """The `_meta` of a call that was cancelled, for a client of version 2: version 1 has the status `failed` for it."""
    if turn.session.client.version < 2:
        return None
    from antiphon.protocol.extension import KEY

    return {KEY: {"status": "cancelled"}}


def _item(content: "str | v1.ContentBlock | v1.ToolContent") -> v1.ToolContent:
    if isinstance(content, str):
        return _text(content)
    if isinstance(content, v1.ContentItem | v1.Diff | v1.TerminalItem | v1.Unknown):
        return content
    return v1.ContentItem(content)


def _text(text: str) -> v1.ContentItem:
    return v1.ContentItem(v1.TextBlock(text))


def _reason(error: Exception) -> str:
    """The text of an error that may be shown: of ours and of the system's. Others may contain anything, so only their type is shown."""
    if isinstance(error, ResponseError):
        return str(error.advice)
    return str(error) if isinstance(error, AcpError | OSError) and str(error) else type(error).__name__
