"""The account of Claude Code: whether the user is signed in, signing in and out, by the CLI's own commands. Sees no secret."""

from typing import Final, NoReturn

import msgspec

from antiphon.engines.claude.engine import API_KEY, METHODS
from antiphon.engines.cli_engine import run_login, sign_in_error
from antiphon.engines.cli_program import CLAUDE, FoundProgram, home_directory, run_cli
from antiphon.errors import Code, RequestError

__all__ = ["WAYS", "check_signed_in", "login", "sign_in_needed", "sign_out"]

WAYS: Final = {"subscription": (), "console": ("--console",)}
"""How the user wants to pay → its further words for the CLI. The first is the default."""


class SignInStatus(msgspec.Struct, rename="camel"):
    """The part of the output of `claude auth status` that is read here."""

    logged_in: bool
    auth_method: str = ""


def login(way: str = "") -> NoReturn:
    """Become the CLI's own login, in the terminal that we were started in.

    Raises:
        AcpError: there is no such way, no CLI, or one that is too old.
    """
    run_login(CLAUDE, ("auth", "login"), WAYS, way)


def check_signed_in(found: FoundProgram, method_id: str) -> None:
    """Check that the CLI has a login to work with. Blocks.

    Raises:
        RequestError: there is no login (-32000, with what to do), or the CLI does not report it.
    """
    # At home: the settings of a project may name a program that gives a key, and it would be run.
    output = run_cli(found, "auth", "status", "--json", cwd=home_directory())
    try:
        status = msgspec.json.decode(output.out, type=SignInStatus)
    except msgspec.DecodeError:
        details = (output.err or output.out).strip().partition("\n")[0][:200]
        raise RequestError(
            Code.INTERNAL_ERROR,
            "Claude Code does not report whether you are signed in",
            details or f"status {output.status}",
        ) from None
    if not status.logged_in:
        raise sign_in_needed(method_id)


def sign_out(found: FoundProgram) -> None:
    """Let the CLI forget its login. Blocks.

    Raises:
        RequestError: it could not.
    """
    output = run_cli(found, "auth", "logout", cwd=home_directory())
    if output.status != 0:
        details = (output.err or output.out).strip()[:500]
        raise RequestError(
            Code.INTERNAL_ERROR, "Claude Code could not sign you out", details or f"it ended with {output.status}"
        )


def sign_in_needed(method_id: str | None = None, details: str = "") -> RequestError:
    """The error that asks a client to sign the user in, with the login methods. `details`: the message of the CLI."""
    if method_id == API_KEY.id:
        what = "set ANTHROPIC_API_KEY in the environment of the agent and start it again"
    else:
        what = "run `antiphon agent --engine claude --login` in a terminal, or set ANTHROPIC_API_KEY in the environment of the agent"
    return sign_in_error("Claude Code", METHODS, what, details)
