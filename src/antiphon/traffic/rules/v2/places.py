"""Paths are absolute, and lines are counted from 1."""

from collections.abc import Iterator

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Direction, Entry, as_object, objects_in
from antiphon.traffic.rules.paths import not_absolute
from antiphon.traffic.rules.v2.capabilities import OPENING
from antiphon.traffic.rules.v2.tools import CALLS, call_in, content_in
from antiphon.traffic.state import SECOND, TrafficState


@rule(
    "path.absolute",
    Side.BOTH,
    Level.MUST,
    "Every path is absolute.",
    link="schema#absolutepath",
    fix="Resolve paths against the working directory of the session before they are sent.",
    on=[*OPENING, "session/list", "answer session/list", "update terminal_update", *CALLS],
    versions=(SECOND,),
)
def absolute(entry: Entry, state: TrafficState) -> list[str] | None:
    return not_absolute(_paths(entry))


def _paths(entry: Entry) -> Iterator[tuple[str, object]]:
    """All paths in a line, with their places."""
    if entry.method is None:
        for at, one in enumerate(objects_in(as_object(entry.msg.get("result")).get("sessions"))):
            yield f"result.sessions[{at}].cwd", one.get("cwd")
    elif entry.dir is Direction.C2A:
        yield "params.cwd", entry.params.get("cwd")
        more = entry.params.get("additionalDirectories")
        for at, path in enumerate(more if isinstance(more, list) else ()):
            yield f"params.additionalDirectories[{at}]", path
    else:
        yield "params.update.cwd", as_object(entry.params.get("update")).get("cwd")
        yield "params.subject.cwd", as_object(entry.params.get("subject")).get("cwd")
        for one in content_in(entry):
            for change in objects_in(one.get("changes")):
                yield "changes[].path", change.get("path")
                yield "changes[].oldPath", change.get("oldPath")
        for one in objects_in(call_in(entry).get("locations")):
            yield "locations[].path", one.get("path")


@rule(
    "path.line",
    Side.AGENT,
    Level.MUST,
    "Lines of files are counted from 1.",
    link="schema#toolcalllocation",
    fix="Add 1 to line numbers that are counted from 0.",
    on=CALLS,
    versions=(SECOND,),
)
def line(entry: Entry, state: TrafficState) -> list[str] | None:
    found = [one.get("line") for one in objects_in(call_in(entry).get("locations"))]
    lines = [one for one in found if isinstance(one, int) and not isinstance(one, bool)]
    return [f"`locations[].line` is {one}" for one in lines if one < 1] if lines else None
