"""The engines by name. Importing this imports none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from antiphon.errors import AcpError

if TYPE_CHECKING:
    from antiphon.engines.base import Engine

__all__ = ["DEFAULT", "ENGINES", "LOGINS", "make_engine", "sign_in"]

ENGINES: Final = {
    "demo": "antiphon.engines.demo.engine:Demo",
    "claude": "antiphon.engines.claude.engine:Claude",
    "codex": "antiphon.engines.codex.engine:Codex",
}
"""Name → where its class is."""

LOGINS: Final = {"claude": "antiphon.engines.claude.login:login", "codex": "antiphon.engines.codex.login:login"}
"""Name → the function that signs the user in, in the terminal that we were started in. It is told the way that was asked for, if any."""

DEFAULT: Final = "demo"
"""The engine that works with nothing else installed."""


def make_engine(name: str) -> "Engine":
    """The engine of that name.

    Raises:
        AcpError: there is none.
    """
    if name not in ENGINES:
        raise AcpError(f"there is no engine `{name}`\nhint: choose one of {', '.join(ENGINES)}")
    engine: Engine = _thing(ENGINES[name])()
    return engine


def sign_in(name: str, way: str) -> None:
    """Sign in to what an engine drives. Where a program of its own does that, it takes the place of this one.

    Raises:
        AcpError: there is nothing to sign in to, no such way, or no program.
    """
    if name not in LOGINS:
        raise AcpError(f"the engine `{name}` has no login\nhint: it works without one")
    _thing(LOGINS[name])(way)


def _thing(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
