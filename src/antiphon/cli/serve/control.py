"""Status, tokens, shares, sessions and backups of a gateway. One that runs is asked; else its data is opened here."""

import asyncio
import http.client
import json
import os
import shlex
import socket
import ssl
import sys
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from antiphon.cli.outcome import Misused
from antiphon.cli.serve.fleet import DATA, check_fleet_options, fleet_source
from antiphon.config.directories import state_dir
from antiphon.errors import AcpError
from antiphon.gateway.access.tokens import TOKEN_FILE
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.data import FILE_NAME, GatewayData, copy_file, data_directory
from antiphon.gateway.server.admin import Admin, AdminRequest
from antiphon.gateway.server.program import ADDRESS_FILE, GatewayAddress, GatewaySource, ServeOptions
from antiphon.store.errors import DirectoryInUse
from antiphon.text import exact_line, one_line

__all__ = ["run_control"]

ANSWER_TIMEOUT: Final = 30.0
"""Seconds in which a gateway that runs has to answer."""

_CALLER: Final = Principal("command line", AccessRole.ADMIN)
_NOT_RUNNING: Final = "no gateway runs here"
_OF_TOKENS: Final = ("tokens", "shares", "browsers")
"""Facts that the file of a gateway in a fleet does not have."""


def run_control(options: Any) -> int:
    """Run a subcommand and return the exit status."""
    source = _fleet(options)
    chosen = Path(options.data) if options.data else state_dir() / DATA if source is not None else None
    directory = data_directory(chosen)
    if options.command == "backup":
        return _backup(directory, Path(options.file), options.json)
    request = _request(options)
    result = _ask(directory, request, source)
    if result.get("state") == "running":
        result |= _where(_address(directory))
    if getattr(options, "launch", False):
        result["page"] = _page(directory)
    follow = _how_to_follow(directory, result) if request.action == "share" else ""
    if options.json:
        sys.stdout.write(f"{json.dumps(result)}\n")
    else:
        sys.stdout.write(_shown(options.command, result))
        sys.stdout.flush()
        sys.stderr.write(follow)
    return 0


def _request(options: Any) -> AdminRequest:
    match options.command:
        case "status":
            return AdminRequest("status")
        case "tokens" | "shares" if options.revoke is not None:
            return AdminRequest("revoke", id=options.revoke)
        case "tokens" if options.create:
            return AdminRequest("create token", name=options.create, role=options.role or "", lifetime=options.lifetime)
        case "shares" if options.create:
            return AdminRequest(
                "share",
                name=options.name or "",
                role=options.role or "",
                sessions=options.create,
                lifetime=options.lifetime,
            )
        case "sessions" if options.action == "delete":
            return AdminRequest("delete session", sessions=options.sessions)
        case _:
            return AdminRequest(options.command)


def _fleet(options: Any) -> GatewaySource | None:
    """Return what opens a gateway of a fleet, if one is named.

    Raises:
        Misused: an option is for a fleet, and none is named.
    """
    check_fleet_options(options, None)
    return fleet_source(options) if options.fleet else None


def _ask(directory: Path, request: AdminRequest, source: GatewaySource | None = None) -> dict[str, Any]:
    """Ask the gateway that has this data, or open the data if none runs."""
    if source is None and not (directory / FILE_NAME).exists():
        raise Misused(f"`{directory}` has no data of a gateway", hint="start one with `antiphon serve`, or give --data")
    try:
        return asyncio.run(_ask_data(directory, request) if source is None else _ask_fleet(directory, request, source))
    except DirectoryInUse:
        return _ask_server(directory, _address(directory), request)


async def _ask_data(directory: Path, request: AdminRequest) -> dict[str, Any]:
    async with GatewayData.open(directory) as data:
        await data.tokens.load()
        if request.action == "launch":
            raise AcpError(_NOT_RUNNING, hint="start it with `antiphon serve`: it prints an address")
        is_copy = await data.is_copy()
        if is_copy and request.action not in ("status", "sessions"):
            raise Misused(
                "this gateway is one of a fleet, which has the tokens and sessions, and it does not run",
                hint="give the broker: antiphon serve --fleet URL [--credentials FILE] tokens",
            )
        result = dict(await Admin(data).answer(request, _CALLER, "local"))
        return {name: value for name, value in result.items() if not (is_copy and name in _OF_TOKENS)}


