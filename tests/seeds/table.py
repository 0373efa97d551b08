"""What the rows of the seeds' tables are, and how what came is compared with what was expected.

The seeds are five documents, called after what they describe: `notes` (an agent for two engines), `spec` (the protocol with loading and
signing in), `wire` (the same agent's wire formats, and those of its engines), `guide` (a client), `bridge` (a bridge).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["ANY", "HANG", "AgentRow", "ClientRow", "Sent", "differences", "filled"]

Json = Any


class _Any:
    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any()
"""Whatever it is, it has to be there."""


HANG: Final = "$HANG"
"""In the place of an answer: there is none before the terminal is killed."""


def differences(expected: Json, found: Json, place: str = "") -> list[str]:
    """Where what was found does not have what is expected; more is no difference. A list has its elements in any order."""
    if expected is ANY:
        return []
    if isinstance(expected, type):
        return [] if isinstance(found, expected) else [f"{place}: {found!r} is no {expected.__name__}"]
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping):
            return [f"{place}: {found!r} is no object"]
        missing = [f"{place}.{key} is missing in {found!r}" for key in expected if key not in found]
        return missing or [
            each for key, value in expected.items() for each in differences(value, found[key], f"{place}.{key}")
        ]
    if isinstance(expected, list):
        if not isinstance(found, list):
            return [f"{place}: {found!r} is no list"]
        return [
            f"{place}: nothing like {each!r} in {found!r}"
            for each in expected
            if all(differences(each, other) for other in found)
        ]
    return [] if expected == found and type(expected) is type(found) else [f"{place}: {found!r} is not {expected!r}"]


def filled(value: Json, words: Mapping[str, str]) -> Json:
    """With `$SESSION`, `$CWD` and the like in their places."""
    if isinstance(value, str):
        for word, meant in words.items():
            value = value.replace(word, meant)
        return value
    if isinstance(value, Mapping):
        return {key: filled(each, words) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, words) for each in value]
    return value


@dataclass(frozen=True)
class Sent:
    """One message of a client, and what must come of it."""

    method: str
    params: Json = None
    result: Json = ANY
    """What the answer has to have."""
    error: int | None = None
    """The code of the refusal that it has to be instead."""
    updates: Sequence[Json] = ()
    """Updates that must have come when the answer is there, or soon after."""
    id: object = None
    """The id of the request, if it matters."""
    notify: bool = False
    """Whether it is a notification: nothing answers it."""
    while_running: "Sent | None" = None
    """Sent as soon as the first of `updates` is there."""


@dataclass(frozen=True)
class AgentRow:
    """What a client of a seed's dialect says to a real agent process, and what it must receive."""

    name: str
    seed: str
    shows: Sequence[str]
    """Which entries of the inventory it is about."""
    steps: Sequence[Sent]
    agent: str = "demo"
    """`demo`, `joint` (over two agents) or `claude` and `codex` (over stand-ins for the programs)."""
    hello: Json = None
    """The params of `initialize`, if they are not the usual ones."""
    answers: Mapping[str, Json] = field(default_factory=dict)
    """What the client answers when it is asked: method → result."""
    asked: Sequence[Json] = ()
    """What it must have been asked: `{method, params}`."""
    says: Sequence[Json] = ()
    """What the stand-in says to each prompt."""
    received: Sequence[Json] = ()
    """What the stand-in must have been sent."""


@dataclass(frozen=True)
class ClientRow:
    """What an agent of a seed's dialect says to real clients, and what must come of it."""

    name: str
    seed: str
    shows: Sequence[str]
    hello: Json = None
    """The result of `initialize`, or `{"error": …}`."""
    new: Sequence[Json] = ({},)
    """What each `session/new` is answered with, besides the id; `{"error": …}` refuses it. The last one is for all that follow."""
    plays: Sequence[Json] = ()
    """What the agent sends in a turn, in order: the params of an update, or a whole request with its id."""
    ends: Sequence[Json] = ({"stopReason": "end_turn"},)
    """What each prompt is answered with; the last one is for all that follow."""
    status: int = 0
    """The exit status of `antiphon run`."""
    events: Sequence[Json] = ()
    """Lines of `antiphon run --json` that must have come."""
    updates: Sequence[Json] = ()
    """Updates that a client of the SDK must have got, in the schema's words."""
    opens: Json = None
    """How agent and session look to a client of the SDK."""
    answers: Sequence[Json] = ()
    """What the agent must have been answered, request by request."""
    says: Sequence[str] = ()
    """Words in what `run` writes to stderr."""
    words: Sequence[str] = ()
    """Options of `antiphon run`."""
    received: Mapping[str, int] = field(default_factory=dict)
    """Method → how often the agent must have been sent it by `run`; `started` counts its processes."""
