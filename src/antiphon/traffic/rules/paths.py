"""Paths are absolute, and lines are counted from 1."""

import re
from collections.abc import Iterable, Iterator

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Direction, Entry, JsonObject, as_object, objects_in, shown
from antiphon.traffic.rules.capabilities import OPENING
from antiphon.traffic.state import TrafficState

ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\|<")
"""Absolute paths of POSIX and Windows, shares; and a name in angle brackets, which is what recordings have where a path was blacked out."""
TOOL_UPDATES = ("update tool_call", "update tool_call_update", "session/request_permission")


@rule(
    "path.absolute",
    Side.BOTH,
    Level.MUST,
    "Every path is absolute.",
    link="overview#argument-requirements",
    fix="Resolve paths against the working directory of the session before they are sent.",
    on=[
        *OPENING,
        "session/list",
        "answer session/list",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        *TOOL_UPDATES,
    ],
)
def absolute(entry: Entry, state: TrafficState) -> list[str] | None:
    return not_absolute(_paths(entry))


def not_absolute(paths: Iterable[tuple[str, object]]) -> list[str] | None:
    """Return a sentence for each path that is not absolute; None if there is no path. Each comes with its place."""
    found = [(where, path) for where, path in paths if isinstance(path, str)]
    if not found:
        return None
    return [f"`{where}` is {shown(path)}, which is not absolute" for where, path in found if not ABSOLUTE.match(path)]


def _paths(entry: Entry) -> Iterator[tuple[str, object]]:
    """All paths in a line, with their places."""
    params = entry.params
    if entry.method is None:
        for at, one in enumerate(objects_in(as_object(entry.msg.get("result")).get("sessions"))):
            yield f"result.sessions[{at}].cwd", one.get("cwd")
    elif entry.dir is Direction.C2A or entry.method == "terminal/create":
        yield "params.cwd", params.get("cwd")
        more = params.get("additionalDirectories")
        for at, path in enumerate(more if isinstance(more, list) else ()):
            yield f"params.additionalDirectories[{at}]", path
    elif entry.method in ("fs/read_text_file", "fs/write_text_file"):
        yield "params.path", params.get("path")
    else:
        where, call = _call(entry)
        for at, one in enumerate(objects_in(call.get("content"))):
            if one.get("type") == "diff":
                yield f"{where}.content[{at}].path", one.get("path")
        for at, one in enumerate(objects_in(call.get("locations"))):
            yield f"{where}.locations[{at}].path", one.get("path")


def _call(entry: Entry) -> tuple[str, JsonObject]:
    name = "update" if entry.method == "session/update" else "toolCall"
    return f"params.{name}", as_object(entry.params.get(name))


@rule(
    "path.line",
    Side.AGENT,
    Level.MUST,
    "Lines of files are counted from 1.",
    link="overview#argument-requirements",
    fix="Add 1 to line numbers that are counted from 0.",
    on=["fs/read_text_file", *TOOL_UPDATES],
)
def line(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.method == "fs/read_text_file":
        found = [("params.line", entry.params.get("line"))]
    else:
        where, call = _call(entry)
        found = [
            (f"{where}.locations[{at}].line", one.get("line"))
            for at, one in enumerate(objects_in(call.get("locations")))
        ]
    lines = [(where, one) for where, one in found if isinstance(one, int) and not isinstance(one, bool)]
    return [f"`{where}` is {one}" for where, one in lines if one < 1] if lines else None
