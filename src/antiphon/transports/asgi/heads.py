"""The head of a request: its headers, the name that it is sent to, and the page that it comes from. Each check returns why it refuses.

A browser sends requests of any page to any address, also to this machine. Two headers show it: `Host` is the name that the page used,
which its owner can point to this machine (DNS rebinding), and `Origin` is the page itself.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from antiphon.transports.asgi.connections import Scope
from antiphon.transports.remote import CONNECTION_ID, SESSION_ID

__all__ = [
    "ANY_HOST",
    "LOOPBACK",
    "Headers",
    "Refusal",
    "foreign_host",
    "foreign_origin",
    "header_of",
    "host_name",
    "refused_headers",
    "refused_request",
]

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

HEADER_LIMIT: Final = 64 * 1024
"""Bytes of all headers of a request."""

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names of this machine that no other machine has. Names below `localhost` are not among them: some systems ask a DNS server for those."""

ANY_HOST: Final = "*"
"""Among the names of a server: it checks none, because what stands in front of it does."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that is not let in: the HTTP status, and a sentence."""

    status: int
    sentence: str
    headers: Headers = ()


def header_of(scope: Scope, name: bytes) -> str:
    """Return a header of a request by its name in small letters; empty without it."""
    for key, value in scope["headers"]:
        if key == name:
            found: str = value.decode("latin-1")
            return found
    return ""


def refused_headers(scope: Scope) -> Refusal | None:
    """Refuse headers that are too large, or two of one that decides something: a proxy before us may have decided by the other."""
    seen: set[bytes] = set()
    size = 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name in _SINGLE and name in seen:
            return Refusal(400, f"there are two headers `{name.decode('latin-1')}`")
        seen.add(name)
    return Refusal(431, "the headers are too large") if size > HEADER_LIMIT else None


_SINGLE: Final = frozenset(
    {
        b"host", b"origin", b"authorization", b"content-length", b"content-type", b"transfer-encoding", b"sec-fetch-site",
        b"last-event-id", CONNECTION_ID.lower().encode(), SESSION_ID.lower().encode(),
    }
)  # fmt: skip


def host_name(host: str) -> str:
    """Return the name in a `Host` header, in small letters and without its port; empty if the header is not a valid name."""
    name = host.strip().lower()
    if name.startswith("["):
        name, bracket, port = name[1:].partition("]")
        return name if bracket and _is_port(port.removeprefix(":")) else ""
    name, _, port = name.partition(":")
    return name if _is_port(port) else ""


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and len(text) <= 5)


def foreign_host(scope: Scope, hosts: Collection[str]) -> bool:
    """Whether a request is sent to another name than these, which are in small letters and without a port."""
    return ANY_HOST not in hosts and host_name(header_of(scope, b"host")) not in hosts


def foreign_origin(scope: Scope, origins: Collection[str] = (), scheme: str = "") -> bool:
    """Whether a request comes from a page of another host than it goes to, whose origin is not among those allowed.

    `scheme`: that of our own pages; empty: any.
    """
    origin, host = header_of(scope, b"origin").lower(), header_of(scope, b"host").lower()
    if not origin or origin in origins:
        return False
    before, mark, name = origin.partition("://")
    return not (mark and host and name == host and scheme in ("", before))


def refused_request(scope: Scope, hosts: Collection[str], origins: Collection[str] = ()) -> Refusal | None:
    """Refuse what no server has to answer that is not meant for pages of others, whatever else it asks for."""
    if (refusal := refused_headers(scope)) is not None:
        return refusal
    if foreign_host(scope, hosts):
        return Refusal(421, "this server does not have that name: give it the name, as `hosts` of `serve_asgi`")
    return Refusal(403, "this origin is not allowed") if foreign_origin(scope, origins) else None
