"""`antiphon bridge`: connect a client and an agent that use different transports, or speak different versions of ACP."""

import asyncio
import hmac
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from signal import SIGTERM
from typing import TYPE_CHECKING, Any

from antiphon.cli.arguments import Parser, add_token, read_token, split_command
from antiphon.cli.outcome import Misused, fail, kind_of, require_streams, status_of
from antiphon.connection.bridge import Bridge
from antiphon.connection.reports import TranslationLoss
from antiphon.errors import AcpError, ExtraMissing, ProcessDied, sentence_and_hint
from antiphon.protocol.v1.version import V1

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from antiphon.connection.negotiation import ChooseByRequest
    from antiphon.connection.reports import Report
    from antiphon.transports.asgi import Admit
    from antiphon.transports.base import Transport
    from antiphon.transports.remote import RemoteAddress

__all__ = ["OpenAgent", "bridge_stdio", "parser", "remote_address", "run", "run_until_signal"]

EPILOG = """\
The client is at stdin and stdout, or connects to the address of --listen; the agent is CMD, or at the address of --connect. Messages are
forwarded byte for byte; only the ids of requests are replaced, so that those of both sides are kept apart, and put back in responses.
If the agent does not speak the client's version of ACP, messages are translated between versions 1 and 2; what is lost goes to stderr.
Nothing is stored: when one side ends, the other is closed.

Each client of --listen gets an agent of its own. It listens on this machine alone, and asks for a token: that of --client-token-file, or
one that it makes and writes into a file whose path is printed. A socket at unix:PATH is for this user, and asks for none.

  antiphon bridge -- my-agent --acp
  antiphon bridge --connect wss://host/acp --token-file ~/.token
  antiphon bridge --listen 8137 -- my-agent --acp

exit status: that of CMD if it ends by itself, 0 if the client ends first, 1 if an address is not reached, 2 wrong arguments.
"""


def parser() -> "argparse.ArgumentParser":
    """Return the parser of the command."""
    words = Parser(
        prog="antiphon bridge",
        usage="antiphon bridge [OPTIONS] (-- CMD … | --connect URL)",
        description="Connect a client and an agent that use different transports (stdio, WebSocket, streamable HTTP) or speak different versions of ACP.",
        epilog=EPILOG,
    )
    words.add_argument("--connect", metavar="URL", help="the address of the agent, in place of CMD")
    add_token(words)
    words.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="wait for clients at PORT, HOST:PORT or unix:PATH, in place of stdin and stdout",
    )
    words.add_argument("--client-token-file", metavar="FILE", help="the token that clients of --listen have to send")
    words.add_argument(
        "--no-auth", action="store_true", help="let every program on this machine connect without a token"
    )
    return words


def run(arguments: list[str]) -> int:
    """Bridge until one side ends, and return the exit status."""
    words, command = split_command(arguments)
    options = parser().parse_args(words)
    if (options.connect is None) == (not command):
        raise Misused("give one agent: `-- CMD` or `--connect URL`")
    if options.listen is None and (options.no_auth or options.client_token_file):
        raise Misused("`--no-auth` and `--client-token-file` are for clients of `--listen`")
    agent = _agent(options, command or [])
    if options.listen is None:
        require_streams()
        return run_until_signal(bridge_stdio(agent))
    return run_until_signal(_listen(options, agent))


def run_until_signal(work: Coroutine[Any, Any, int]) -> int:
    """Run it on the fastest loop there is. TERM ends it in order, as Ctrl-C does."""

    async def until_signal() -> int:
        task = asyncio.ensure_future(work)
        terminated = asyncio.Event()

        def end() -> None:
            terminated.set()
            task.cancel()

        asyncio.get_running_loop().add_signal_handler(SIGTERM, end)
        try:
            return await task
        except asyncio.CancelledError:
            if not terminated.is_set():
                raise
            return 0

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(until_signal())


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


# The agent.

OpenAgent = Callable[[], Awaitable["Transport"]]


def _agent(options: "argparse.Namespace", command: list[str]) -> OpenAgent:
    """Return what opens a connection to the agent."""
    from antiphon.config.environment import TOKEN, environment_for

    if options.connect is not None:
        return remote_address(options).open
    os.environ.pop(TOKEN, "")
    if options.token_file is not None or options.plaintext:
        raise Misused("`--token-file` and `--plaintext` are for `--connect`")
    from antiphon.catalogue.known import keys_for
    from antiphon.transports.process import spawn

    async def start() -> "Transport":
        transport = await spawn(command, env=environment_for(keys_for(command)))
        transport.on_stderr = _show_stderr
        return transport

    return start


def remote_address(options: "argparse.Namespace") -> "RemoteAddress":
    """Return the address of `--connect`, with the token of the file or of the environment. Programs that we start do not get the latter."""
    from antiphon.config.environment import TOKEN
    from antiphon.transports.remote import RemoteAddress

    given = os.environ.pop(TOKEN, "") or None
    token = given if options.token_file is None else read_token(options.token_file)
    return RemoteAddress(options.connect, token=token, plaintext=options.plaintext)


def _show_stderr(text: bytes) -> None:
    with suppress(OSError):  # stderr is closed or full: the agent goes on
        os.write(2, text)


