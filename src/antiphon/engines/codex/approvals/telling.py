"""What a question says besides what the call shows already. Pure."""

import json
from collections.abc import Iterable
from typing import Any

from antiphon.engines.questions import noted, shown, text
from antiphon.protocol import v1
from antiphon.text import exact, fenced

__all__ = ["as_json", "explained"]


def explained(call: v1.ToolCallPatch, notes: Iterable[str | None], ours: Iterable[str | None] = ()) -> v1.ToolCallPatch:
    """The call with the notes that say something new, each once. Those of ours say what is allowed, and are never cut."""
    known = [call.title or "", *_texts(call)]
    said = list[str]()
    for note in (*map(noted, notes), *ours):
        if note and not any(note in one for one in known):
            known.append(note)
            said.append(note)
    return shown(call, content=[*(call.content or []), text("\n\n".join(said))]) if said else call


def _texts(call: v1.ToolCallPatch) -> list[str]:
    items = [each.content for each in call.content or () if isinstance(each, v1.ContentItem)]
    return [item.text for item in items if isinstance(item, v1.TextBlock)]


def as_json(value: Any) -> str:
    """What there are no words for, as it is."""
    return fenced(exact(json.dumps(value, ensure_ascii=False, indent=2)), "json")
