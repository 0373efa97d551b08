"""May the agent do more than its sandbox allows, in this turn or in all of the session? What is granted is what was shown."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.telling import as_json, explained
from antiphon.engines.questions import Body, pick_alone, text
from antiphon.protocol import v1
from antiphon.text import exact

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["NOTHING", "ask_for_permissions", "described"]

NOTHING: Final[Body] = {"permissions": {}, "scope": "turn"}

_Kind = v1.PermissionOptionKind
_TURN: Final = v1.PermissionOption("allow_turn", "Allow in this turn", _Kind.ALLOW_ONCE)
_SESSION: Final = v1.PermissionOption("allow_session", "Allow in this session", _Kind.ALLOW_ALWAYS)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)

_ACCESS: Final = {"read": "Read", "write": "Read and write", "deny": "Keep out of"}
_PLACES: Final = {
    "root": "all files of this machine",
    "minimal": "the files that programs need to run",
    "project_roots": "the project",
    "tmpdir": "the directory for temporary files",
    "slash_tmp": "`/tmp`",
}


async def ask_for_permissions(asked: wire.PermissionsApproval, stage: "Asking", call: v1.ToolCallPatch | None) -> Body:
    """Ask for all of it at once. The server has no item for this, so the question is a call of its own."""
    wanted = described(asked.permissions)
    if not wanted:
        return dict(NOTHING)
    base = v1.ToolCallPatch(
        asked.item_id,
        title="Do more than the sandbox allows",
        kind=v1.ToolKind.OTHER,
        content=[text("\n".join(f"- {each}" for each in wanted))],
        raw_input={"permissions": asked.permissions},
    )
    chosen = await pick_alone(stage, explained(base, [asked.reason]), [_TURN, _SESSION, _REJECT])
    if chosen is _TURN:
        return {"permissions": asked.permissions, "scope": "turn"}
    if chosen is _SESSION:
        return {"permissions": asked.permissions, "scope": "session"}
    return dict(NOTHING)


def described(permissions: Mapping[str, Any]) -> list[str]:
    """Each thing that is asked for, in a line. What there are no words for is shown as it is."""
    found, rest = list[str](), dict[str, Any]()
    for name, value in permissions.items():
        if value is None or value == {}:
            continue
        if name == "network" and isinstance(value, dict) and set(value) == {"enabled"}:
            found.extend(["Use the network"] if value["enabled"] else [])
        elif name == "fileSystem" and isinstance(value, dict):
            found.extend(_files(value))
        else:
            rest[name] = value
    return [*found, *([_as_it_is(rest)] if rest else [])]


def _files(wanted: Mapping[str, Any]) -> Iterator[str]:
    lines = list[str]()
    for name in ("read", "write"):  # the older form, which newer servers send along
        lines.extend(_line(name, f"`{exact(path)}`") for path in wanted.get(name) or () if isinstance(path, str))
    for entry in wanted.get("entries") or ():
        lines.append(_entry(entry))
    yield from dict.fromkeys(lines)
    known = ("read", "write", "entries", "globScanMaxDepth")
    rest = {name: value for name, value in wanted.items() if name not in known and value is not None}
    if rest:
        yield _as_it_is(rest)


def _entry(entry: Any) -> str:
    access, path = (entry.get("access"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if access not in _ACCESS or not isinstance(path, dict):
        return _as_it_is(entry)
    match path:
        case {"type": "path", "path": str(name)}:
            return _line(access, f"`{exact(name)}`")
        case {"type": "glob_pattern", "pattern": str(pattern)}:
            return _line(access, f"`{exact(pattern)}`")
        case {"type": "special", "value": {"kind": str(kind), **more}} if kind in _PLACES:
            inside = more.get("subpath")
            return _line(access, f"`{inside}` in {_PLACES[kind]}" if inside else _PLACES[kind])
        case _:
            return _as_it_is(entry)


def _line(access: str, what: str) -> str:
    return f"{_ACCESS[access]} {what}"


def _as_it_is(value: Any) -> str:
    return "\n" + as_json(value)
