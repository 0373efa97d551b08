"""Tokens, shares and launch codes: what lets a request in, for how long, and to what.

A secret has 256 random bits and is known to the user who was given it; the gateway keeps its SHA-256 alone. A share is a token for some
sessions that ends. A launch code is good once and for minutes: it is what a printed address carries, in the fragment, which browsers
neither send nor log.
"""

import asyncio
import hmac
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from antiphon.config.directories import write_private_file
from antiphon.errors import AcpError
from antiphon.gateway.base import AccessRole, Principal
from antiphon.store.database import Database

__all__ = ["LAUNCH_LIFETIME", "NO_CODE", "TOKEN_FILE", "AccessToken", "AccessTokens", "LaunchCode", "TokenStore"]

TOKEN_FILE: Final = "token"  # noqa: S105
"""The file in the data directory with the token of its user, readable by the user alone."""

LAUNCH_LIFETIME: Final = 600.0
"""Seconds for which a launch code is good."""

BROWSER_LIFETIME: Final = 30 * 24 * 3600.0
"""Seconds for which a browser stays signed in."""

BROWSERS: Final = 32
"""Browsers that are signed in with one token or share; with one more, the one that signed in first is signed out."""

LAUNCH_CODES: Final = 32
"""Launch codes of one token that wait at a time; the oldest goes."""

T = TypeVar("T")
Kind: TypeAlias = Literal["token", "share", "browser"]

_DEVICE: Final = re.compile(r"[A-Za-z][A-Za-z ]{0,29}")
"""What a browser may call itself: no digit, because its number stands behind it and no two tokens share a name."""


class LaunchCode(NamedTuple):
    """What a launch code is good for."""

    expires: float
    role: AccessRole
    parent: int | None = None
    """The token whose browser signs in with it; None: it gets a token that depends on none."""


NO_CODE: Final = LaunchCode(0.0, AccessRole.WATCH)
"""What an unknown code is good for: nothing any more."""


class AccessToken(msgspec.Struct, frozen=True):
    """What is known of a secret, without the secret."""

    id: int
    kind: Kind
    name: str
    role: AccessRole
    digest: bytes
    sessions: frozenset[str] | None
    """The keys of the sessions that it is for; None: all of them."""
    created: float
    expires: float | None
    parent: int | None = None
    """The token that a browser signed in with: it ends with that."""

    @property
    def root(self) -> int:
        """The number of the token that limits count for: a browser has no limits of its own."""
        return self.id if self.parent is None else self.parent

    @property
    def principal(self) -> Principal:
        """Who a request with this token comes from."""
        return Principal(self.name, self.role, self.sessions, str(self.id), str(self.root))

    def shown(self) -> dict[str, object]:
        """The token as people and programs see it in a list."""
        return {
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "role": self.role.name.lower(),
            "sessions": None if self.sessions is None else sorted(self.sessions),
            "created": self.created,
            "expires": self.expires,
            "parent": self.parent,
        }