async def bridge_stdio(
    open_agent: OpenAgent, *, keep_requests: bool = False, choose: "ChooseByRequest | None" = None
) -> int:
    """Connect stdin and stdout with an agent until one side ends, and return the exit status.

    `choose` chooses what translates for a client, by its `initialize`; without it the answer of the agent decides.
    """
    from antiphon.transports.stdio import open_stdio

    agent = await open_agent()
    between = _between_versions(agent, open_agent)
    client: Transport = open_stdio()
    if choose is not None:
        from antiphon.connection.negotiation import AgentNegotiation

        client = AgentNegotiation(client, choose, observer=_show_loss)
    forwarding = Bridge(client, between, version=V1, keep_requests=keep_requests)
    await forwarding.run()
    reason = between.origin.lost
    if forwarding.ended_first is not between or reason is None:
        return 0
    if isinstance(reason, ProcessDied) and reason.status is not None:
        return reason.status if reason.status >= 0 else 128 - reason.status
    sentence, hint = sentence_and_hint(reason)
    return fail(sentence, hint or "start it again", status_of(reason), kind_of(reason))


def _between_versions(agent: "Transport", reopen: OpenAgent) -> "Transport":
    """Return the transport of an agent that translates if the agent refuses the version of the client."""
    from antiphon.connection.negotiation import ClientNegotiation
    from antiphon.protocol.translate.choice import by_answer

    choose = partial(by_answer, asyncio.get_running_loop().time)
    return ClientNegotiation(agent, choose, observer=_show_loss, reopen=reopen)


def _show_loss(report: "Report") -> None:
    """Write what the other version has no place for to stderr, one line each, so that nothing is lost in silence."""
    if isinstance(report, TranslationLoss):
        word = "refused" if report.refused else "lost"
        _show_stderr(f"{word}: {report.what}: {report.reason}\n".encode(errors="replace"))


# Clients that connect.


async def _listen(options: "argparse.Namespace", open_agent: OpenAgent) -> int:
    try:
        from antiphon.transports.asgi import AcpEndpoint
        from antiphon.transports.asgi.server import listen
    except ImportError as error:
        raise ExtraMissing(
            f"listening on a socket needs the package `{error.name}`", hint="pip install 'antiphon[serve]'"
        ) from error

    async def serve(client: "Transport") -> None:
        try:
            agent = await open_agent()
        except AcpError as error:
            sentence, hint = sentence_and_hint(error)
            fail(sentence, hint or "check the command or the address of the agent", 1, kind_of(error))
            await client.close()
            return
        await Bridge(client, _between_versions(agent, open_agent), version=V1).run()

    with ExitStack() as stack:
        listening, address = stack.enter_context(_bound(options.listen))
        token, path = None, None
        if not options.no_auth and listening.family != socket.AF_UNIX:
            token, path = stack.enter_context(_client_token(options.client_token_file, address))
        async with listen(AcpEndpoint(admit=_admit(serve, token, address)), listening), _stopped_by_us():
            sys.stderr.write(f"listening on {address}\n" + (f"the token is in {path}\n" if path else ""))
            sys.stderr.flush()
            await asyncio.Event().wait()  # until a signal
    return 0


@asynccontextmanager
async def _stopped_by_us() -> AsyncIterator[None]:
    """The only way out of a server is a signal: that is no error."""
    with suppress(asyncio.CancelledError):
        yield


@contextmanager
def _bound(where: str) -> "Iterator[tuple[socket.socket, str]]":
    """Bind a socket of this machine, and give it with its address."""
    from antiphon.transports.asgi.heads import LOOPBACK
    from antiphon.transports.asgi.sockets import bound_tcp, bound_unix

    with ExitStack() as stack:
        if where.startswith("unix:"):
            path = Path(where.removeprefix("unix:").removeprefix("//")).absolute()
            try:
                listening = stack.enter_context(bound_unix(path))
            except OSError as error:
                raise Misused(f"`{path}` cannot be made: {error.strerror}", hint="choose another path") from error
            yield listening, f"unix://{path}"
            return
        host, _, port = where.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        if host not in LOOPBACK or not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise Misused(
                f"`{where}` is no address of this machine alone",
                hint="write a port, such as `8137`, and reach it from elsewhere through SSH",
            )
        try:
            listening = stack.enter_context(bound_tcp(host, int(port)))
        except OSError as error:
            raise AcpError(f"`{where}` cannot be used: {error.strerror}", hint="choose another port") from error
        shown = f"[{host}]" if ":" in host else host
        yield listening, f"ws://{shown}:{listening.getsockname()[1]}/acp"


@contextmanager
def _client_token(file: str | None, address: str) -> "Iterator[tuple[str, str | None]]":
    """Give the token of clients; one that is made here stands in a file of this user as long as we listen."""
    if file is not None:
        yield read_token(file), None
        return
    from antiphon.config.directories import state_dir, write_private_file

    token, path = token_urlsafe(32), state_dir() / f"bridge-{address.rpartition(':')[2].partition('/')[0]}.token"
    write_private_file(path, f"{token}\n")
    try:
        yield token, str(path)
    finally:
        path.unlink(missing_ok=True)


def _admit(serve: "Callable[[Transport], Awaitable[None]]", token: str | None, address: str) -> "Admit":
    """Return the check of every request: it names this machine, comes from no page of another, and has the token."""
    from antiphon.transports.asgi import Admission, Refusal
    from antiphon.transports.asgi.heads import ANY_HOST, LOOPBACK, header_of, refused_request
    from antiphon.transports.asgi.sockets import sign_in_socket

    hosts = {ANY_HOST} if address.startswith("unix:") else LOOPBACK

    async def admit(scope: Any) -> Admission | Refusal:
        if (refusal := refused_request(scope, hosts)) is not None:
            return refusal
        given = header_of(scope, b"authorization").encode()
        if token is not None and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            return Refusal(401, "send the token of this bridge", [(b"www-authenticate", b"Bearer")])
        sign_in_socket(scope)
        return Admission(serve)

    return admit
