"""Authentication: methods, sign-in, sign-out, status."""

from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec

from antiphon.protocol.base import Choice, Items, Json, Legacy, Model, OrDefault, Unknown, unstable
from antiphon.protocol.v1.base import AuthMethodId, SecretModel
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "AgentAuth", "AuthAccount", "AuthMethod", "AuthState", "AuthStatus", "AuthStatusResult", "AuthStatusUpdate",
    "Authenticate", "AuthenticateResult", "EnvVarAuth", "Logout", "LogoutResult", "TerminalAuth",
]  # fmt: skip


class AgentAuth(Model, frozen=True):
    """The agent signs in by itself, for example through the browser."""

    id: AuthMethodId
    name: str
    description: str | None = None


class TerminalAuth(SecretModel, frozen=True, tag_field="type", tag="terminal"):
    """The client runs the agent's program with these arguments in a terminal, and the user signs in there."""

    __secret__: ClassVar[tuple[str, ...]] = ("env",)

    id: AuthMethodId
    name: str
    description: str | None = None
    args: OrDefault[list[str]] = msgspec.field(default_factory=list)
    env: OrDefault[dict[str, str]] = msgspec.field(default_factory=dict)


class EnvVarAuth(Model, frozen=True, tag_field="type", tag="env_var"):
    """Legacy: the user sets variables of the environment and starts the agent again."""

    id: AuthMethodId
    name: str
    description: str | None = None
    vars: list[Json] = msgspec.field(default_factory=list)
    link: str | None = None


if TYPE_CHECKING:
    AuthMethod: TypeAlias = TerminalAuth | AgentAuth | EnvVarAuth | Unknown
else:

    class AuthMethod(Choice):
        """A way to sign in; without a `type` the agent does it alone."""

        tag = "type"
        by_tag = {"terminal": TerminalAuth, "env_var": EnvVarAuth}  # noqa: RUF012
        otherwise = AgentAuth
        otherwise_tag = "agent"


class Authenticate(SecretModel, frozen=True):
    """Sign in with one of the agent's methods."""

    __secret__: ClassVar[tuple[str, ...]] = ("password", "token")

    method_id: AuthMethodId
    password: Legacy[str | None] = None
    token: Legacy[str | None] = None


class AuthenticateResult(Model, frozen=True):
    """The user is signed in."""


class Logout(Model, frozen=True):
    """Sign out."""


class LogoutResult(Model, frozen=True):
    """The user is signed out."""


@unstable
@unknown_reads_as("unknown")
class AuthState(Word):
    """Whether the agent can work as it is."""

    AUTHENTICATED = "authenticated"
    UNAUTHENTICATED = "unauthenticated"
    NOT_REQUIRED = "not_required"
    # Not `UNKNOWN`: that is what a word outside the list is called.
    UNDETERMINED = "unknown"


@unstable
class AuthAccount(Model, frozen=True):
    """An account the agent is signed in with."""

    label: str
    active: bool | None = None
    name: str | None = None
    email: str | None = None
    organization: str | None = None


@unstable
class AuthStatus(Model, frozen=True):
    """Ask whether the agent is signed in."""


@unstable
class AuthStatusResult(Model, frozen=True):
    """Whether the user is signed in, and with which account."""

    state: AuthState
    accounts: Items[AuthAccount] = msgspec.field(default_factory=list)


@unstable
class AuthStatusUpdate(Model, frozen=True):
    """The agent signed in or out."""

    state: AuthState
    accounts: Items[AuthAccount] = msgspec.field(default_factory=list)
