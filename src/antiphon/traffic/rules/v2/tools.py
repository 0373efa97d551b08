"""Tool calls and terminals are upserts by id; diffs name what changed; some of them can be cancelled one by one."""

import re
from collections.abc import Iterator

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, JsonObject, as_object, as_text, objects_in, shown
from antiphon.traffic.rules.v2.sessions import live
from antiphon.traffic.state import SECOND, TrafficState
from antiphon.traffic.state_v2 import FINAL

INVALID_PARAMS = -32602
CALLS = ["update tool_call_update", "update tool_call_content_chunk", "session/request_permission"]
CANCELS = ["tool_call/cancel", "terminal/cancel"]

_FILES = re.compile(
    r'^(?:---|\+\+\+|rename from|rename to|copy from|copy to) ("(?:[^"\\]|\\.)*"|[^\t\n]*)', re.MULTILINE
)
_HUNKS = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*(?:\n[ +\-\\].*|\n(?=\n|$))*", re.MULTILINE)


def call_in(entry: Entry) -> JsonObject:
    """The tool call that a message describes, in an update or as the subject of a permission request."""
    if entry.method == "session/request_permission":
        return as_object(as_object(entry.params.get("subject")).get("toolCall"))
    return as_object(entry.params.get("update"))


def content_in(entry: Entry) -> list[JsonObject]:
    """The content of a tool call in a message."""
    content = call_in(entry).get("content")
    return objects_in(content if isinstance(content, list) else [content])


@rule(
    "call.titled",
    Side.AGENT,
    Level.SHOULD,
    "The first report of a tool call has a title.",
    link="schema#toolcallupdate",
    fix="Send `title` with the first `tool_call_update` of a call: without it there is nothing to show.",
    on=["update tool_call_update"],
    versions=(SECOND,),
)
def titled(entry: Entry, state: TrafficState) -> list[str] | None:
    session, call = live(state, entry), call_in(entry)
    id = as_text(call.get("toolCallId"))
    if session is None or id is None or id in session.items:
        return None
    return [] if call.get("title") else [f"the tool call {shown(id)} begins without a title"]


@rule(
    "terminal.reused",
    Side.AGENT,
    Level.MUST,
    "The id of a terminal is not used for another one.",
    link="schema#terminalupdate",
    fix="Make a new `terminalId` for each command.",
    on=["update terminal_update"],
    versions=(SECOND,),
)
def reused(entry: Entry, state: TrafficState) -> list[str] | None:
    session, update = live(state, entry), as_object(entry.params.get("update"))
    id, command = as_text(update.get("terminalId")), as_text(update.get("command"))
    if session is None or id is None or session.opening is not None:
        return None
    known = session.shells.get(id)
    if known is None or not known.exited or command is None or command == known.command:
        return []
    return [f"the terminal {shown(id)} had exited and now runs {shown(command)}"]


@rule(
    "diff.changes",
    Side.AGENT,
    Level.MUST,
    "A diff lists all changes, and its patch has the same files, with absolute paths and without prefixes or the header of a commit.",
    link="schema#diffpatchformat",
    fix="Write `--- /path` and `+++ /path` without `a/` and `b/`, `/dev/null` for the missing side, and name each file in `changes`.",
    on=CALLS,
    versions=(SECOND,),
)
def changes(entry: Entry, state: TrafficState) -> list[str] | None:
    diffs = [one for one in content_in(entry) if one.get("type") == "diff"]
    return [fault for one in diffs for fault in _faults(one)] if diffs else None


def _faults(diff: JsonObject) -> Iterator[str]:
    listed = objects_in(diff.get("changes"))
    if not listed:
        yield "the diff lists no changes"
    known = {path for one in listed for path in (one.get("path"), one.get("oldPath"))}
    patch = as_object(diff.get("patch"))
    text = as_text(patch.get("text"))
    if patch.get("format") != "git_patch" or text is None:
        return
    if text.startswith(("From ", "commit ")):
        yield "the patch begins with the header of a commit"
    for path in _FILES.findall(_HUNKS.sub("", text)):
        if path != "/dev/null" and not path.startswith('"') and path not in known:
            yield f"the patch has the file {shown(path)}, which is not among the changes"


@rule(
    "cancel.offered",
    Side.CLIENT,
    Level.MUST,
    "A tool call or a terminal is cancelled by itself only while it offers `cancel`.",
    link="schema#canceltoolcallrequest",
    fix="Look at `capabilities.cancel` of the call or the terminal; cancel the whole work where it is missing.",
    on=CANCELS,
    versions=(SECOND,),
)
def cancel_offered(entry: Entry, state: TrafficState) -> list[str] | None:
    why = _uncancellable(entry, state)
    return None if why is None else [why] if why else []


@rule(
    "cancel.refused",
    Side.AGENT,
    Level.MUST,
    "The cancellation of something that is unknown, has ended or offers no `cancel` is refused with -32602.",
    link="schema#canceltoolcallrequest",
    fix="Answer with the error -32602 where there is nothing that can be cancelled.",
    on=[f"answer {method}" for method in CANCELS],
    versions=(SECOND,),
)
def cancel_refused(entry: Entry, state: TrafficState) -> list[str] | None:
    why = _uncancellable(state.request, state) if state.request is not None else None
    if not why or not state.first_time("cancel", state.request.number if state.request is not None else 0):
        return None
    code = as_object(entry.msg.get("error")).get("code")
    return [] if code == INVALID_PARAMS else [f"{why}, and the answer is not the error -32602"]


def _uncancellable(asked: Entry, state: TrafficState) -> str | None:
    """Why something cannot be cancelled; empty where it can, None where that is not known."""
    session = live(state, asked)
    if session is None:
        return None
    if asked.method == "tool_call/cancel":
        id = as_text(asked.params.get("toolCallId")) or ""
        call = session.items.get(id)
        if call is None:
            return f"there is no tool call {shown(id)}"
        return "" if call.can_cancel and call.status not in FINAL else f"the tool call {shown(id)} offers no `cancel`"
    id = as_text(asked.params.get("terminalId")) or ""
    terminal = session.shells.get(id)
    if terminal is None:
        return f"there is no terminal {shown(id)}"
    return "" if terminal.can_cancel and not terminal.exited else f"the terminal {shown(id)} offers no `cancel`"
