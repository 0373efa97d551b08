"""What a permission request shows of a call: the command or the diff, and the reason."""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.calls import CallDescription, CodexCall, CodexCalls
from antiphon.engines.codex.translate.commands import command_line, kind_of_command, places_of_command, shell_line
from antiphon.engines.codex.translate.file_changes import show_changes
from antiphon.engines.codex.translate.tools import json_text, mcp_name
from antiphon.engines.labels import one_line, prose, shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET
from antiphon.text import exact, fenced

__all__ = ["Approvals"]

_OLD_TYPES: Final = {"list_files": "listFiles"}
_QUOTED: Final = re.compile(r'[^"]*"([^"]+)"[^"]*')
"""Exactly one name in quotes."""


class Approvals:
    """Permission requests about the calls of one thread."""

    def __init__(self, calls: CodexCalls, cwd: str, read: Callable[[str], str | None] | None) -> None:
        self._calls = calls
        self._cwd = cwd
        self._read = read

    def patch_of(self, params: wire.Request | wire.UnreadParams) -> v1.ToolCallPatch | None:
        """Return the call as the permission request shows it, which waits from now on; None if no known call is meant."""
        match params:
            case wire.CommandApproval():
                id, description = params.item_id, self._command(params)
            case wire.FileApproval() if (call := self._calls.get(params.item_id)) is not None:
                content = _reasoned(params.reason, call.description.content)
                id, description = call.id, msgspec.structs.replace(call.description, content=content)
            case wire.ExecApproval():
                id, description = params.call_id, self._old_command(params)
            case wire.ApplyPatchApproval():
                id, description = params.call_id, self._old_changes(params)
            case wire.McpElicitation() if (call := self._tool(params)) is not None:
                id, description = call.id, _show_tool(call, params)
            case _:
                return None
        self._calls.ask(id)
        return v1.ToolCallPatch(
            tool_call_id=id,
            title=description.title,
            kind=description.kind,
            status=v1.ToolStatus.PENDING,
            name=description.name if description.name else UNSET,
            content=description.content,
            locations=description.locations,
            raw_input=description.raw_input,
        )

    def _command(self, params: wire.CommandApproval) -> CallDescription:
        call = self._calls.get(params.item_id)
        actions = params.command_actions or []
        if params.command:
            description = _show_command(command_line(params.command), actions, params.cwd or self._cwd, params.reason)
        elif call is not None:
            line = call.description.raw_input.get("command", "") if isinstance(call.description.raw_input, dict) else ""
            content = _reasoned(params.reason, [shown_text(fenced(exact(line), "sh"))] if line else [])
            description = msgspec.structs.replace(call.description, content=content, meta=None)
        else:
            description = _show_command("", actions, params.cwd or self._cwd, params.reason)
        network = params.network_approval_context
        if network is not None and network.host:
            where = f"{network.protocol}://{network.host}" if network.protocol else network.host
            description = msgspec.structs.replace(description, title=one_line(f"Network access to {where}"))
        return description

    def _old_command(self, params: wire.ExecApproval) -> CallDescription:
        actions = [
            wire.CommandAction(type=_OLD_TYPES.get(part.type, part.type), command=part.cmd, path=part.path)
            for part in params.parsed_cmd
        ]
        return _show_command(shell_line(params.command), actions, params.cwd or self._cwd, params.reason)

    def _old_changes(self, params: wire.ApplyPatchApproval) -> CallDescription:
        changes = [
            wire.FileUpdate(
                path=path,
                kind=wire.UpdateKind(type=change.type, move_path=change.move_path),
                diff=change.unified_diff if change.type == "update" else change.content,
            )
            for path, change in params.file_changes.items()
        ]
        description = show_changes(changes, self._cwd, self._read or _nothing)
        return msgspec.structs.replace(description, content=_reasoned(params.reason, description.content))

    def _tool(self, params: wire.McpElicitation) -> CodexCall | None:
        """Return the call that a request for a tool is about. The request has no id of it, but the server, the tool and the arguments.

        A call of another tool is never returned: clients decide by the name, and would allow the one for the other.
        """
        named = _QUOTED.fullmatch(params.message)
        if named is None or not params.is_for_tool:
            return None
        name, arguments = mcp_name(params.server_name, named[1]), (params.meta or {}).get("tool_params")
        matches = [
            call
            for call in reversed(self._calls.all_open())
            if call.description.name == name and (call.description.raw_input or {}) == (arguments or {})
        ]
        if len({call.description.title for call in matches}) != 1:  # `a__b` of one server may be `b` of another
            return None
        return next((call for call in matches if not call.asked), matches[0])


def _show_command(line: str, actions: list[wire.CommandAction], cwd: str, reason: str | None) -> CallDescription:
    return CallDescription(
        title=one_line(line) or "Run a command",
        kind=kind_of_command(actions),
        name="Bash",
        raw_input={"command": line, "cwd": cwd},
        locations=places_of_command(actions, cwd),
        content=_reasoned(reason, [shown_text(fenced(exact(line), "sh"))] if line else []),
    )


def _reasoned(reason: str | None, content: list[v1.ToolContent]) -> list[v1.ToolContent]:
    return [shown_text(prose(reason)), *content] if reason and reason.strip() else content


def _show_tool(call: CodexCall, params: wire.McpElicitation) -> CallDescription:
    described, arguments = ((params.meta or {}).get(name) for name in ("tool_description", "tool_params"))
    content: list[v1.ToolContent] = [shown_text(fenced(exact(json_text(arguments)), "json"))] if arguments else []
    return msgspec.structs.replace(
        call.description, content=_reasoned(described if isinstance(described, str) else None, content)
    )


def _nothing(_: str) -> None:
    """Read no file."""