async def _ask_fleet(directory: Path, request: AdminRequest, source: GatewaySource) -> dict[str, Any]:
    """Open a gateway of a fleet that does not run, as far as admins need it."""
    if request.action == "launch":
        raise AcpError(_NOT_RUNNING, hint="start it with `antiphon serve --fleet URL`: it prints an address")
    async with AsyncExitStack() as stack:
        opened = await source(ServeOptions(data=directory), stack)
        stack.push_async_callback(opened.hub.close)
        opened.data.tokens.revoked = lambda token: opened.hub.drop_prompts(str(token.id), "the token was revoked")
        hub = None if request.action == "status" else opened.hub  # which says of one without that it does not run
        return dict(await Admin(opened.data, hub).answer(request, _CALLER, "local"))


def _address(directory: Path) -> GatewayAddress:
    try:
        address = msgspec.json.decode((directory / ADDRESS_FILE).read_bytes(), type=GatewayAddress)
        if is_alive(address.pid):
            return address
        raise ProcessLookupError
    except (OSError, msgspec.DecodeError) as error:
        raise AcpError(
            f"no gateway runs with the data in `{directory}`", hint="start it with `antiphon serve`"
        ) from error


def _where(address: GatewayAddress) -> dict[str, str]:
    """Where a gateway is reached, as clients name it."""
    found = {"public": address.public_url, "url": address.url, "unix": address.unix and f"unix://{address.unix}"}
    return {name: value for name, value in found.items() if value}


def _page(directory: Path) -> str:
    """Return an address that signs a browser in, once."""
    address = _address(directory)
    url = address.public_url or address.url
    if not url:
        raise AcpError(
            f"no browser reaches the Unix socket `{address.unix}`",
            hint="start the gateway without --unix, or name what is in front of it with --public-url",
        )
    return f"{url}/#code={_ask(directory, AdminRequest('launch'))['code']}"


def _how_to_follow(directory: Path, share: dict[str, Any]) -> str:
    """The commands and addresses with which a guest follows the sessions of a share; empty if no gateway runs.

    The address for a browser is put into the share too. Its secret is in the fragment, which is not sent.
    """
    try:
        address = _address(directory)
    except AcpError:
        return ""
    base = address.public_url or address.url
    where = base.replace("http", "ws", 1) if base else f"unix://{address.unix}:"
    rows = [row for row in _ask(directory, AdminRequest("sessions"))["sessions"] if row["key"] in share["sessions"]]
    words = [["--agent", f"{where}/agents/{row['agent']}/acp", "--resume", row["session_id"]] for row in rows]
    lines = [f"to follow it: antiphon chat --token-file FILE {shlex.join(each)}" for each in words]
    if base:
        to = (
            [f"&to=/session/{quote(rows[0]['agent'], '')}/{quote(rows[0]['session_id'], '')}"] if len(rows) == 1 else []
        )
        share["url"] = f"{base}/#token={share['secret']}{''.join(to)}"
        lines.append(f"in a browser: {share['url']}")
    return "".join(f"{line}\n" for line in lines)


def is_alive(pid: int) -> bool:
    """Whether the process that wrote its address still runs. If not, another program may have its port, and must not get the token."""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):  # also one of another user
        return False
    return pid > 0


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ANSWER_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWER_TIMEOUT)
        self.sock.connect(self._path)


def _connection(address: GatewayAddress) -> http.client.HTTPConnection:
    if address.unix:
        return _UnixConnection(address.unix)
    parts = urlsplit(address.url)
    assert parts.hostname is not None and parts.port is not None  # noqa: S101 - we wrote it
    if not address.certificate:
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=ANSWER_TIMEOUT)
    # The certificate itself is what is trusted here; its name is that of another address of the same gateway.
    context = ssl.create_default_context(cafile=address.certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # also one that an authority has signed
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=ANSWER_TIMEOUT, context=context)


