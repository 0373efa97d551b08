"""The account of Codex: whether the user is signed in, signing in and out, by its server and its own commands.

Only an API key passes through here, from the environment to the server. It stores the key if the user chose to sign in with it, and keeps
that of CODEX_API_KEY in memory.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from antiphon.engines.cli_engine import run_login, sign_in_error
from antiphon.engines.cli_program import CODEX, FoundProgram, home_directory, run_cli
from antiphon.engines.codex import wire
from antiphon.engines.codex.engine import API_KEY, KEYS, METHODS, OWN_KEY
from antiphon.errors import Code, ConnectionClosed, RequestError

if TYPE_CHECKING:
    from antiphon.engines.codex.hub import CodexHub
    from antiphon.engines.codex.server import CodexServer

__all__ = ["WAYS", "Mark", "kept_login", "login", "must_be_signed_in", "sign_in", "sign_in_needed", "sign_out"]

Mark = tuple[int, int, int] | None
"""A file's identity, time and size; None if there is no such file."""

WAYS: Final = {"chatgpt": (), "device": ("--device-auth",)}
"""How the user wants to sign in → its further words for the CLI. The first is the default."""


def login(way: str = "") -> NoReturn:
    """Become the CLI's own login, in the terminal that we were started in.

    Raises:
        AcpError: there is no such way, no CLI, or one that is too old.
    """
    run_login(CODEX, ("login",), WAYS, way)


async def must_be_signed_in(hub: "CodexHub") -> "CodexServer":
    """Return the server if it may work: the user is signed in, or the model's provider wants no login.

    Raises:
        RequestError: the user is not signed in (-32000, with what to do), or it does not start.
    """
    server, account = await _server_and_account(hub)
    if not _may_work(account):
        server, account = await _with_new_login(hub, server)
    if not _may_work(account) and hub.may_use_key and hub.key is None and (key := _key(OWN_KEY)) is not None:
        hub.key = key
        hub.drop(server)
        server, account = await _server_and_account(hub)
    if not _may_work(account):
        raise sign_in_needed()
    return server


async def sign_in(hub: "CodexHub", method_id: str) -> None:
    """Sign in by a way that the user has chosen: take the key, or see whether the login in the terminal has worked.

    Raises:
        RequestError: it has not (-32000, with what to do), there is no key, or the server refuses it.
    """
    from antiphon.engines.codex.server import client_errors

    with client_errors():
        if method_id == API_KEY.id:
            key = _key(*KEYS)
            if key is None:
                raise sign_in_needed(method_id=method_id)
            if key == hub.key:  # it is used already, and sessions may work with it
                return
            await _request(hub, "account/login/start", {"type": "apiKey", "apiKey": key}, "sign you in")
            return
        server, account = await _server_and_account(hub)
        if _may_be_old(hub, account):
            hub.key = None  # what was stored since comes first
            _, account = await _with_new_login(hub, server)
        if not _may_work(account):
            raise sign_in_needed(method_id=method_id)


async def sign_out(hub: "CodexHub") -> None:
    """Let Codex forget its login.

    Raises:
        RequestError: it could not.
    """
    from antiphon.engines.codex.server import client_errors

    with client_errors():
        await _request(hub, "account/logout", None, "sign you out")
        hub.may_use_key = False
        if hub.key is not None:
            hub.key = None
            hub.drop(await hub.ready())  # it would store no other login


def kept_login() -> Mark:
    """Return the mark of the file in which Codex stores its login, to see whether the user has signed in since."""
    home = os.environ.get("CODEX_HOME") or Path.home() / ".codex"
    try:
        found = os.stat(Path(home, "auth.json"))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def sign_in_needed(details: str = "", method_id: str | None = None) -> RequestError:
    """The error that asks a client to sign the user in, with the login methods. `details`: the message of Codex."""
    if method_id == API_KEY.id:
        what = f"set {' or '.join(KEYS)} in the environment of the agent and start it again"
    else:
        what = f"run `antiphon agent --engine codex --login` in a terminal, or set {OWN_KEY} in the environment of the agent"
    return sign_in_error("Codex", METHODS, what, details)


def _key(*names: str) -> str | None:
    """Return the first API key that one of these variables holds."""
    return next((key for name in names if (key := os.environ.get(name, "").strip())), None)


def _may_be_old(hub: "CodexHub", account: wire.AccountRead) -> bool:
    """Whether there may be another login than the one that the server knows. Sessions that work with that must not be disturbed for nothing."""
    if not account.requires_openai_auth or (account.account is not None and account.account.type == "chatgpt"):
        return False
    return account.account is None or hub.login is None or kept_login() != hub.login


def _may_work(account: wire.AccountRead) -> bool:
    return account.account is not None or not account.requires_openai_auth


async def _server_and_account(hub: "CodexHub") -> "tuple[CodexServer, wire.AccountRead]":
    server = await hub.ready()
    try:
        return server, await _read_account(server)
    except ConnectionClosed:  # it has just been replaced, because of a new login
        server = await hub.ready()
        return server, await _read_account(server)


async def _read_account(server: "CodexServer") -> wire.AccountRead:
    from antiphon.engines.process import CliRefused

    try:
        return await server.call("account/read", {}, wire.AccountRead)
    except CliRefused as error:
        raise RequestError(
            Code.INTERNAL_ERROR, "Codex does not report whether you are signed in", error.message
        ) from error


async def _with_new_login(hub: "CodexHub", server: "CodexServer") -> "tuple[CodexServer, wire.AccountRead]":
    """Return the server, started again if the user has signed in since: it reads its login when it starts, and never again."""
    import asyncio

    if await asyncio.to_thread(_has_login, hub.program):
        hub.drop(server)
    return await _server_and_account(hub)


def _has_login(found: FoundProgram) -> bool:
    """Whether a new process would be signed in. Blocks."""
    return run_cli(found, "login", "status", cwd=home_directory()).status == 0


async def _request(hub: "CodexHub", method: str, params: dict[str, str] | None, what: str) -> None:
    from antiphon.engines.process import CliRefused

    server = await hub.ready()
    try:
        await server.request(method, params)
    except CliRefused as error:
        raise RequestError(Code.INTERNAL_ERROR, f"Codex could not {what}", error.message) from error
    hub.login = kept_login()  # the server has written it itself