class AccessTokens(ABC):
    """The tokens of a gateway in memory, and what they are good for. Where they are stored is for a subclass to say."""

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        self._directory = directory
        self._clock = clock
        self._tokens: dict[bytes, AccessToken] = {}
        self._signing_in = asyncio.Lock()
        self.revoked: Callable[[AccessToken], None] | None = None
        """Called with a token that is good no longer: connections that it opened are to end."""

    def now(self) -> float:
        """Return the time by the clock that tokens expire by."""
        return self._clock()

    async def load(self) -> None:
        """Read what is stored, and make the token file if there is none that is good."""
        await self._read()
        await self._keep_file()

    # What is stored.

    @abstractmethod
    async def _read(self) -> None:
        """Read the tokens that are stored and good."""

    @abstractmethod
    async def _add(self, token: AccessToken, *, is_numbered: bool) -> AccessToken:
        """Store a token that has no number yet, keep it in memory, and return it with its number and its own name."""

    @abstractmethod
    async def _store_end(self, token: AccessToken) -> None:
        """Store that a token, which memory does not have any more, was revoked with those of its browsers."""

    @abstractmethod
    async def _add_code(self, digest: bytes, code: LaunchCode) -> None:
        """Store what a launch code is good for. Of too many with the same parent the oldest goes."""

    @abstractmethod
    async def _use_code(self, digest: bytes) -> LaunchCode:
        """Return what a launch code is good for, once; `NO_CODE` for one that is unknown or used."""

    # Tokens.

    async def _keep_file(self) -> None:
        path = self._directory / TOKEN_FILE
        with suppress(OSError, UnicodeDecodeError):
            if self.find((await asyncio.to_thread(path.read_text, encoding="utf-8")).strip()) is not None:
                with suppress(OSError):
                    path.chmod(0o600)
                return
        token, secret = await self.create("token", "owner", AccessRole.ADMIN)
        try:
            write_private_file(path, f"{secret}\n")
        except OSError as error:
            await self.revoke(token.id)
            hint = "check the permissions, or choose another directory with --data"
            raise AcpError(f"`{path}` cannot be written: {error.strerror}", hint=hint) from error

    async def create(
        self,
        kind: Kind,
        name: str,
        role: AccessRole,
        *,
        sessions: Collection[str] | None = None,
        lifetime: float | None = None,
        parent: int | None = None,
        is_numbered: bool = False,
    ) -> tuple[AccessToken, str]:
        """Make a token, and return it with its secret, which is shown this once.

        `is_numbered`: its name gets its number, which no other token ever has. So does a name that another token has: sessions belong to
        a name, and one token must not delete those of another.
        """
        secret = secrets.token_urlsafe(32)
        now = self._clock()
        keys = None if sessions is None else frozenset(sessions)
        expires = None if lifetime is None else now + lifetime
        token = AccessToken(0, kind, name, role, _digest(secret), keys, now, expires, parent)
        return await self._add(token, is_numbered=is_numbered), secret

    async def create_for_browser(self, token: AccessToken) -> tuple[AccessToken, str] | None:
        """Make a token for a browser that has shown this one: as much as that may do, and no longer than that is good. None: it was revoked.

        The cookie of a browser is sent to every port of its host; so the token of the user never becomes one. A browser that shows its
        own token is another browser of the token that it signed in with.
        """
        async with self._signing_in:  # two at once would each be the last that there is room for
            for oldest in too_many_browsers(self.browsers(token.root)):
                await self.revoke(oldest.id)
            left = BROWSER_LIFETIME if token.expires is None else min(BROWSER_LIFETIME, token.expires - self._clock())
            made, secret = await self.create(
                "browser", token.name, token.role, sessions=token.sessions, lifetime=left, parent=token.root
            )
        if was_revoked(
            self._tokens, token
        ):  # while the other was stored: that one was not among those that end with it
            await self.revoke(made.id)
            return None
        return made, secret

    async def revoke(self, id: int) -> AccessToken | None:
        """End a token for ever, with those of browsers that signed in with it, and return it; None if no token has this number."""
        token = next((each for each in self._tokens.values() if each.id == id), None)
        if token is not None:
            self._drop(token)
            await self._store_end(token)
        return token

    def _drop(self, token: AccessToken) -> None:
        """End a token and those of its browsers in memory: all of them before anything is waited for."""
        for each in [token, *(each for each in self._tokens.values() if each.parent == token.id)]:
            if self._tokens.pop(each.digest, None) is not None and self.revoked is not None:
                self.revoked(each)

    def is_good(self, token: AccessToken) -> bool:
        """Whether a token that was found a while ago is still good."""
        return not was_revoked(self._tokens, token) and not has_expired(token, self._clock())

    def find(self, secret: str) -> AccessToken | None:
        """Return the token of a secret, if it is good now."""
        digest = _digest(secret)
        token = self._tokens.get(digest)
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None
        return None if has_expired(token, self._clock()) else token

    def list(self, *kinds: Kind) -> Sequence[AccessToken]:
        """Return the tokens of these kinds that are good now, by their numbers."""
        now = self._clock()
        found = [each for each in self._tokens.values() if each.kind in kinds and not has_expired(each, now)]
        return sorted(found, key=lambda each: each.id)

    def browsers(self, id: int) -> Sequence[AccessToken]:
        """Return the tokens of the browsers that are signed in with a token, by their numbers."""
        return [each for each in self.list("browser") if each.parent == id]

    async def forget_session(self, key: str) -> None:
        """Revoke the shares of a session that was deleted.

        Raises:
            AcpError: that one of them was revoked could not be stored. It is good no longer, and so are the others.
        """
        shares = [
            each
            for each in self._tokens.values()
            if each.sessions is not None
            and key in each.sessions
            and each.parent is None  # a browser ends with its share
        ]
        done = await asyncio.gather(*(self.revoke(share.id) for share in shares), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error

    # Launch codes.

    async def launch_code(self, role: AccessRole = AccessRole.ADMIN, parent: int | None = None) -> str:
        """Make a code that is good once, for `LAUNCH_LIFETIME`. With the number of a token, what signs in with it is a browser of that."""
        code = secrets.token_urlsafe(32)
        await self._add_code(_digest(code), LaunchCode(self._clock() + LAUNCH_LIFETIME, role, parent))
        return code

    async def redeem(self, code: str, device: str = "") -> tuple[AccessToken, str] | None:
        """Return a new token for a browser that has a launch code; None if the code is unknown, used or too old.

        `device` is what the browser calls itself, such as `Firefox on Linux`. It is a part of the token's name, with a number behind it.
        """
        found = await self._use_code(_digest(code))
        if self._clock() >= found.expires:
            return None
        if found.parent is not None:
            parent = next((each for each in self._tokens.values() if each.id == found.parent), None)
            if parent is None or has_expired(parent, self._clock()):
                return None
            role = min(found.role, parent.role)
            return await self.create_for_browser(msgspec.structs.replace(parent, role=role))
        role = found.role
        name = device if _DEVICE.fullmatch(device) else "browser"
        return await self.create("browser", name, role, lifetime=BROWSER_LIFETIME, is_numbered=True)


class TokenStore(AccessTokens):
    """The tokens of a gateway, in memory and in its file. Loaded once: this process is the only one that changes them."""

    def __init__(self, database: Database, directory: Path, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(directory, clock)
        self._database = database
        self._codes: dict[bytes, LaunchCode] = {}

    async def _read(self) -> None:
        query = """
            SELECT id, kind, name, role, digest, sessions, created, expires, parent FROM token WHERE revoked IS NULL
            AND (parent IS NULL OR parent IN (SELECT id FROM token WHERE revoked IS NULL))
        """
        rows = await self._database.read(lambda connection: connection.execute(query).fetchall())
        self._tokens = {row[4]: _token(row) for row in rows}

    async def _add(self, token: AccessToken, *, is_numbered: bool) -> AccessToken:
        stored = None if token.sessions is None else msgspec.json.encode(sorted(token.sessions)).decode()
        name, parent = token.name, token.parent

        def create(connection: Connection) -> tuple[int, str]:
            taken = connection.execute("SELECT 1 FROM token WHERE name = ? AND revoked IS NULL", (name,)).fetchone()
            places = "kind, name, role, digest, sessions, created, expires, parent"
            statement = f"INSERT INTO token ({places}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
            values = (token.kind, name, int(token.role), token.digest, stored, token.created, token.expires, parent)
            id = int(connection.execute(statement, values).lastrowid or 0)
            own = own_name(name, id, is_taken=parent is None and (is_numbered or taken is not None))
            connection.execute("UPDATE token SET name = ? WHERE id = ?", (own, id))
            return id, own

        id, own = await self._database.run(create)
        added = self._tokens[token.digest] = msgspec.structs.replace(token, id=id, name=own)
        return added

    async def _store_end(self, token: AccessToken) -> None:
        now = self._clock()

        def revoke(connection: Connection) -> None:
            # Those of browsers are not kept: one who has a token can make any number of them.
            connection.execute("UPDATE token SET revoked = ? WHERE id = ?", (now, token.id))
            own = "DELETE FROM token WHERE parent = ? OR (id = ? AND kind = 'browser')"
            connection.execute(own, (token.id, token.id))

        await self._database.run(revoke)

    async def _add_code(self, digest: bytes, code: LaunchCode) -> None:
        for oldest in too_many_codes([each for each, other in self._codes.items() if other.parent == code.parent]):
            del self._codes[oldest]
        self._codes[digest] = code

    async def _use_code(self, digest: bytes) -> LaunchCode:
        return use_up(self._codes, digest)


def too_many_codes(waiting: Sequence[T]) -> Sequence[T]:
    """Return the launch codes, the oldest first, that go before another one of the same token is made."""
    return waiting[: max(0, len(waiting) - LAUNCH_CODES + 1)]


def too_many_browsers(signed_in: Sequence[AccessToken]) -> Sequence[AccessToken]:
    """Return the browsers to be signed out before another one signs in with the same token."""
    return signed_in[: max(0, len(signed_in) - BROWSERS + 1)]


def own_name(name: str, id: int, *, is_taken: bool) -> str:
    """Return the name of a token: the one that was given, or with the number of the token if another may have it."""
    return f"{name} {id}" if is_taken else name


def was_revoked(tokens: Mapping[bytes, AccessToken], token: AccessToken) -> bool:
    """Whether a token that was found a while ago has been revoked since."""
    return token.digest not in tokens


def use_up(codes: dict[bytes, LaunchCode], digest: bytes) -> LaunchCode:
    """Take a launch code out of those that are good: it is used once."""
    return codes.pop(digest, NO_CODE)


def has_expired(token: AccessToken, now: float) -> bool:
    """Whether the time of a token is over."""
    return token.expires is not None and now >= token.expires


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()


def _token(row: Sequence[object]) -> AccessToken:
    id, kind, name, role, digest, sessions, created, expires, parent = row
    values = {
        "id": id,
        "kind": kind,
        "name": name,
        "role": role,
        "digest": digest,
        "sessions": None if sessions is None else msgspec.json.decode(str(sessions)),
        "created": created,
        "expires": expires,
        "parent": parent,
    }
    return msgspec.convert(values, AccessToken)
