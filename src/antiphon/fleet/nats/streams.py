"""The streams of the fleet on NATS: made by the first process that may, checked by every other, and changed where nothing can be lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from antiphon.fleet.broker import BrokerAway, NoResponder
from antiphon.fleet.errors import BrokerFull, BrokerRefused, BrokerUnfit
from antiphon.fleet.streams import StoredStream

__all__ = ["ApiError", "NatsApi", "make_streams"]

NatsApi: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[dict[str, Any]]]
"""Sends a request of JetStream's API, such as `STREAM.INFO.NAME`, and returns what it answers."""

START_LIMIT: Final = 30.0
"""Seconds for servers that start to choose a leader, or for another process to make the streams."""

PEERS_LIMIT: Final = 10.0
"""Seconds for a cluster to have three servers."""

FIRST_WAIT: Final = 0.05
LONGEST_WAIT: Final = 1.0

CLUSTER_REPLICAS: Final = 3
DUPLICATE_WINDOW: Final = 300
"""Seconds for which the broker remembers the name of a message."""

NOT_FOUND: Final = 10059
NAME_TAKEN: Final = 10058
NO_REPLICAS: Final = frozenset({10074, 10052})
"""There is only one server."""
NO_PEERS: Final = frozenset({10005, 10027})
"""There are too few servers, now."""
NO_ROOM: Final = frozenset({10023, 10028, 10047, 10122})
NOT_STORED: Final = 10077
"""The store of a stream refused a message: its limit is reached, or the disk failed."""
NOT_ENABLED: Final = frozenset({10039, 10076})
NOT_NOW: Final = frozenset({10008, 10009, 10004})
"""Servers start, or have no leader."""

_log = logging.getLogger(__name__)


