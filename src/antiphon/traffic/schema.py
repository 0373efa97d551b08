"""Whether a value is what the official schema says, told from the schema's facts and from nothing else.

`look` walks a value once and finds three things: faults (the schema forbids it), drafts (only the draft of the schema knows it) and
strangers (fields that no schema knows; the schema lets them pass, the specification wants them in `_meta`).
"""

from functools import cache
from typing import NamedTuple

import msgspec

from antiphon.traffic.checks import Checks, Facts, Fault, Look

__all__ = ["Fault", "Look", "Method", "definitions", "look", "methods"]


class Method(NamedTuple):
    """A method of the protocol. `side` is who answers it: agent, client, or protocol for both."""

    name: str
    side: str
    params: str
    result: str | None
    draft: bool


@cache
def _facts() -> Facts:
    from importlib.resources import files

    found: Facts = msgspec.json.decode((files("antiphon.traffic") / "facts.json").read_bytes())
    return found


@cache
def _checks() -> Checks:
    return Checks(definitions())


def definitions() -> Facts:
    """The definitions of the schema by name."""
    found: Facts = _facts()["definitions"]
    return found


@cache
def methods() -> dict[tuple[str, bool], Method]:
    """By name and by whether it is a request: one name may be both."""
    return {
        (one["name"], "result" in one): Method(
            one["name"], one["side"], one["params"], one.get("result"), one.get("unstable", False)
        )
        for one in _facts()["methods"]
    }


def look(definition: str, value: object, path: str = "") -> Look:
    """Hold a value against a definition of the schema. `path` is where the value stands, for what is found in it."""
    found = Look()
    _checks().of(definition)(value, path, found)
    return found
