"""Who a process is for the broker: the servers' addresses, a key or a password, and what is sent when a connection begins."""

import base64
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from antiphon import __version__
from antiphon.errors import AcpError
from antiphon.fleet.errors import BrokerRefused
from antiphon.fleet.nats.keys import public_key, sign

__all__ = [
    "ANSWERS",
    "Login",
    "ServerAddress",
    "connect_options",
    "read_address",
    "read_addresses",
    "read_login",
    "tls_context",
]

DEFAULT_PORT: Final = 4222
ANSWERS: Final = "_INBOX."
"""How all subjects begin that answers go to."""

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Login(NamedTuple):
    """What a process shows to be let in."""

    seed: str = ""
    """The secret half of its key."""
    jwt: str = ""
    """What an account has signed for the key."""
    inbox: str = "_INBOX"
    """The subject below which it gets answers: a key may be allowed to listen only below one of its own."""
    source: str = ""
    """The file that it was read from, for errors."""


class ServerAddress(NamedTuple):
    """Where a server is, and a password for it if the address has one."""

    host: str
    port: int
    tls: bool = False
    user: str = ""
    password: str = ""
    certificate: str = ""
    """The name that its certificate has to have; empty: the host."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.tls else 'nats'}://{host}:{self.port}"


class _KeyFile(msgspec.Struct):
    """The file of a key that `antiphon fleet credentials` made."""

    name: str
    seed: str
    access: str = ""
    """The secret half for the account with the tokens; empty: it has no key there."""


def read_address(text: str) -> ServerAddress:
    """Return the address in a text such as `nats://host:4222` or `tls://user:password@host`.

    Raises:
        AcpError: it is none.
    """
    try:
        parts = urlsplit(text if "://" in text else f"nats://{text}")
        port = parts.port or DEFAULT_PORT
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("nats", "tls") or not parts.hostname:
        raise AcpError(
            "this is not the address of a NATS server",
            hint="write it as nats://HOST:4222, or tls://HOST:4222 with TLS",
        )
    return ServerAddress(
        parts.hostname, port, parts.scheme == "tls", unquote(parts.username or ""), unquote(parts.password or "")
    )


def read_login(path: str | Path, *, access: bool = False) -> Login:
    """Read a file with credentials: a key of `antiphon fleet credentials`, a credentials file of NATS, or a bare seed.

    `access`: it is for the account with the tokens, for which a gateway has a key of its own in its file.

    Raises:
        AcpError: it cannot be read, others can read it, or it has no key.
    """
    path = Path(path)
    try:
        if path.stat().st_mode & 0o077:
            raise AcpError(f"others can read the key in {path}", hint=f"chmod 600 {path}, or better make a new one")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise AcpError(
            f"the key in {path} cannot be read: {reason}", hint="`antiphon fleet credentials` makes keys"
        ) from None
    seed, jwt, inbox = text.strip(), "", "_INBOX"
    if "-----BEGIN" in text:
        seed, jwt = _block(text, "USER NKEY SEED"), _block(text, "NATS USER JWT")
    elif seed.startswith("{"):
        try:
            key = msgspec.json.decode(text, type=_KeyFile)
        except msgspec.DecodeError:
            raise AcpError(f"{path} is not a key", hint="`antiphon fleet credentials` makes keys") from None
        seed, inbox = (key.access if access and key.access else key.seed), f"{ANSWERS}{key.name}"
    try:
        public_key(seed)
    except AcpError as error:
        raise type(error)(f"{path}: {error.sentence}", hint=error.hint) from None
    return Login(seed, jwt, inbox, str(path))


def _block(text: str, title: str) -> str:
    """Return what stands between the marks of a part of a credentials file."""
    _, _, rest = text.partition(f"BEGIN {title}")
    _, _, rest = rest.partition("\n")
    return rest.partition("-----")[0].strip().rstrip("-").strip()


def connect_options(
    login: Login, address: ServerAddress, info: Mapping[str, Any], name: str, *, encrypted: bool
) -> dict[str, object]:
    """Return what the first command of a connection says.

    Raises:
        BrokerRefused: the server asks for something that there is not, or a password would be sent as plain text.
    """
    options: dict[str, object] = {
        "verbose": False, "pedantic": False, "lang": "python", "version": __version__, "protocol": 1, "name": name,
        "headers": True, "no_responders": True, "echo": True, "tls_required": encrypted,
    }  # fmt: skip
    nonce = info.get("nonce")
    if login.seed and isinstance(nonce, str):
        signature = base64.urlsafe_b64encode(sign(login.seed, nonce)).decode().rstrip("=")
        options["sig"] = signature
        options |= {"jwt": login.jwt} if login.jwt else {"nkey": public_key(login.seed)}
    if address.user:
        if not encrypted and address.host not in LOOPBACK:
            raise BrokerRefused(
                f"the password for {address} would be sent without encryption",
                hint="use tls:// in the address, or a key: `antiphon fleet credentials` makes keys",
            )
        options |= (
            {"user": address.user, "pass": address.password} if address.password else {"auth_token": address.user}
        )
    if info.get("auth_required") and not (login.seed or address.user):
        raise BrokerRefused(
            f"the broker at {address} lets in only those it knows",
            hint="give a key with --credentials; `antiphon fleet credentials` makes keys",
        )
    return options


def read_addresses(servers: str | Sequence[str]) -> list[ServerAddress]:
    """Return the addresses of a list, or of a text with commas between them.

    Raises:
        AcpError: one of them is none, or there is none.
    """
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    return [read_address(text.strip()) for text in texts if text.strip()] or [read_address("")]


def tls_context(authority: str | Path = "", certificate: str | Path = "", key: str | Path = "") -> ssl.SSLContext:
    """Return how to check the certificate of a server, and which one to show.

    Raises:
        AcpError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=str(authority) or None)
        if certificate:
            context.load_cert_chain(str(certificate), str(key) or None)
    except (OSError, ssl.SSLError) as error:
        raise AcpError(
            f"the certificates for the broker cannot be used: {error}", hint="check the files that were given"
        ) from None
    return context