class ApiError(BrokerAway):
    """JetStream refused a request."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"the broker says: {description} ({code})", hint="the log of nats-server may say why")
        self.number = code


def api_error(error: Mapping[str, Any]) -> BrokerAway | BrokerUnfit:
    """Return the error that an answer has."""
    code, description = int(error.get("err_code", 0)), str(error.get("description", "an error"))
    if code in NO_ROOM or "no space left" in description:
        return BrokerFull(
            f"the broker has no room to store more: {description}",
            hint="free space on its disk, or raise `max_file_store` in its configuration",
        )
    if code == NOT_STORED and "maximum" in description:
        return BrokerFull(
            f"the broker may not store more: {description}",
            hint="raise the limits of its stream (`nats stream edit`), or delete sessions",
        )
    if code in NOT_ENABLED:
        return _no_jetstream()
    return ApiError(code, description)


def _no_jetstream() -> BrokerUnfit:
    return BrokerUnfit(
        "the broker stores nothing: JetStream is off",
        hint="add `jetstream { store_dir: … }` to the configuration of nats-server",
    )


def wanted_config(stream: StoredStream, replicas: int) -> dict[str, Any]:
    """Return the configuration of a stream."""
    return {
        "name": stream.name,
        "subjects": [stream.subjects],
        "retention": "limits",
        "storage": "file",
        "discard": "new",  # under a limit that a user has set an append fails, and nothing that is stored is dropped
        "num_replicas": replicas,
        "duplicate_window": DUPLICATE_WINDOW * 10**9,
        "compression": "s2",
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "allow_msg_ttl": True,
        "deny_delete": False,
        "deny_purge": False,
        "republish": {"src": stream.subjects, "dest": f"{stream.live}>"},
    }


_CHANGED: Final = ("discard", "duplicate_window", "allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "republish")
"""What can be changed while the stream is used. Limits that a user has set are kept."""

_FIXED: Final = ("subjects", "retention", "storage", "deny_delete", "deny_purge")
"""What the fleet cannot do without and cannot change."""


async def make_streams(
    streams: Sequence[StoredStream], api: NatsApi, info: Mapping[str, Any], replicas: int | None = None
) -> dict[str, int]:
    """Make or check streams, and return the number of the last message of each.

    `info` is what the server says of itself. `replicas`: three in a cluster if that is not given, else one.

    Raises:
        BrokerUnfit: the server stores nothing, or has a stream that cannot be used.
        BrokerRefused: this process may not make a stream that is missing.
        BrokerAway: there was no leader in time.
    """
    if not info.get("jetstream") and not info.get("cluster"):
        raise _no_jetstream()
    clustered = bool(info.get("cluster"))
    found = {}
    for stream in streams:
        found[stream.name] = await _patiently(partial(_make, api, stream, clustered, replicas))
    return found


async def _patiently(make: Callable[[], Awaitable[int]]) -> int:
    """Try something again while servers start."""
    loop = asyncio.get_running_loop()
    end, wait = loop.time() + START_LIMIT, FIRST_WAIT
    while True:
        try:
            return await make()
        except (BrokerAway, NoResponder) as error:
            final = isinstance(error, ApiError) and error.number not in NOT_NOW
            if final or isinstance(error, BrokerFull) or loop.time() + wait > end:
                raise
        await asyncio.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)


async def _make(api: NatsApi, stream: StoredStream, clustered: bool, replicas: int | None) -> int:
    try:
        found = await api(f"STREAM.INFO.{stream.name}", {})
    except ApiError as error:
        if error.number != NOT_FOUND:
            raise
        return await _create(api, stream, clustered, replicas)
    await _check(api, stream, found, replicas or (CLUSTER_REPLICAS if clustered else 1))
    return int(found["state"]["last_seq"])


async def _create(api: NatsApi, stream: StoredStream, clustered: bool, replicas: int | None) -> int:
    loop = asyncio.get_running_loop()
    end, wait = loop.time() + PEERS_LIMIT, FIRST_WAIT
    count = replicas or (CLUSTER_REPLICAS if clustered else 1)
    while True:
        try:
            await api(f"STREAM.CREATE.{stream.name}", wanted_config(stream, count))
        except BrokerRefused as error:
            raise BrokerAway(
                f"the broker has no stream {stream.name} yet, and this key may not make it",
                hint="start a gateway first: it makes the streams",
            ) from error
        except ApiError as error:
            if error.number == NAME_TAKEN:  # by another process, in this moment
                return await _make(api, stream, clustered, replicas)
            if error.number in NO_REPLICAS | NO_PEERS and replicas is None and count > 1:
                if error.number in NO_REPLICAS or loop.time() + wait > end:
                    _log.warning("the broker has too few servers for copies: %s is stored on one only", stream.name)
                    count = 1
                else:
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, LONGEST_WAIT)
                continue
            raise
        else:
            return 0


async def _check(api: NatsApi, stream: StoredStream, found: Mapping[str, Any], replicas: int) -> None:
    """Change what differs in a stream that is there."""
    config, wanted = dict(found["config"]), wanted_config(stream, replicas)
    wrong = [name for name in _FIXED if config.get(name, False) != wanted[name]]
    if wrong:
        raise BrokerUnfit(
            f"the broker has a stream {stream.name} that the fleet cannot use: {', '.join(wrong)} of it differ",
            hint="use another broker or account for the fleet, or remove that stream if nothing needs it",
        )
    changes = {name: wanted[name] for name in _CHANGED if not _same(config.get(name, False), wanted[name])}
    if int(config.get("num_replicas", 1)) < replicas:
        changes["num_replicas"] = replicas
    if not changes:
        return
    try:
        await api(f"STREAM.UPDATE.{stream.name}", {**config, **changes})
    except BrokerRefused:
        _log.warning("the stream %s is not as it should be, and this key may not change it", stream.name)
    except ApiError as error:
        if "num_replicas" not in changes or error.number not in NO_REPLICAS | NO_PEERS:
            raise
        _log.warning("the broker has too few servers for copies: %s is stored on one only", stream.name)
        del changes["num_replicas"]
        if changes:
            await api(f"STREAM.UPDATE.{stream.name}", {**config, **changes})


def _same(found: object, wanted: object) -> bool:
    """Return whether a part of a configuration is as it is wanted; servers add parts of their own."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return all(found.get(name) == value for name, value in wanted.items())
    return found == wanted
