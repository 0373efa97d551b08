"""Random settings as people write them: JSON with comments, trailing commas and any blanks, and what it says."""

import json
from typing import Any

from hypothesis import strategies as st

GROUP, NAME = "agent_servers", "Antiphon"
ENTRY = {"type": "custom", "command": "/opt/a b/antiphon", "args": ["agent"], "env": {}}

_BLANKS = (" ", "\n", "\t", "\r\n", '// see {"x": [1,\n', "//\n", '/* } , " */', "/**/", "/* a\n b */")
_KEYS = ("a", "b", 'say "é"', "theme", "\\", "https://x", GROUP, NAME)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A text, and the object that it says. It may have our group, and our entry in there."""
    data = draw(st.dictionaries(st.sampled_from(_KEYS), _values(), max_size=4))
    if GROUP in data or draw(st.booleans()):
        data[GROUP] = draw(st.dictionaries(st.sampled_from(_KEYS), _values(), max_size=3))
    text = draw(st.sampled_from(("", "\ufeff"))) + _gap(draw) + _written(draw, data) + _gap(draw)
    return text, data


def _values() -> st.SearchStrategy[Any]:
    simple = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from((1.5, -2e9))
    return st.recursive(
        simple,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=2),
        max_leaves=4,
    )


def _gap(draw: st.DrawFn) -> str:
    blanks: list[str] = draw(st.lists(st.sampled_from(_BLANKS), max_size=2))
    return "".join(blanks)


def _written(draw: st.DrawFn, data: Any) -> str:
    if isinstance(data, dict):
        items = [
            f"{json.dumps(key)}{_gap(draw)}:{_gap(draw)}{_written(draw, item)}{_gap(draw)}"
            for key, item in data.items()
        ]
        return _joined(draw, "{", items, "}")
    if isinstance(data, list):
        return _joined(draw, "[", [f"{_written(draw, item)}{_gap(draw)}" for item in data], "]")
    return json.dumps(data, ensure_ascii=draw(st.booleans()))


def _joined(draw: st.DrawFn, opening: str, items: list[str], closing: str) -> str:
    inner = "".join(f"{',' if place else ''}{_gap(draw)}{item}" for place, item in enumerate(items))
    more: bool = draw(st.booleans())
    trailing = "," if items and more else ""
    return f"{opening}{inner}{trailing}{_gap(draw)}{closing}"