def _ask_server(directory: Path, address: GatewayAddress, request: AdminRequest) -> dict[str, Any]:
    try:
        token = (directory / TOKEN_FILE).read_text(encoding="utf-8").strip()
        connection = _connection(address)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", "/api/admin", msgspec.json.encode(request), headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        where = address.url or address.unix
        hint = f"process {address.pid} has the data: end it, or wait until it has started"
        raise AcpError(f"the gateway at {where} does not answer: {error}", hint=hint) from error
    try:
        found: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        found = {"error": body.decode(errors="replace").strip()}
    if response.status != 200:
        raise AcpError(
            str(found.get("error", "")), hint=str(found.get("hint") or "`antiphon serve --help` shows the usage")
        )
    return found


def _backup(directory: Path, target: Path, as_json: bool) -> int:
    """Copy the file. A reader beside a gateway that runs changes nothing, so the gateway need not be asked."""
    if not (directory / FILE_NAME).exists():
        raise Misused(f"`{directory}` has no data of a gateway", hint="give the directory with --data")

    async def copy() -> None:
        async with GatewayData.open(directory) as data:
            await data.backup(target)

    try:
        asyncio.run(copy())
    except DirectoryInUse:
        copy_file(directory / FILE_NAME, target)
    sys.stdout.write(f"{json.dumps({'file': str(target)}) if as_json else target}\n")
    return 0


# What people see.


def _shown(command: str, result: dict[str, Any]) -> str:
    if "secret" in result:
        return f"{result['secret']}\n"
    for name in ("tokens", "shares"):
        if isinstance(result.get(name), list):
            return _table([_token_row(each) for each in result[name]], f"no {name}")
    if isinstance(result.get("sessions"), list) and command == "sessions":
        return _table([_session_row(each) for each in result["sessions"]], "no sessions")
    if "deleted" in result:
        return "".join(
            f"deleted {each['key'][:12]} {one_line(each['title'])}".rstrip() + "\n" for each in result["deleted"]
        )
    if command in ("tokens", "shares"):
        return f"revoked {result.get('id')} {result.get('name')}\n"
    return _table([[name.replace("_", " "), _fact(name, value)] for name, value in result.items()], "nothing")


def _fact(name: str, value: Any) -> str:
    """Return a fact of the status for people."""
    if name == "since":
        return _when(value)
    if name == "uptime":
        return str(timedelta(seconds=int(value)))
    if name == "agents" and isinstance(value, list):
        return ", ".join(f"{each['name']} ({_agent(each)})" for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _agent(agent: dict[str, Any]) -> str:
    used = f", {agent['processes']} processes, {agent['memory'] // 1024**2} MiB" if agent["processes"] else ""
    return f"{agent['state']}{used}"


def _token_row(token: dict[str, Any]) -> list[str]:
    scope = "all sessions" if token["sessions"] is None else ", ".join(key[:12] for key in token["sessions"])
    until = "" if token["expires"] is None else f"until {_when(token['expires'])}"
    browsers = f"{token['browsers']} browsers" if token["browsers"] else ""
    signed_in = browsers if token["parent"] is None else f"signed in with {token['parent']}"
    return [str(token["id"]), token["kind"], token["name"], token["role"], scope, until, signed_in]


def _session_row(row: dict[str, Any]) -> list[str]:
    state = "archived" if row["archived"] else "running" if row["running"] else ""
    return [
        row["key"][:12],
        exact_line(row["session_id"])[:12],  # the agent has chosen it, and the title
        row["agent"],
        _when(row["updated"]),
        exact_line(row["cwd"]),
        one_line(row["title"]),
        state,
    ]


def _table(rows: list[list[str]], nothing: str) -> str:
    if not rows:
        return f"{nothing}\n"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _when(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
