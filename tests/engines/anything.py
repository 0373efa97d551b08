"""Any value of a struct's type, the odd ones first: what a program could say if it were broken or hostile."""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from antiphon.protocol.base import Unknown

__all__ = ["JSON", "anything"]

NUMBERS = st.sampled_from([0, 1, -1, 3, 2**31, 2**53 + 1, 9 * 10**17, 2**64, -(2**64), 10**30, 10**400])
FLOATS = st.sampled_from([0.0, -1.0, 0.8, 1.8e9, 1.8e12, 9e17, 253_402_300_800.0, 1e308, -1e308, float("inf"), float("-inf"), float("nan")])  # fmt: skip
TEXTS = st.sampled_from([
    "", "x", "a\nb", "\x1b[31m", "\u202e\u200b\x9b", "t", "u", "completed", "success", "rejected", "allowed_warning", "text", "../..",
    "Exit code " + "9" * 5000, "You've hit your limit \u00b7 resets 3pm", "Claude AI usage limit reached|9999999999999", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00", '{"error": "x"}', "[1]", "@@ -1 +1 @@\n-a\n+b\n", f"@@ -{'9' * 5000} +1 @@\n-a\n", "Bash", "Read", "Edit", "Agent",
    "TodoWrite", "message_start", "mcp__s__t", "5" * 20_000,
])  # fmt: skip
NAMES = st.sampled_from([
    "command", "content", "file", "file_path", "originalFile", "status", "stdout", "structuredPatch", "text", "todos", "type", "oldStart",
    "newStart", "lines", "path", "offset", "limit", "startLine", "originalSize", "persistedOutputSize", "persistedOutputPath", "size", "url",
    "timedOutAfterMs", "backgroundTaskId", "exitCode", "data", "uri", "tool_use_id", "message", "error", "title", "message_id",
])  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=6,
)
UNKNOWN = st.builds(
    Unknown, st.sampled_from(["x", "web_search_tool_result"]), st.sampled_from([b'{"tool_use_id":"t"}', b'{"n":1e400}'])
)


def anything(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type."""
    origin = get_origin(kind)
    if origin is Annotated:
        return anything(get_args(kind)[0])
    if origin in (Union, UnionType):
        return st.one_of(*map(anything, get_args(kind)))
    if origin is Literal:
        return st.sampled_from(get_args(kind))
    if origin is list:
        return st.lists(st.deferred(lambda: anything(get_args(kind)[0])), max_size=2)
    if origin is dict:
        return st.dictionaries(NAMES, st.deferred(lambda: anything(get_args(kind)[1])), max_size=3)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    return _PLAIN.get(kind, JSON)


_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS, int: NUMBERS, float: FLOATS, bool: st.booleans(), NoneType: st.none(), Unknown: UNKNOWN,
}  # fmt: skip


_LIKELY = {
    "status": ("rejected", "allowed_warning", "completed", "failed", "compacting", "inProgress"),
    "result": ("You've hit your limit", "Claude AI usage limit reached|9999999999999", "x"),
    "name": ("Bash", "Read", "Edit", "Write", "Agent", "TodoWrite", "WebFetch", "x"),
    "id": ("t", "u"), "item_id": ("t", "u"), "tool_use_id": ("t", "u"), "parent_tool_use_id": ("t",), "task_id": ("t",),
    "command": ("ls", "/bin/bash -lc ls", "'"), "subtype": ("success", "error_x"),
}  # fmt: skip
"""Words that lead somewhere, where a field has only a few of them."""


def _likely(name: str, kind: Any) -> st.SearchStrategy[Any]:
    words = _LIKELY.get(name)
    return (
        st.sampled_from(words) | anything(kind)
        if words is not None and str in (kind, *get_args(kind))
        else anything(kind)
    )


@cache
def _struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind, include_extras=True)
    values = {name: _likely(name, hint) for name, hint in hints.items()}
    needed = {field.name: values[field.name] for field in msgspec.structs.fields(kind) if field.required}
    others = {field.name: values[field.name] for field in msgspec.structs.fields(kind) if not field.required}
    return st.fixed_dictionaries(needed, optional=others).map(lambda fields: kind(**fields))
