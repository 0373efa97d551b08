"""A method as a typed value: `Call` (a request) and `Notice` (a notification). The name is spelled once, with its types.

A method knows all that is special about it: its other names, the timeout of its response, how a turn that it began is cancelled, and
the dialects of the version of the protocol that it belongs to. So code that sends and receives messages needs no list of methods.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import Code, LocalProtocolError, RemoteProtocolError, RequestError
from antiphon.protocol.base import BAD_INPUT, Kind, decoder
from antiphon.protocol.timeouts import REQUEST_TIMEOUT, Timeout

if TYPE_CHECKING:
    from msgspec.json import Decoder

__all__ = [
    "AnyCall",
    "AnyMethod",
    "AnyNotice",
    "Call",
    "DecodedPart",
    "Dialects",
    "Half",
    "Method",
    "Notice",
    "Reply",
    "Side",
    "StreamCall",
    "Topic",
    "read",
]

Half = Literal["params", "result"]
Reply = Callable[[bytes], bytes]
"""Turns our result, as the schema has it, into the words of the dialect that the request was in."""

# How every message part is read: strict first, then the dialects, then salvage. A good message pays only for strict.

T = TypeVar("T")


class Dialects:
    """What peers of one version of the protocol send that its schema does not have."""

    __slots__ = ("_table", "hints")

    def __init__(self, hints: Mapping[tuple[str, Half], tuple[bytes, ...]], table: str = "") -> None:
        self.hints = hints
        """(method, half) → byte strings; if one occurs in the message the dialects are tried before the strict decoder."""
        self._table = table

    def repair(self, method: str, half: Half, raw: bytes) -> tuple[bytes, tuple[str, ...], Reply | None]:
        """Return the message in the schema's words, the rules used, and how to respond in the dialect. Loads the rules."""
        if not self._table:
            return raw, (), None
        found: tuple[bytes, tuple[str, ...], Reply | None] = import_module(self._table).TABLE.repair(method, half, raw)
        return found


_NONE = Dialects({})


class DecodedPart(msgspec.Struct, Generic[T]):
    """A message part, understood: its value, the names of the rules it took, and how to respond in its dialect."""

    value: T
    rules: tuple[str, ...] = ()
    reply: Reply | None = None


def read(
    strict: "msgspec.json.Decoder[T]", method: str, half: Half, raw: bytes | Raw, dialects: Dialects = _NONE
) -> DecodedPart[T]:
    """Understand one half of a method as well as the rules allow.

    Raises:
        RequestError: -32602 (or -32700), if these are params and no rule makes sense of them.
        RemoteProtocolError: the same for a result.
    """
    # Some dialect fields are legal extras to the strict decoder and would be dropped silently; their names are hints.
    hints = dialects.hints.get((method, half))
    if hints is None or not _mentions(raw, hints):
        try:
            return DecodedPart(strict.decode(raw))
        except BAD_INPUT:
            pass
    try:
        return _read_forgivingly(strict, method, half, bytes(raw), dialects)
    except BAD_INPUT as error:
        raise _refusal(method, half, error) from None


def _mentions(raw: bytes | Raw, hints: tuple[bytes, ...]) -> bool:
    data = bytes(raw)
    for hint in hints:  # noqa: SIM110 - a generator for any() costs more than the search
        if hint in data:
            return True
    return False


def _read_forgivingly(
    strict: "msgspec.json.Decoder[T]", method: str, half: Half, raw: bytes, dialects: Dialects
) -> DecodedPart[T]:
    from antiphon.protocol.salvage import MAX_VALUES, is_crowded, salvage_with_notes

    raw.decode("utf-8")  # broken text is an error of the whole message, never a field to drop
    if half == "params" and raw.strip() == b"null":
        raw = b"{}"
    if is_crowded(raw):
        try:
            return DecodedPart(strict.decode(raw))
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(
                f"{error} (and with more than {MAX_VALUES} values it is not repaired)"
            ) from None
    repaired, rules, reply = dialects.repair(method, half, raw)
    try:
        return DecodedPart(strict.decode(repaired), rules, reply)
    except BAD_INPUT:
        value, notes = salvage_with_notes(repaired, strict.type)
        return DecodedPart(value, (*rules, *notes), reply)


def _refusal(method: str, half: Half, error: Exception) -> RequestError | RemoteProtocolError:
    if isinstance(error, UnicodeDecodeError):
        reason = f"not UTF-8: {error.reason} at byte {error.start}"
    else:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    if half == "result":
        return RemoteProtocolError(f"the response to `{method}` makes no sense: {reason}")
    if isinstance(error, UnicodeDecodeError):
        return RequestError(Code.PARSE_ERROR, "Parse error", reason)
    return RequestError(Code.INVALID_PARAMS, "Invalid params", reason)


P = TypeVar("P")
R = TypeVar("R")
U = TypeVar("U")

Side = Literal["agent", "client", "both"]
"""The side that handles the method."""


