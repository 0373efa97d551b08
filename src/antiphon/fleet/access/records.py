"""What the broker stores of tokens: their digests and rights, the names that are taken, launch codes. No secret is among it.

Each is the last message of its subject. A token is stored under its digest; its number is the sequence number of the message that made
it. Fields that this version does not know are ignored: neighbouring versions run side by side while a fleet is upgraded.
"""

from hashlib import sha256
from typing import Final, Literal

import msgspec

from antiphon.fleet.broker import StoredMessage
from antiphon.gateway.access.tokens import NO_CODE, AccessToken, LaunchCode, own_name
from antiphon.gateway.base import AccessRole

__all__ = [
    "ACCESS_RECORDS",
    "CLOCK",
    "CODES",
    "TOKENS",
    "CodeRecord",
    "NameRecord",
    "TokenRecord",
    "code_subject",
    "name_subject",
    "token_subject",
]

ACCESS_RECORDS: Final = "acp.a.>"
TOKENS: Final = "acp.a.token.*"
CODES: Final = "acp.a.code.*"
CLOCK: Final = "acp.a.clock"
"""The subject of a message without content, whose time is that of the broker and whose number is larger than all before it."""


def token_subject(id: str) -> str:
    """Return the subject of a token with this digest."""
    return f"acp.a.token.{id}"


def code_subject(digest: bytes) -> str:
    """Return the subject of a launch code."""
    return f"acp.a.code.{digest.hex()}"


def name_subject(name: str) -> str:
    """Return the subject of a name, which may have any characters in it."""
    return f"acp.a.name.{sha256(name.encode(errors='replace')).hexdigest()}"


class TokenRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token as it is stored."""

    kind: Literal["token", "share", "browser"]
    name: str
    role: AccessRole
    created: float
    """Seconds since 1970, by the clock of the broker, as all times here."""
    sessions: tuple[str, ...] | None = None
    expires: float | None = None
    parent: int | None = None
    is_numbered: bool = False
    """Whether its number stands behind its name."""
    number: int = 0
    """The number of the token; 0 in the message that makes it, which has this number itself."""
    revoked: float | None = None
    """When it was revoked; None while it is good."""

    @classmethod
    def of(cls, token: AccessToken, *, is_numbered: bool) -> "TokenRecord":
        """Return the record of a new token."""
        sessions = None if token.sessions is None else tuple(sorted(token.sessions))
        return cls(
            token.kind, token.name, token.role, token.created, sessions, token.expires, token.parent, is_numbered
        )

    def token(self, id: str, number: int) -> AccessToken:
        """Return the token with this digest and number."""
        name = own_name(self.name, number, is_taken=self.is_numbered)
        sessions = None if self.sessions is None else frozenset(self.sessions)
        digest = bytes.fromhex(id)
        return AccessToken(
            number, self.kind, name, self.role, digest, sessions, self.created, self.expires, self.parent
        )


class NameRecord(msgspec.Struct, frozen=True):
    """Who may have a name: the token that claimed it last, and the one before if that was not stored yet when it was asked for."""

    tokens: tuple[str, ...] = ()


class CodeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A launch code as it is stored. One that was used has no role."""

    expires: float = 0.0
    role: AccessRole | None = None
    parent: int | None = None

    @classmethod
    def read(cls, message: StoredMessage) -> "CodeRecord":
        """Return what a message has. One that cannot be read is taken for used."""
        try:
            return msgspec.json.decode(message.data, type=cls)
        except msgspec.DecodeError:
            return cls()

    @property
    def code(self) -> LaunchCode:
        """What the code is good for."""
        return NO_CODE if self.role is None else LaunchCode(self.expires, self.role, self.parent)
