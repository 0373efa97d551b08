"""A client of the gateway that knows the OpenCode-derived page of ACP and nothing else: its words are understood, and it gets the page's own fields.

The sign of such a client is in its `initialize`: `clientCapabilities` has `prompt`, or `mcp` with `transport`. The schema has neither.

1. What it sends is turned into the schema's words before it is handled or forwarded: `content` of a prompt, MCP servers, decisions.
2. What it gets has the page's fields beside the schema's: `contentChunk`, `toolCall`, `plan` and `currentModeId` in updates,
   `permissionId`, `title`, `kind`, `toolCallId` and `content` in permission requests. Only messages of the agent become a
   `contentChunk`: the page has no word for who says something, and would show a thought or the user's own words as the answer.
3. Where the page has another form under the same name, the result has the page's: `authMethods` and `modes` are lists.
"""

from typing import Final

import msgspec
from msgspec import Raw, UnsetType

from antiphon.gateway.events import with_id, written_id
from antiphon.protocol.dialects import Fields, fields_of, forget_parts, items_of, packed, text_of
from antiphon.protocol.v1.dialects import DIALECTS
from antiphon.protocol.v1.dialects.session import with_flat_modes
from antiphon.rpc.envelope import BAD_INPUT, Request, RequestId, Response, decode
from antiphon.rpc.peer import id_key
from antiphon.rpc.spans import UNREADABLE, replaced, values_of, with_value

__all__ = ["OpenCodeDialect"]

_PERMISSION: Final = "session/request_permission"
_OPENING: Final = ("session/new", "session/load", "session/resume")
_PERMISSION_KINDS: Final = ("edit", "execute", "delete")
"""The kinds of the page for what is asked; all else is `other`."""

_FALLBACK: Final = {"allow_always": "allow_once", "reject_once": "reject_always"}
"""What a decision becomes where the agent offers no option of its kind: never more than was decided."""

_ERRORS: Final = (*UNREADABLE, ValueError)


class _Mcp(msgspec.Struct):
    transport: Raw | UnsetType = msgspec.UNSET


class _Capabilities(msgspec.Struct):
    prompt: Raw | UnsetType = msgspec.UNSET
    mcp: _Mcp | None = None


class _Params(msgspec.Struct, rename={"capabilities": "clientCapabilities"}):
    capabilities: _Capabilities | None = None


