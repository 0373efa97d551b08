"""A few words for a message, and times, sizes and numbers for people. Pure; trusts nothing about a message's shape."""

from typing import Final

from antiphon.traffic.entries import JsonObject, as_object, as_text

__all__ = [
    "NOTHING",
    "about",
    "answer_label",
    "clip",
    "clock",
    "content_text",
    "counted",
    "error_text",
    "request_label",
    "seconds",
    "size",
    "update_label",
]

# --- times, sizes and numbers: the same for the terminal and the page; `report/model.js` has them too

NOTHING: Final = "\u2013"
"""Shown where a value is missing."""


def seconds(value: float | None, nothing: str = NOTHING) -> str:
    """How long: 12 ms, 1.25 s, 3 min 20 s."""
    if value is None:
        return nothing
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 99.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def about(value: float) -> str:
    """How long, roughly: for where there is little room."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.0f} h"


def clock(value: float, step: float) -> str:
    """A moment, as exact as the step between moments asks for."""
    if step < 1:
        return f"{value:.{1 if step >= 0.1 else 2 if step >= 0.01 else 3}f} s"
    whole = round(value)
    if whole < 120 and step < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size(number: int) -> str:
    """How much: 812 B, 14.2 kB, 3.1 MB."""
    if number < 1000:
        return f"{number} B"
    value, unit = number / 1e3, "kB"
    for larger in ("MB", "GB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 turn, 2 turns."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


LONGEST: Final = 160
"""Letters of a label: more than any column shows."""


def clip(text: str, limit: int = LONGEST) -> str:
    """The text on one line, and no longer than the limit."""
    short = " ".join(text[: limit * 2].split())
    return f"{short[: limit - 1]}…" if len(short) > limit or len(text) > limit * 2 else short


def content_text(content: object) -> str:
    """The words of a content block or of several; what has none is named by its type, a link by its name."""
    if isinstance(content, list):
        return " ".join(filter(None, map(content_text, content[:LONGEST])))
    block = as_object(content)
    match block.get("type"):
        case "text":
            return as_text(block.get("text")) or ""
        case "resource_link":
            return f"@{as_text(block.get('name')) or as_text(block.get('uri')) or 'link'}"
        case "content":  # a tool call wraps its blocks
            return content_text(block.get("content"))
        case str(type):
            return f"[{type}]"
        case _:
            return ""


def error_text(error: object) -> str:
    """The text of an error: its message, and the text in its data, if any."""
    found = as_object(error)
    message = as_text(found.get("message")) or "no message"
    data = found.get("data")
    more = as_text(data) or as_text(as_object(data).get("message")) or as_text(as_object(data).get("details"))
    return clip(f"{message}: {more}" if more and more not in message else message)


def request_label(method: str, params: JsonObject) -> str:
    """The label of a request, or of a notification that is not an update."""
    match method:
        case "initialize":
            info = as_object(params.get("clientInfo") or params.get("info"))
            return clip(f"{as_text(info.get('name')) or ''} version {params.get('protocolVersion')}")
        case "session/prompt":
            return clip(content_text(params.get("prompt")))
        case "session/request_permission":
            call = as_object(params.get("toolCall") or as_object(params.get("subject")).get("toolCall"))
            return clip(
                as_text(params.get("title")) or as_text(call.get("title")) or as_text(call.get("toolCallId")) or ""
            )
        case "elicitation/create":
            return clip(as_text(params.get("message")) or "")
        case "session/resume" if as_object(params.get("replayFrom")):
            return clip(f"{as_text(params.get('sessionId')) or ''} from {as_object(params['replayFrom']).get('type')}")
        case "terminal/create":
            words = params.get("args")
            return clip(" ".join([str(params.get("command")), *map(str, words if isinstance(words, list) else [])]))
        case _:
            return _named(params)


def _named(params: JsonObject) -> str:
    for name in ("path", "cwd", "modeId", "terminalId", "toolCallId", "methodId"):
        if found := as_text(params.get(name)):
            return clip(found)
    if found := as_text(params.get("configId")):
        return clip(f"{found} = {params.get('value')}")
    return clip(f"request {params['requestId']}") if "requestId" in params else ""


def update_label(update: JsonObject) -> str:
    """The label of a session update."""
    kind = update.get("sessionUpdate")
    if kind in ("tool_call", "tool_call_update"):
        status, title = as_text(update.get("status")), as_text(update.get("title")) or as_text(update.get("toolCallId"))
        return clip(": ".join(filter(None, (title, status))))
    if (content := update.get("content")) is not None and content != []:
        return clip(content_text(content))
    if kind in _UPSERTS:
        return clip(_upsert_label(update))
    match kind:
        case "plan":
            return _counted(update.get("entries"), "entry", "entries")
        case "available_commands_update":
            return _counted(update.get("availableCommands"), "command", "commands")
        case "current_mode_update":
            return clip(as_text(update.get("currentModeId")) or "")
        case "usage_update":
            return clip(f"{update.get('used')} of {update.get('size')}")
        case "state_update":
            return clip(": ".join(filter(None, (as_text(update.get("state")), as_text(update.get("stopReason"))))))
        case _:
            return clip(as_text(update.get("title")) or as_text(update.get("message")) or "")


_UPSERTS: Final = frozenset({
    "user_message", "agent_message", "agent_thought", "plan_update", "terminal_update", "terminal_output_chunk",
    "config_option_update", "compaction_update",
})  # fmt: skip


def _upsert_label(update: JsonObject) -> str:
    """The label of what version 2 keeps by an id: a message, a plan, a terminal, the options of a session."""
    if id := as_text(update.get("messageId")):
        return f"{id} cleared" if "content" in update else id
    if status := as_text(update.get("status")):
        return status
    if plan := as_object(update.get("plan")):
        entries = plan.get("entries")
        size = f" {_counted(entries, 'entry', 'entries')}" if isinstance(entries, list) else ""
        return f"{as_text(plan.get('planId')) or plan.get('type')}{size}"
    if isinstance(options := update.get("configOptions"), list):
        return ", ".join(
            f"{one.get('configId', one.get('id'))} = {one.get('currentValue')}" for one in map(as_object, options)
        )
    return _terminal_label(update)


def _terminal_label(update: JsonObject) -> str:
    if isinstance(exit := update.get("exitStatus"), dict):
        code = exit.get("exitCode")
        return as_text(exit.get("signal")) or ("exited" if code is None else f"exit code {code}")
    if command := as_text(update.get("command")):
        return command
    data = as_text(update.get("data")) or as_text(as_object(update.get("output")).get("data")) or ""
    return f"{len(data) * 3 // 4} B" if data else as_text(update.get("terminalId")) or ""


def answer_label(method: str | None, msg: JsonObject) -> str:
    """The label of a response, to a known method or to none."""
    if "error" in msg:
        error = as_object(msg["error"])
        return clip(f"error {error.get('code')}: {error_text(error)}")
    result = as_object(msg.get("result"))
    match method:
        case "initialize":
            info = as_object(result.get("agentInfo") or result.get("info"))
            return clip(f"{as_text(info.get('name')) or ''} version {result.get('protocolVersion')}")
        case "session/request_permission":
            outcome = as_object(result.get("outcome"))
            return clip(as_text(outcome.get("optionId")) or as_text(outcome.get("outcome")) or "")
        case _:
            return _result(result) if result else "null" if msg.get("result") is None else ""


def _result(result: JsonObject) -> str:
    for name in ("stopReason", "sessionId", "messageId", "action", "terminalId", "content", "output"):
        if found := as_text(result.get(name)):
            return clip(found)
    if isinstance(sessions := result.get("sessions"), list):
        return _counted(sessions, "session", "sessions")
    return ""


def _counted(items: object, one: str, many: str) -> str:
    count = len(items) if isinstance(items, list) else 0
    return f"{count} {one if count == 1 else many}"
