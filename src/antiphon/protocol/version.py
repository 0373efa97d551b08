"""What a connection has to know of a version of the protocol, and which version two peers speak."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from antiphon.errors import Code, RequestError
from antiphon.protocol.methods import AnyNotice

__all__ = ["SessionUpdates", "Template", "Version", "chosen_version"]


class SessionUpdates(Protocol):
    """Params of the notification that carries a session's updates."""

    @property
    def session_id(self) -> str:
        """The session that it is about."""


class Template(NamedTuple):
    """Params that are always the same except for the id of the session and one value: the bytes before the value, and after it."""

    before: bytes
    """The params before an update, with `%b` for the id of the session as JSON."""
    after: bytes


class Version:
    """One version of the protocol, as far as a connection and a bridge see it."""

    __slots__ = ("number", "params_say", "params_think", "params_update", "request_ids", "update")

    def __init__(
        self,
        number: int,
        update: AnyNotice,
        *,
        params_update: Template,
        params_say: Template,
        params_think: Template,
        request_ids: Mapping[str, str],
    ) -> None:
        self.number = number
        self.update = update
        """The notification that carries updates; its params are `SessionUpdates`. It is read in whole blocks."""
        self.params_update = params_update
        """Params around an update."""
        self.params_say = params_say
        """Params around a piece of the agent's message, as text."""
        self.params_think = params_think
        """Params around a piece of the agent's thoughts, as text."""
        self.request_ids = request_ids
        """Methods whose params name a request of the other side, and the member that has its id. `$/cancel_request` is known."""

    def __repr__(self) -> str:
        return f"Version({self.number})"


def chosen_version(requested: object, supported: Iterable[int]) -> int:
    """Return the highest supported version that is not above the requested one.

    An agent that has only version 1 answers 1 to every request, as version 1 itself has it.

    Raises:
        RequestError: -32022, there is none; -32602, what was requested is not a version.
    """
    if isinstance(requested, bool) or not isinstance(requested, int) or not 0 <= requested <= 65_535:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"`protocolVersion` is {requested!r}")
    ours = sorted(supported)
    if ours == [1]:
        return 1
    found = [version for version in ours if version <= requested]
    if not found:
        data = {"requested": requested, "supported": ours}
        raise RequestError(Code.UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return found[-1]
