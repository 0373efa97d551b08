"""The numbers of events are for the link alone, where its client did not ask for them: the client gets what the agent sent."""

import re
from typing import Final

from antiphon.rpc.spans import UNREADABLE, Span, last_params, members_of, replaced, values_of, with_value

__all__ = ["with_own_numbers", "without_numbers"]

_KEY: Final = "antiphon"
_ADDED: Final = frozenset(
    {"action", "after", "agent", "always", "cwd", "number", "policy", "request", "scopes", "time"}
)
"""What the gateway puts there, in the `_meta` of params and results, for a client with numbers."""


_LAST: Final = re.compile(rb',"_meta":\{"antiphon":\{"number":\d+(?:,"time":\d+\.\d+)?\}\}\}\}')
LAST_SIZE: Final = 120
"""Bytes at the end of an update in which the gateway's own `_meta` is looked for, as it writes that where there is no other."""


def without_numbers(line: bytes) -> bytes:
    """Return a message without what the gateway added to its `_meta`. One that has something else there stays as it is."""
    if b'"antiphon":{' not in line:
        return line
    try:
        found = _LAST.search(line, max(0, len(line) - LAST_SIZE))
        is_only = found is not None and found.end() == len(line) and line.find(b'"_meta"') == found.start() + 1
        if found is not None and is_only and last_params(line) is not None:
            return line[: found.start()] + b"}}"
        for outer in (*values_of(line, "params"), *values_of(line, "result")):
            for meta in _objects(line, outer, "_meta"):
                members = dict(members_of(line, meta))
                for ours in _objects(line, meta, _KEY):
                    if {key for key, _ in members_of(line, ours)} <= _ADDED:
                        return _without(line, meta, "_meta") if len(members) == 1 else _without(line, ours, _KEY)
    except UNREADABLE:
        pass  # what cannot be read is for the client to judge
    return line


def with_own_numbers(outcome: bytes, wanted: bool) -> bytes:
    """Return the outcome of `initialize` for a client: whether it has numbers itself."""
    line = b"{%b}" % outcome
    if wanted or b'"numbers":' not in line:
        return outcome
    try:
        return with_value(line, ("result", "_meta", _KEY, "numbers"), b"false")[1:-1]
    except UNREADABLE:
        return outcome


def _objects(line: bytes, within: Span, name: str) -> list[Span]:
    if line[within[0] : within[0] + 1] != b"{":
        return []
    return [span for key, span in members_of(line, within) if key == name and line[span[0] : span[0] + 1] == b"{"]


def _without(line: bytes, span: Span, name: str) -> bytes:
    """Return the line without a member and one of the commas beside it. The gateway writes no space around its own."""
    begin, end = span
    head = b'"%b":' % name.encode()
    begin -= len(head)
    if line[begin : span[0]] != head:
        return line
    if line[begin - 1 : begin] == b",":
        begin -= 1
    elif line[end : end + 1] == b",":
        end += 1
    return replaced(line, [((begin, end), b"")])
