"""What is told of a session on its way to the client: settings are noted, calls that are open are remembered.

A call may show a terminal of this machine, where the client has none. It could not show it, so it gets what the command printed.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from msgspec import structs

from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.acp.answering import Answering

__all__ = ["Showing"]

_OVER: Final = (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED)


class Showing:
    """Tells one session's client."""

    def __init__(self, session: "AgentSession") -> None:
        self.silent = False
        """Whether a history is being told that the client does not want to hear."""
        self.answering: Answering
        """Knows the terminals. Set by whoever makes both."""
        self._session = session
        self._open_calls: dict[str, None] = {}
        self._content: dict[str, list[v1.ToolContent]] = {}
        """What calls show that have a terminal of this machine among it."""

    def tell(self, update: v1.Update) -> Awaitable[None] | None:
        """Tell it. Await what it returns."""
        match update:
            case v1.ToolCall() | v1.ToolCallUpdate():
                return None if self.silent else self._tell_call(update)
            case v1.CurrentModeUpdate() | v1.ConfigOptionUpdate() | v1.CurrentModelUpdate():
                self._note(update)
            case _ if self.silent and not isinstance(update, v1.StateUpdate | v1.Unknown):
                return None
            case _:
                pass
        return self._session.update(update)

    def _note(self, update: v1.CurrentModeUpdate | v1.ConfigOptionUpdate | v1.CurrentModelUpdate) -> None:
        """Not by the verbs of the session: the agent says itself what changes with it."""
        settings = self._session.settings
        match update:
            case v1.ConfigOptionUpdate():
                settings.options = list(update.config_options)
            case v1.CurrentModeUpdate() if settings.modes is not None:
                settings.modes = structs.replace(settings.modes, current_mode_id=update.current_mode_id)
            case v1.CurrentModelUpdate() if settings.models is not None:
                settings.models = structs.replace(settings.models, current_model_id=update.current_model_id)
            case _:
                pass

    async def _tell_call(self, update: v1.ToolCall | v1.ToolCallUpdate) -> None:
        id = update.tool_call_id
        if update.status in _OVER:
            self._open_calls.pop(id, None)
        elif isinstance(update, v1.ToolCall) or id in self._open_calls:
            self._open_calls[id] = None
        content = update.content
        if isinstance(content, list):
            self._content.pop(id, None)
            if any(self._is_here(item) for item in content):
                self._content[id] = content
                update = structs.replace(update, content=await self._shown(content))
        await self._session.update(update)

    def _is_here(self, item: v1.ToolContent) -> bool:
        return isinstance(item, v1.TerminalItem) and self.answering.is_here(item.terminal_id)

    async def _shown(self, content: list[v1.ToolContent]) -> list[v1.ToolContent]:
        shown: list[v1.ToolContent] = []
        for item in content:
            if isinstance(item, v1.TerminalItem) and self.answering.is_here(item.terminal_id):
                shown += _as_text(await self.answering.output_of(item.terminal_id))
            else:
                shown.append(item)
        return shown

    async def released(self, terminal_id: str, output: str) -> None:
        """A terminal of this machine is about to go: the calls that show it keep what was printed there."""
        for id, content in list(self._content.items()):
            if any(isinstance(item, v1.TerminalItem) and item.terminal_id == terminal_id for item in content):
                kept: list[v1.ToolContent] = []
                for item in content:
                    mine = isinstance(item, v1.TerminalItem) and item.terminal_id == terminal_id
                    kept += _as_text(output) if mine else [item]
                self._content[id] = kept
                await self._session.update(v1.ToolCallUpdate(id, content=await self._shown(kept)))

    async def agent_gone(self) -> None:
        """Calls that are open will never end by themselves."""
        calls, self._open_calls = self._open_calls, {}
        self._content.clear()
        for id in calls:
            if not self._session.closed:
                await self._session.update(v1.ToolCallUpdate(id, status=v1.ToolStatus.FAILED))


def _as_text(output: str) -> list[v1.ToolContent]:
    return [v1.ContentItem(v1.TextBlock(output))] if output else []
