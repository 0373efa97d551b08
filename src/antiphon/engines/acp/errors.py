"""Errors of an agent as errors for our own client, with what is wrong and what to do."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from antiphon.client.capabilities import Abilities
from antiphon.errors import (
    Code,
    ConnectionClosed,
    NotSupported,
    RemoteProtocolError,
    RequestError,
    RequestRefused,
    RequestTimeout,
    SpawnFailed,
)
from antiphon.protocol import v1

__all__ = ["AgentIdentity", "check_end", "forwarded", "need_method", "request_errors"]


class AgentIdentity:
    """The agent that errors are about: its name, its command, and its authentication methods as far as they are known."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.program = command[0]
        self.methods: Sequence[v1.AuthMethod] = ()


@contextmanager
def request_errors(agent: AgentIdentity) -> Iterator[None]:
    """Turn every error of the agent in this block into an error for our client. Its own refusals stay what they are.

    Raises:
        RequestError: instead of what was raised.
    """
    try:
        yield
    except RequestRefused as error:
        raise _sign_in(agent, error) if error.wants_sign_in else forwarded(error) from error
    except NotSupported as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", str(error)) from error
    except SpawnFailed as error:
        raise RequestError(Code.INTERNAL_ERROR, f"{agent.name} cannot be started", str(error)) from error
    except ConnectionClosed as error:
        hint = "try again: it is started anew, and the session goes on as far as it can"
        raise RequestError(
            Code.INTERNAL_ERROR, f"{agent.name} ended unexpectedly", error.sentence, hint=hint
        ) from error
    except RequestTimeout as error:
        raise RequestError(Code.REQUEST_TIMEOUT, f"{agent.name} does not respond", str(error)) from error
    except RemoteProtocolError as error:
        raise RequestError(Code.INTERNAL_ERROR, f"{agent.name} makes no sense", str(error)) from error


def check_end(agent: AgentIdentity, result: v1.PromptResult) -> None:
    """Raise for stop reasons that are not in the schema and mean that the turn failed: every client understands an error.

    Raises:
        RequestError: the turn failed.
    """
    match result.stop_reason.value:
        case "auth_required":
            raise RequestRefused(Code.AUTH_REQUIRED, "Authentication required")
        case "tool_error":
            raise RequestError(Code.INTERNAL_ERROR, f"{agent.name} stopped because a tool failed")
        case _:
            pass


def need_method(abilities: Abilities, method: str) -> None:
    """Check that the agent has this method.

    Raises:
        RequestError: it does not.
    """
    try:
        abilities.need_method(method)
    except NotSupported as error:
        raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", str(error)) from error


def forwarded(error: RequestRefused) -> RequestError:
    """Return the refusal of a peer as one of ours: raised as it is it would count as an internal error."""
    return RequestError(error.code, error.message, error.data)


def _sign_in(agent: AgentIdentity, error: RequestRefused) -> RequestError:
    methods = [way for method in agent.methods if (way := _hint(agent, method))]
    hint = "; or ".join(methods) if methods else "it offers no way to sign in here: see its documentation"
    reported = "" if error.reason.lower().startswith("authentication required") else f" ({error.reason})"
    message = f"Authentication required: sign in to {agent.name} first{reported}"
    return RequestError(Code.AUTH_REQUIRED, message, error.data, hint=hint)


def _hint(agent: AgentIdentity, method: v1.AuthMethod) -> str:
    match method:
        case v1.TerminalAuth():
            return f"run `{shlex.join((agent.program, *method.args))}` in a terminal ({method.name})"
        case v1.AgentAuth() | v1.EnvVarAuth():
            return f"authenticate with `{method.id}` ({method.name})"
        case _:
            return ""
