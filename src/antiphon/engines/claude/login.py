"""Signing in to Claude Code and out of it: what its own program says and does about it. Sees no secret.

The login itself happens in a terminal, between the user and the CLI: there our program is run with `--login`, and becomes the CLI.
"""

import os
import sys
from typing import Final, NoReturn

import msgspec

from antiphon.engines.claude.engine import API_KEY, METHODS
from antiphon.engines.cli_program import CLAUDE, FoundProgram, ask, find_cli, home, version_of
from antiphon.errors import AcpError, Code, RequestError

__all__ = ["WAYS", "check_signed_in", "login", "sign_in_needed", "sign_out"]

WAYS: Final = {"subscription": (), "console": ("--console",)}
"""How the user wants to pay → what the CLI is told. The first is what it does unless told otherwise."""


class SignInStatus(msgspec.Struct, rename="camel"):
    """What `claude auth status` says; there is more that nobody here needs."""

    logged_in: bool
    auth_method: str = ""


def login(way: str = "") -> NoReturn:
    """Become the CLI's own login, in the terminal that we were started in.

    Raises:
        AcpError: there is no such way, no CLI, or one that is too old.
    """
    way = way or "subscription"
    if way not in WAYS:
        raise AcpError(f"there is no login `{way}`", hint=f"choose one of {', '.join(WAYS)}")
    found = find_cli(CLAUDE)
    version_of(found)
    sys.stdout.flush()
    try:
        os.execv(found.path, [found.path, "auth", "login", *WAYS[way]])  # noqa: S606 - it is meant to be this process
    except OSError as error:
        raise AcpError(
            f"`{found.path}` cannot be started: {error.strerror}", hint="check that it is a program for this machine"
        ) from error


def check_signed_in(found: FoundProgram, method_id: str) -> None:
    """That the CLI has what it needs to work. It blocks.

    Raises:
        RequestError: it has not (-32000, with what to do), or does not say.
    """
    # At home: the settings of a project may name a program that gives a key, and it would be run.
    told = ask(found, "auth", "status", "--json", cwd=home())
    try:
        standing = msgspec.json.decode(told.out, type=SignInStatus)
    except msgspec.DecodeError:
        said = (told.err or told.out).strip().partition("\n")[0][:200]
        raise RequestError(
            Code.INTERNAL_ERROR, "Claude Code does not say whether you are signed in", said or f"status {told.status}"
        ) from None
    if not standing.logged_in:
        raise sign_in_needed(method_id)


def sign_out(found: FoundProgram) -> None:
    """Let the CLI forget its login. It blocks.

    Raises:
        RequestError: it could not.
    """
    told = ask(found, "auth", "logout", cwd=home())
    if told.status != 0:
        said = (told.err or told.out).strip()[:500]
        raise RequestError(
            Code.INTERNAL_ERROR, "Claude Code could not sign you out", said or f"it ended with {told.status}"
        )


def sign_in_needed(method_id: str | None = None, said: str = "") -> RequestError:
    """The refusal that tells a client to sign the user in, with the ways there are. `said`: what the CLI says about it."""
    if method_id == API_KEY.id:
        what = "set ANTHROPIC_API_KEY in the environment of the agent and start it again"
    else:
        what = "run `antiphon agent --engine claude --login` in a terminal, or set ANTHROPIC_API_KEY in the environment of the agent"
    details = f"Claude Code is not signed in{f' ({said})' if said else ''}: {what}"
    return RequestError(
        Code.AUTH_REQUIRED,
        "Authentication required",
        {"details": details, "authMethods": [method.id for method in METHODS]},
    )
