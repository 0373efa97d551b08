"""Which translator a handshake needs, if any: for a client of any version, for a bridge, and for an agent of version 1."""

from collections.abc import Callable, Collection

import msgspec
from msgspec import Raw

from antiphon.errors import Code
from antiphon.protocol.base import BAD_INPUT, Json
from antiphon.protocol.exchange import Adapter, RequestFailure
from antiphon.protocol.version import chosen_version

__all__ = ["by_answer", "by_request", "v1_client", "v2_client"]

Clock = Callable[[], float]


class _Handshake(msgspec.Struct, rename="camel"):
    protocol_version: Json = None
    info: Json = None


def _read(raw: Raw | None) -> _Handshake:
    try:
        return _Handshake() if raw is None else msgspec.json.decode(raw, type=_Handshake)
    except BAD_INPUT:
        return _Handshake()


def by_answer(
    clock: Clock, params: Raw, result: Raw | None, failure: RequestFailure | None, *, extended: bool = False
) -> Adapter | None:
    """Return the translator for a client whose handshake an agent answered like this.

    A client of version 1 with an agent that refuses version 1 and has version 2, or the other way round. An agent that answers with
    version 2 in the shape of version 1 repeats what it was asked for, and is one of version 1. A client that asks for a version after
    2 gets version 2, as from an agent that has it. `extended`: the client is of our SDK, and takes what only version 2 has as
    `protocol.extension` describes it.

    Raises:
        RequestError: -32022, a client that speaks in the shape of version 2 asks for a version before 1, and the agent answers with 1.
    """
    asked = _read(params)
    wanted = asked.protocol_version
    newer = isinstance(wanted, int) and wanted >= 2
    if failure is not None:
        if not _refuses_version(failure):
            return None
        supported = failure.data.get("supported") if isinstance(failure.data, dict) else None
        answered = 1 if newer else 2
        if isinstance(supported, list) and answered not in supported:
            return None
    else:
        found = _read(result)
        answered = 2 if found.protocol_version == 2 and isinstance(found.info, dict) else 1
        if isinstance(asked.info, dict) and isinstance(wanted, int) and wanted < 1:
            # Raises: an agent of version 1 answers 1 to everything, one of version 2 may not.
            chosen_version(wanted, (1, 2))
    if wanted == 1 and answered == 2:
        return v1_client(clock, extended=extended)
    if newer and isinstance(asked.info, dict) and answered == 1:
        return v2_client(clock, result)
    return None


def _refuses_version(failure: RequestFailure) -> bool:
    """Whether an error is about the version: by its code, or, as the Python SDK has it, in two other ways.

    Its router has an invalid request that says so in words. Its agents of version 2 alone read the params before the version, and
    miss `info`, which is the one member that version 2 requires and version 1 does not have.
    """
    if failure.code == Code.INVALID_REQUEST and isinstance(failure.data, dict):
        return str(failure.data.get("details")).startswith("Unsupported ACP protocol")
    if (
        failure.code == Code.INVALID_PARAMS
        and isinstance(failure.data, dict)
        and isinstance(failure.data.get("errors"), list)
    ):
        return any(isinstance(error, dict) and error.get("loc") == ["info"] for error in failure.data["errors"])
    return failure.code == Code.UNSUPPORTED_VERSION


def v1_client(clock: Clock, *, extended: bool = False) -> Adapter:
    """Return a translator for a client of version 1; an agent that answers with version 1 is then not translated. It is loaded now."""
    from antiphon.protocol.translate.v1_client import V1ClientTranslator

    return V1ClientTranslator(clock, extended=extended)


def v2_client(clock: Clock, first: Raw | None = None, *, extended: bool = False) -> Adapter:
    """Return a translator for a client of version 2. It is loaded now.

    `extended`: the agent is of our SDK, and sends what only version 2 has as `protocol.extension` describes it.
    """
    from antiphon.protocol.translate.v2_client import V2ClientTranslator

    return V2ClientTranslator(clock, None if first is None else Raw(bytes(first)), extended=extended)


def by_request(
    clock: Clock, versions: Collection[int], params: Raw, make: Callable[[Clock], Adapter] = v2_client
) -> Adapter | None:
    """Return the translator for a client of an agent of version 1 that speaks these versions. `make` makes the one for version 2.

    Raises:
        RequestError: -32022, there is no version that both have.
    """
    return make(clock) if chosen_version(_read(params).protocol_version, versions) == 2 else None
