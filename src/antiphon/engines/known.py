"""The engines by name. Importing this imports none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from antiphon.errors import AcpError

if TYPE_CHECKING:
    from antiphon.engines.base import Engine

__all__ = ["DEFAULT", "ENGINES", "make_engine"]

ENGINES: Final = {"demo": "antiphon.engines.demo.engine:Demo"}
"""Name → where its class is."""

DEFAULT: Final = "demo"
"""The engine that works with nothing else installed."""


def make_engine(name: str) -> "Engine":
    """The engine of that name.

    Raises:
        AcpError: there is none.
    """
    if name not in ENGINES:
        raise AcpError(f"there is no engine `{name}`\nhint: choose one of {', '.join(ENGINES)}")
    module, _, kind = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module), kind)()
    return engine