class OpenCodeDialect:
    """What has to be remembered of one client that speaks it."""

    def __init__(self) -> None:
        self._questions: dict[object, tuple[str, bytes]] = {}
        """Requests of the client without a response: the method, and the params as it sent them."""
        self._options: dict[int, list[Fields]] = {}
        """The options of each permission request that it was sent."""
        self._parts: dict[str, tuple[str, int]] = {}
        """The message of the agent that is being sent in each session, and the place of its last piece."""

    @staticmethod
    def is_spoken(params: bytes) -> bool:
        """Whether the params of `initialize` are those of the page."""
        try:
            found = msgspec.json.decode(params, type=_Params).capabilities
        except BAD_INPUT:
            return False
        if found is None:
            return False
        transport = msgspec.UNSET if found.mcp is None else found.mcp.transport
        return any(not isinstance(each, UnsetType) and bytes(each)[:1] == b"{" for each in (found.prompt, transport))

    # What arrives.

    def received(self, message: object, line: bytes) -> tuple[object, bytes]:
        """Return a message of the client in the schema's words, and its bytes."""
        if isinstance(message, Request):
            self._questions[id_key(message.id)] = message.method, bytes(message.params)
            params, rules, _ = DIALECTS.repair(message.method, "params", bytes(message.params))
            if rules:
                line = replaced(line, [(span, params) for span in values_of(line, "params")])
                return decode(line), line
        elif isinstance(message, Response) and type(message.id) is int:
            options = self._options.pop(message.id, None)
            if options is not None and message.result is not None:
                line = with_id(_with_result(line, _outcome(bytes(message.result), options)), written_id(message.id))
                return decode(line), line
        return message, line

    # What leaves.

    def sent(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType, number: int) -> bytes:
        """Return a frame for the client with the page's own fields. One that cannot be read is returned as it is."""
        try:
            if not isinstance(answers, UnsetType):
                return self._response(frame, answers)
            fields = fields_of(frame) or {}
            method, params = text_of(fields.get("method")), fields_of(fields.get("params"))
            if params is None:
                return frame
            if method == "session/update":
                extra = self._update(fields_of(params.get("update")) or {}, session_id or "", number)
            elif method == _PERMISSION and "id" in fields:
                extra = self._permission(fields["id"], params)
            else:
                return frame
            for name, value in extra.items():
                if name not in params:
                    frame = with_value(frame, ("params", name), bytes(packed(value)))
        except _ERRORS:
            return frame
        finally:
            forget_parts()
        return frame

    def _response(self, frame: bytes, id: RequestId) -> bytes:
        method, question = self._questions.pop(id_key(id), ("", b""))
        if method == "session/prompt":
            self._parts.pop(text_of((fields_of(question) or {}).get("sessionId")) or "", None)
        result = (fields_of(frame) or {}).get("result")
        if result is None:
            return frame
        answer = bytes(result)
        if method in _OPENING:
            answer = with_flat_modes(fields_of(question) or {}, answer)
        else:
            _, _, reply = DIALECTS.repair(method, "params", question)
            answer = answer if reply is None else reply(answer)
        return frame if answer == bytes(result) else _with_result(frame, answer)

    def _update(self, update: Fields, session_id: str, number: int) -> dict[str, object]:
        kind = text_of(update.get("sessionUpdate"))
        if kind == "agent_message_chunk":
            return self._chunk(update, session_id, number)
        if kind in ("user_message_chunk", "agent_thought_chunk", "tool_call"):
            self._parts.pop(session_id, None)
        if kind in ("tool_call", "tool_call_update"):
            return {"toolCall": _tool_call(update)}
        if kind == "plan":
            entries = [fields_of(entry) or {} for entry in items_of(update.get("entries")) or ()]
            steps = [{"title": entry.get("content", ""), "status": entry.get("status", "pending")} for entry in entries]
            return {"plan": {"steps": steps}}
        if kind == "current_mode_update" and "currentModeId" in update:
            return {"currentModeId": update["currentModeId"]}
        return {}

    def _chunk(self, update: Fields, session_id: str, number: int) -> dict[str, object]:
        block = fields_of(update.get("content")) or {}
        if text_of(block.get("type")) != "text":
            return {}
        id, index = self._parts.get(session_id, (str(number), -1))
        named = text_of(update.get("messageId"))
        if named is not None and named != id:
            id, index = named, -1
        self._parts[session_id] = id, index + 1
        return {"contentChunk": {"id": id, "index": index + 1, "delta": block["text"]}}

    def _permission(self, id: Raw, params: Fields) -> dict[str, object]:
        call = fields_of(params.get("toolCall")) or {}
        written = bytes(id)
        if written.isdigit():
            self._options[int(written)] = [fields_of(each) or {} for each in items_of(params.get("options")) or ()]
        kind = text_of(call.get("kind"))
        shown = _tool_call(call)
        found: dict[str, object] = {
            "permissionId": written.decode(),
            "title": call.get("title", "Permission"),
            "kind": kind if kind in _PERMISSION_KINDS else "other",
        }
        return found | {name: shown[name] for name in ("toolCallId", "content") if name in shown}


def _tool_call(call: Fields) -> dict[str, object]:
    """Return a tool call as the page has it: its content is a list of blocks, its first diff a field of its own."""
    found: dict[str, object] = {
        name: call[name] for name in ("toolCallId", "title", "kind", "status", "locations") if name in call
    }
    items = [fields_of(item) or {} for item in items_of(call.get("content")) or ()]
    if "content" in call:
        found["content"] = [item["content"] for item in items if "content" in item]
    diff = next((item for item in items if text_of(item.get("type")) == "diff"), None)
    if diff is not None:
        names = {"path": "path", "oldText": "oldContent", "newText": "newContent"}
        found["diff"] = {new: diff[old] for old, new in names.items() if old in diff}
    return found


def _outcome(result: bytes, options: list[Fields]) -> bytes:
    """Return the result of a permission request: the option that a decision means. What is no decision is a rejection."""
    fixed, rules, _ = DIALECTS.repair(_PERMISSION, "result", result)
    outcome = fields_of((fields_of(fixed) or {}).get("outcome"))
    if outcome is not None and "permission by decision" not in rules:
        return fixed  # in the schema's words
    if outcome is not None and text_of(outcome.get("outcome")) == "cancelled":
        return fixed
    kind = "reject_once" if outcome is None else text_of(outcome.get("optionId")) or "reject_once"
    for wanted in (kind, _FALLBACK.get(kind)):
        for option in options:
            if wanted is not None and text_of(option.get("kind")) == wanted:
                return msgspec.json.encode({"outcome": {"outcome": "selected", "optionId": option["optionId"]}})
    return b'{"outcome":{"outcome":"cancelled"}}'


def _with_result(frame: bytes, result: bytes) -> bytes:
    return replaced(frame, [(span, result) for span in values_of(frame, "result")])