class Topic:
    """Stands for a module that is not loaded yet: its attributes are promises of types."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Kind:
        return _Later(self._module, name)


class _Later:
    """A type by its address."""

    def __init__(self, module: str, name: str) -> None:
        self._address = module, name

    def load(self) -> Kind:
        module, name = self._address
        return getattr(import_module(module), name)


class Method(Generic[P]):
    """What calls and notices share: a name and the type of the params."""

    __slots__ = ("_params", "_params_decoder", "aliases", "dialects", "head", "name", "side", "stability")

    def __init__(
        self,
        name: str,
        params: type[P],
        *,
        side: Side = "both",
        stability: str = "stable",
        aliases: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self._params: type[P] | _Later = params
        self.side = side
        self.stability = stability
        """`stable`, `unstable` (may change or go) or `legacy` (in no schema, but alive)."""
        self.aliases = aliases
        """Older names, under which it is received too."""
        self.dialects = _NONE
        """What peers send instead of what the schema has; set by the version of the protocol that it belongs to."""
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

    def read_params(self, raw: bytes | Raw) -> DecodedPart[P]:
        """Params as sent → typed, with the rules that were needed to understand them.

        Raises:
            RequestError: -32602, if no rule makes sense of them.
        """
        return read(self._params_decoder or self.params_decoder, self.name, "params", raw, self.dialects)

    def decode_params(self, raw: bytes | Raw) -> P:
        """The typed params alone."""
        return self.read_params(raw).value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Notice(Method[P]):
    """A notification: it has no response."""

    __slots__ = ()


class Call(Method[P], Generic[P, R]):
    """A request: a name, the type of its params and the type of its result."""

    __slots__ = ("_result", "_result_decoder", "timeout")

    def __init__(
        self,
        name: str,
        params: type[P],
        result: type[R],
        *,
        side: Side = "both",
        stability: str = "stable",
        timeout: float | None = REQUEST_TIMEOUT,
        aliases: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, params, side=side, stability=stability, aliases=aliases)
        self._result: type[R] | _Later = result
        self._result_decoder: Decoder[R] | None = None
        self.timeout = timeout
        """Seconds that the response may take, None for no timeout, unless the caller gives another."""

    def timeout_for(self, given: Timeout = UNSET, general: Timeout = UNSET) -> float | None:
        """Return the seconds that a response may take: what is given, else the default of the method.

        `general` replaces every default but that of a method which has no timeout.
        """
        if not isinstance(given, UnsetType):
            return given
        return self.timeout if self.timeout is None or isinstance(general, UnsetType) else general

    @property
    def result(self) -> type[R]:
        """The type of the result."""
        found = self._result
        if isinstance(found, _Later):
            found = self._result = found.load()
        return found

    @property
    def result_decoder(self) -> "Decoder[R]":
        """The strict decoder of the result, made when first needed."""
        if self._result_decoder is None:
            self._result_decoder = decoder(self.result)
        return self._result_decoder

    def read_result(self, raw: bytes | Raw) -> DecodedPart[R]:
        """A result as sent → typed, with the rules that were needed to understand it.

        Raises:
            RemoteProtocolError: no rule makes sense of it.
        """
        return read(self._result_decoder or self.result_decoder, self.name, "result", raw, self.dialects)

    def decode_result(self, raw: bytes | Raw) -> R:
        """The typed result alone."""
        return self.read_result(raw).value


AnyMethod: TypeAlias = Method[Any]
AnyNotice: TypeAlias = Notice[Any]
AnyCall: TypeAlias = Call[Any, Any]


class StreamCall(Call[P, R], Generic[P, R, U]):
    """A request whose session sends updates until the response: a prompt, or a history that is replayed."""

    __slots__ = ("cancel", "update")

    def __init__(
        self,
        name: str,
        params: type[P],
        result: type[R],
        update: Notice[U],
        *,
        cancel: AnyNotice | None = None,
        side: Side = "both",
        timeout: float | None = REQUEST_TIMEOUT,
        aliases: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, params, result, side=side, timeout=timeout, aliases=aliases)
        self.update = update
        self.cancel = cancel
        """The notification that ends it early, with a response: its params have the id of the session alone."""


def check_extension(name: str) -> None:
    """Check the name of a method that is not the protocol's.

    Raises:
        LocalProtocolError: it does not begin with `_`.
    """
    if not name.startswith("_"):
        raise LocalProtocolError(f"`{name}` is a name of the protocol", hint="extensions begin with `_`")


def extension_call(name: str) -> "Call[Any, Any]":
    """Return the request of a method that is not the protocol's: its params and its result are plain JSON values."""
    check_extension(name)
    return Call(name, Any, Any)


def extension_notice(name: str) -> "Notice[Any]":
    """Return the notification of a method that is not the protocol's: its params are plain JSON values."""
    check_extension(name)
    return Notice(name, Any)
