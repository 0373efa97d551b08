"""The places of paths in messages: they are replaced by those of the other machine, and all other bytes stay as they were written.

Paths stand in members with these names, at any depth: `path`, `cwd`, `uri` and `additionalDirectories`. What an agent or an editor
passes on without meaning for the protocol is not looked into: texts, `rawInput`, `rawOutput`, `_meta`, MCP servers, extension methods.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.remote.paths import PathMap, is_below, path_of
from antiphon.rpc.spans import UNREADABLE, Change, Span, elements_of, members_of, replaced, values_of

__all__ = ["OPENING", "MessagePaths"]

OPENING: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
"""Requests whose directories have to be on the other machine."""

_SERVED: Final = frozenset({"fs/read_text_file", "fs/write_text_file", "terminal/create"})
"""Requests of an agent that a client carries out on its own machine."""

_PATHS: Final = frozenset({"path", "cwd"})
_OPAQUE: Final = frozenset({"rawInput", "rawOutput", "_meta", "mcpServers", "text", "blob", "data"})
_DIRECTORIES: Final = "additionalDirectories"
_KEYS: Final = (b'"path"', b'"cwd"', b'"uri"', b'"additionalDirectories"', b"\\u00")
_DEPTH: Final = 40
"""How deep paths are looked for. Those of the protocol stand at most ten levels deep."""


class MessagePaths:
    """Maps the paths in messages between an editor and a remote agent. Without `is_mapped` the user of the client can map none."""

    def __init__(self, maps: PathMap, name: str, *, is_mapped: bool = True) -> None:
        self.maps = maps
        self.roots: tuple[str, ...] = ()
        """The directories in which the server opens sessions; empty: it does not tell."""
        self._name = name
        self._is_mapped = is_mapped

    def to_remote(self, line: bytes, method: str) -> bytes:
        """Return a message of the editor with the paths of the other machine.

        Raises:
            RequestError: one has to be there and is not, or the message cannot be read.
        """
        if not self.maps or not _may_hold_path(line) or method.startswith("_"):
            return line

        def change(value: str, key: str, kind: str) -> str | None:
            found = self.maps.uri_to_remote(value) if key == "uri" else self.maps.to_remote(value)
            is_needed = (key != "uri" and method in OPENING) or (
                kind == "resource_link" and path_of(value).startswith("/")
            )
            if found is None and is_needed and not is_below(path_of(value), self.roots):
                raise self.refusal(value)
            return found

        return _changed(line, change)

    def to_local(self, line: bytes, method: str) -> bytes:
        """Return a message of the agent, a result of a method included, with the paths of this machine.

        Raises:
            RequestError: the agent wants something done at a path that is not mapped, or the message cannot be read.
        """
        if not self.maps or not _may_hold_path(line) or method.startswith("_"):
            return line

        def change(value: str, key: str, kind: str) -> str | None:
            found = self.maps.uri_to_local(value) if key == "uri" else self.maps.to_local(value)
            if found is None and method in _SERVED:
                raise RequestError(
                    Code.INVALID_PARAMS,
                    f"`{value}` is in no directory that the client has",
                    hint="it has " + _listed([remote for _, remote in self.maps.pairs]),
                )
            return found

        return _changed(line, change)

    def refusal(self, path: str) -> RequestError:
        """Return the error for a directory that is not on the other machine, with those that are."""
        roots = self.roots or tuple(remote for _, remote in self.maps.pairs)
        there = f"; it has {_listed(roots)}" if roots else ""
        example = roots[0] if roots else "/path/there"
        hint = f"start `antiphon agent --connect` with `--map {path}={example}`, or open a directory that is mapped"
        return RequestError(
            Code.INVALID_PARAMS,
            f"`{path}` is not at `{self._name}`{there}",
            hint=hint if self._is_mapped else f"name a directory of that machine, as in `--cwd {example}`",
        )

    def is_outside(self, path: str) -> bool:
        """Whether a directory, in the paths of the editor, is in none of the roots that the server has."""
        there = self.maps.to_remote(path) or path
        return bool(self.roots) and not is_below(there, self.roots)


def _listed(directories: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in directories)


def _may_hold_path(line: bytes) -> bool:
    return any(key in line for key in _KEYS)


_ChangePath = Callable[[str, str, str], str | None]


def _changed(line: bytes, change: _ChangePath) -> bytes:
    try:
        found = list(_changes(line, change))
    except UNREADABLE as error:
        raise RequestError(Code.INVALID_REQUEST, f"the paths in the message cannot be read: {error}") from error
    return replaced(line, found) if found else line


def _changes(line: bytes, change: _ChangePath) -> Iterator[Change]:
    for name in ("params", "result"):
        for span in values_of(line, name):
            yield from _value(line, span, name, "", change, _DEPTH)


def _value(line: bytes, span: Span, key: str, kind: str, change: _ChangePath, depth: int) -> Iterator[Change]:
    """The paths at one place of a message. `key` is the member that it is the value of, `kind` the type of the object around it."""
    first = line[span[0] : span[0] + 1]
    if first == b'"':
        if key in _PATHS or key in ("uri", _DIRECTORIES):
            found = change(msgspec.json.decode(line[slice(*span)], type=str), key, kind)
            if found is not None:
                yield span, msgspec.json.encode(found)
        return
    if first not in (b"{", b"[") or not depth:
        return
    if key != _DIRECTORIES and not _may_hold_path(line[slice(*span)]):
        return
    if first == b"[":
        for element in elements_of(line, span):
            yield from _value(line, element, key if key == _DIRECTORIES else "", kind, change, depth - 1)
        return
    members = list(members_of(line, span))
    kind = next((line[slice(*at)].strip(b'"').decode() for name, at in members if name == "type"), "")
    for name, at in members:
        if name not in _OPAQUE:
            yield from _value(line, at, name, kind, change, depth - 1)
