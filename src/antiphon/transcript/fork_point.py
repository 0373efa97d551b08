"""Where a fork of a session is cut: before one of its prompts. Pure.

`session/fork` copies a whole session. A client of ours may have the fork end earlier: it sends the texts of the prompts that are to be
left out, in their order, in the `_meta` of the request. Texts, because every store of sessions has them, also those of CLIs, while ids
differ in each. An agent that can do this has a mark in the capability.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from antiphon.errors import Code, RequestError
from antiphon.protocol.v1.content import TextBlock

if TYPE_CHECKING:
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.v1.content import ContentBlock

__all__ = ["CUTS_FORKS", "cut_point", "dropped_prompts", "fork_meta", "no_cut", "text_in"]

CUTS_FORKS: "Final[Mapping[str, object]]" = {"antiphon": {"dropped": True}}
"""The `_meta` of the capability `fork` of an agent that can end a fork earlier."""

CLIPPED: Final = 64
"""Characters that two texts share at least, if one of them is taken for the clipped form of the other."""


def fork_meta(dropped: Sequence[str]) -> "JsonObject":
    """The `_meta` of a request for a fork without these prompts, and without what followed them."""
    return {"antiphon": {"dropped": list(dropped)}}


def dropped_prompts(meta: Mapping[str, object] | None) -> list[str]:
    """The prompts that a fork is to leave out, as its request names them."""
    ours = (meta or {}).get("antiphon")
    found = ours.get("dropped") if isinstance(ours, dict) else None
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def text_in(prompt: "Iterable[ContentBlock]") -> str:
    """The text of a prompt, by which it is found again."""
    return "".join(block.text for block in prompt if isinstance(block, TextBlock))


def cut_point(prompts: Sequence[str], dropped: Sequence[str]) -> int | None:
    """The number of the first prompt to leave out; None: it is not certain which one.

    They are compared from the end. A prompt of the session that is not among those to leave out was given otherwise, and one to leave out
    that the session does not have never arrived there; but the first one has to be found.
    """
    place = len(prompts)
    for number, text in reversed([*enumerate(dropped)]):
        found = next((here for here in range(place - 1, -1, -1) if _alike(prompts[here], text)), None)
        if found is None and number == 0:
            return None
        place = place if found is None else found
    return place if dropped else None


def _alike(one: str, other: str) -> bool:
    """Whether two texts are the same prompt. White space is stored in different ways, and long texts are clipped by some."""
    one, other = "".join(one.split()), "".join(other.split())
    if one == other:
        return True
    return min(len(one), len(other)) >= CLIPPED and (one.startswith(other) or other.startswith(one))


def no_cut() -> RequestError:
    """The error of an agent that does not find the prompt in the session."""
    return RequestError(Code.INVALID_PARAMS, "Invalid params", "the session has no such prompt to end its fork before")
