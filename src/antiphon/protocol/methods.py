"""A method as a typed value: `Call` (asked and answered) and `Notice` (told). The name is spelled once, with its types."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Raw

from antiphon.protocol.base import decoder
from antiphon.protocol.reading import Reading, read

if TYPE_CHECKING:
    from msgspec.json import Decoder

__all__ = ["Call", "Method", "Notice", "Reading", "Side", "Topic"]

P = TypeVar("P")
R = TypeVar("R")

Side = Literal["agent", "client", "both"]
"""Who handles the method."""


class Topic:
    """Stands for a module that is not loaded yet: its attributes are promises of types."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _Later(self._module, name)


class _Later:
    """A type by its address."""

    def __init__(self, module: str, name: str) -> None:
        self._address = module, name

    def load(self) -> type[Any]:
        module, name = self._address
        found: type[Any] = getattr(import_module(module), name)
        return found


class Method(Generic[P]):
    """What calls and notices share: a name and the type of the params."""

    __slots__ = ("_params", "_params_decoder", "head", "name", "side", "stability")

    def __init__(self, name: str, params: type[P], *, side: Side = "both", stability: str = "stable") -> None:
        self.name = name
        self._params: type[P] | _Later = params
        self.side = side
        self.stability = stability
        """`stable`, `unstable` (may change or go) or `legacy` (in no schema, but alive)."""
        self.head = b""
        """How its frame begins on the wire, once a connection has worked it out."""
        self._params_decoder: Decoder[P] | None = None

    @property
    def params(self) -> type[P]:
        """The type of the params."""
        found = self._params
        if isinstance(found, _Later):
            found = self._params = found.load()
        return found

    @property
    def params_decoder(self) -> "Decoder[P]":
        """The strict decoder, made when first needed: a program uses few of the methods."""
        if self._params_decoder is None:
            self._params_decoder = decoder(self.params)
        return self._params_decoder

    def read_params(self, raw: bytes | Raw) -> Reading[P]:
        """Params as sent → typed, with the rules that were needed to understand them.

        Raises:
            RequestError: -32602, if no rule makes sense of them.
        """
        return read(self.params_decoder, self.params, self.name, "params", raw)

    def decode_params(self, raw: bytes | Raw) -> P:
        """The typed params alone."""
        return self.read_params(raw).value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Notice(Method[P]):
    """A notification: nobody answers it."""

    __slots__ = ()


class Call(Method[P], Generic[P, R]):
    """A request: a name, the type of its params and the type of its answer."""

    __slots__ = ("_result", "_result_decoder")

    def __init__(
        self, name: str, params: type[P], result: type[R], *, side: Side = "both", stability: str = "stable"
    ) -> None:
        super().__init__(name, params, side=side, stability=stability)
        self._result: type[R] | _Later = result
        self._result_decoder: Decoder[R] | None = None

    @property
    def result(self) -> type[R]:
        """The type of the answer."""
        found = self._result
        if isinstance(found, _Later):
            found = self._result = found.load()
        return found

    @property
    def result_decoder(self) -> "Decoder[R]":
        """The strict decoder of the answer, made when first needed."""
        if self._result_decoder is None:
            self._result_decoder = decoder(self.result)
        return self._result_decoder

    def read_result(self, raw: bytes | Raw) -> Reading[R]:
        """An answer as sent → typed, with the rules that were needed to understand it.

        Raises:
            RemoteProtocolError: no rule makes sense of it.
        """
        return read(self.result_decoder, self.result, self.name, "result", raw)

    def decode_result(self, raw: bytes | Raw) -> R:
        """The typed answer alone."""
        return self.read_result(raw).value
