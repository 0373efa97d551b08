"""What a question about a call shows: the command or the diff in question, and why it is asked."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.calls import Calls, Shown
from antiphon.engines.codex.translate.changes import show_changes
from antiphon.engines.codex.translate.commands import kind_of_command, places_of_command
from antiphon.engines.codex.translate.content import json_text
from antiphon.engines.codex.translate.tools import mcp_name
from antiphon.engines.codex.translate.wording import command_line, shell_line
from antiphon.engines.fences import fenced
from antiphon.engines.wording import exact, one_line, prose, sentence, shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET

__all__ = ["Approvals"]

_OLD_TYPES: Final = {"list_files": "listFiles"}


class Approvals:
    """Questions about the calls of one thread."""

    def __init__(self, calls: Calls, cwd: str, read: Callable[[str], str | None] | None) -> None:
        self._calls = calls
        self._cwd = cwd
        self._read = read

    def patch_of(self, params: wire.Request | wire.Unread) -> v1.ToolCallPatch:
        """The call as the question shows it. It waits from now on."""
        match params:
            case wire.CommandApproval():
                id, shown = params.item_id, self._command(params)
            case wire.FileApproval():
                id, shown = params.item_id, self._changes(params)
            case wire.ExecApproval():
                id, shown = params.call_id, self._old_command(params)
            case wire.ApplyPatchApproval():
                id, shown = params.call_id, self._old_changes(params)
            case wire.PermissionsApproval():
                id, shown = params.item_id, self._permissions(params)
            case wire.Elicitation():
                id, shown = self._tool(params)
            case _:
                id, shown = self._other(params)
        self._calls.asked(id)
        return v1.ToolCallPatch(
            tool_call_id=id,
            title=shown.title,
            kind=shown.kind,
            status=v1.ToolStatus.PENDING,
            name=shown.name if shown.name else UNSET,
            content=shown.content,
            locations=shown.locations,
            raw_input=shown.raw_input,
        )

    def _command(self, params: wire.CommandApproval) -> Shown:
        call = self._calls.get(params.item_id)
        actions = params.command_actions or []
        if params.command:
            asked = _show_command(command_line(params.command), actions, params.cwd or self._cwd, params.reason)
        elif call is not None:
            line = call.shown.raw_input.get("command", "") if isinstance(call.shown.raw_input, dict) else ""
            content = _reasoned(params.reason, [shown_text(fenced(exact(line), "sh"))] if line else [])
            asked = msgspec.structs.replace(call.shown, content=content, meta=None)
        else:
            asked = _show_command("", actions, params.cwd or self._cwd, params.reason)
        network = params.network_approval_context
        if network is not None and network.host:
            where = f"{network.protocol}://{network.host}" if network.protocol else network.host
            asked = msgspec.structs.replace(asked, title=one_line(f"Network access to {where}"))
        if params.additional_permissions:
            more = shown_text(
                f"It wants to do more than the sandbox allows:\n{_fenced_json(params.additional_permissions)}"
            )
            asked = msgspec.structs.replace(asked, content=[*asked.content, more])
        return asked

    def _changes(self, params: wire.FileApproval) -> Shown:
        call = self._calls.get(params.item_id)
        if call is None:
            shown = Shown(title="Change files", kind=v1.ToolKind.EDIT, name="Edit", raw_input={})
        else:
            shown = call.shown
        reason = params.reason or (
            f"Codex wants to write anywhere in {params.grant_root}" if params.grant_root else None
        )
        return msgspec.structs.replace(shown, content=_reasoned(reason, shown.content))

    def _old_command(self, params: wire.ExecApproval) -> Shown:
        actions = [
            wire.CommandAction(type=_OLD_TYPES.get(part.type, part.type), command=part.cmd, path=part.path)
            for part in params.parsed_cmd
        ]
        return _show_command(shell_line(params.command), actions, params.cwd or self._cwd, params.reason)

    def _old_changes(self, params: wire.ApplyPatchApproval) -> Shown:
        changes = [
            wire.FileUpdate(
                path=path,
                kind=wire.UpdateKind(type=change.type, move_path=change.move_path),
                diff=change.unified_diff if change.type == "update" else change.content,
            )
            for path, change in params.file_changes.items()
        ]
        shown = show_changes(changes, self._cwd, self._read or _nothing)
        return msgspec.structs.replace(shown, content=_reasoned(params.reason, shown.content))

    def _permissions(self, params: wire.PermissionsApproval) -> Shown:
        content = _reasoned(params.reason, [shown_text(_fenced_json(params.permissions))] if params.permissions else [])
        return Shown(title="Do more than the sandbox allows", raw_input=params.permissions, content=content)

    def _tool(self, params: wire.Elicitation) -> tuple[str, Shown]:
        """The question names no call: it is the open one of this server with these arguments that is not asked about yet."""
        meta = params.meta or {}
        arguments = meta.get("tool_params")
        prefix = mcp_name(params.server_name, "")
        waiting = [call for call in self._calls.all_open() if (call.shown.name or "").startswith(prefix)]
        waiting = [call for call in waiting[::-1] if call.status == v1.ToolStatus.IN_PROGRESS] or waiting
        same = [call for call in waiting if arguments is None or (call.shown.raw_input or {}) == (arguments or {})]
        found = next(iter(same or waiting), None)
        described = meta.get("tool_description")
        content = _reasoned(described if isinstance(described, str) else None, _arguments(arguments))
        if found is not None:
            return found.id, msgspec.structs.replace(found.shown, content=content)
        title = sentence(params.message) or f"Use a tool of {params.server_name}"
        return f"{params.server_name}-tool", Shown(title=title, raw_input=arguments, content=content)

    def _other(self, params: object) -> tuple[str, Shown]:
        """A call by whatever name its id has."""
        id = next((found for name in ("item_id", "call_id") if (found := getattr(params, name, None))), "question")
        call = self._calls.get(id)
        return id, call.shown if call is not None else Shown(title="Codex has a question")


def _show_command(line: str, actions: list[wire.CommandAction], cwd: str, reason: str | None) -> Shown:
    return Shown(
        title=one_line(line) or "Run a command",
        kind=kind_of_command(actions),
        name="Bash",
        raw_input={"command": line, "cwd": cwd},
        locations=places_of_command(actions, cwd),
        content=_reasoned(reason, [shown_text(fenced(exact(line), "sh"))] if line else []),
    )


def _reasoned(reason: str | None, content: list[v1.ToolContent]) -> list[v1.ToolContent]:
    return [shown_text(prose(reason)), *content] if reason and reason.strip() else content


def _arguments(arguments: Any) -> list[v1.ToolContent]:
    return [shown_text(_fenced_json(arguments))] if isinstance(arguments, Mapping) and arguments else []


def _fenced_json(value: Any) -> str:
    return fenced(exact(json_text(value)), "json")


def _nothing(_: str) -> None:
    """Nobody reads files here."""
