"""What a client of the gateway offers and asks for, as its `initialize` says: what it can show, what it serves, the form of its events."""

import msgspec
from msgspec import Raw

from antiphon.gateway.events import asks_for_merged
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.opt_in import unwanted_updates

__all__ = ["ClientOffer", "read_offer"]


class ClientOffer(msgspec.Struct, frozen=True):
    """What one client can do, and what it asked for. Every one can show messages and permission requests."""

    numbers: bool = False
    """Whether it asked for the numbers of events."""
    merged: bool = False
    """Whether it asked for history with the pieces of a message merged."""
    booleans: bool = False
    """Whether it shows options that are switches."""
    unwanted: frozenset[str] = frozenset()
    """The kinds of update that it does not get. One with numbers gets all: each number is a message there."""
    forms: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()

    def serves(self, method: str) -> bool:
        """Whether it offers to serve files or terminals in this way."""
        return method in self.served

    def shows(self, form: str) -> bool:
        """Whether it can ask a person in this form: `form` or `url`; empty for what every client can."""
        return not form or form in self.forms


def read_offer(params: Raw) -> ClientOffer:
    """Read what a client offers from the params of its `initialize`.

    Raises:
        msgspec.DecodeError: they cannot be read.
    """
    initialize = msgspec.json.decode(params, type=_Initialize)
    abilities = initialize.abilities or _Abilities()
    elicits = abilities.elicitation or _Elicits()
    options = abilities.session.config_options if abilities.session is not None else None
    numbers = initialize.meta is not None and initialize.meta.antiphon.numbers
    return ClientOffer(
        numbers=numbers,
        merged=asks_for_merged(params) is True,
        booleans=options is not None and options.boolean is not None,
        unwanted=frozenset() if numbers else unwanted_updates(params),
        forms=frozenset(form for form in ("form", "url") if getattr(elicits, form) is not None),
        served=abilities.served(),
    )


class _About(msgspec.Struct):
    numbers: bool = False


class _Meta(msgspec.Struct):
    antiphon: _About = msgspec.field(default_factory=_About)


class _Elicits(msgspec.Struct):
    form: dict[str, object] | None = None
    url: dict[str, object] | None = None


class _ConfigOptions(msgspec.Struct):
    boolean: dict[str, object] | None = None


class _SessionAbilities(msgspec.Struct, rename="camel"):
    config_options: _ConfigOptions | None = None


class _Abilities(msgspec.Struct):
    elicitation: _Elicits | None = None
    session: _SessionAbilities | None = None
    fs: object = None
    terminal: object = None

    def served(self) -> frozenset[str]:
        """The methods of files and terminals that the client serves."""
        files = self.fs if isinstance(self.fs, dict) else {}
        named = {"readTextFile": m.READ_TEXT_FILE.name, "writeTextFile": m.WRITE_TEXT_FILE.name}
        found = {method for name, method in named.items() if files.get(name) is True}
        return frozenset(found | ({m.CREATE_TERMINAL.name} if self.terminal is True else set()))


class _Initialize(msgspec.Struct, rename={"abilities": "clientCapabilities", "meta": "_meta"}):
    abilities: _Abilities | None = None
    meta: _Meta | None = None
