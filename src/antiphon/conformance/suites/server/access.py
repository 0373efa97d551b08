"""Who is let in: pages of other hosts, which a browser sends along, and clients without the token."""

from collections.abc import Callable

from antiphon.conformance.remote.server_run import INITIALIZE, ServerRun, request_of
from antiphon.conformance.requirements import NotOffered, Requirement
from antiphon.conformance.suites.server.suite import HTTP_SUITE, SOCKET_SUITE, for_both, remote_should

__all__: list[str] = []

FOREIGN = "https://antiphon-check.invalid"
"""The origin of a page of another host."""


@HTTP_SUITE.scenario(
    "http-origin",
    "a page of another host talks to the server",
    shows=(
        remote_should(
            "http.origin",
            "A request from a page of another host is refused with status 403, unless that was allowed.",
            fix="Compare `Origin`, where there is one, with your own address and a list of allowed ones.",
        ),
        remote_should(
            "http.cors",
            "A page of another host is not allowed to read responses: there is no `Access-Control-Allow-Origin` for it.",
            fix="Send no CORS headers, or only for origins that were allowed.",
        ),
    ),
)
async def origin(run: ServerRun) -> None:
    peer = run.http()
    reply = await peer.post(request_of("page", "initialize", INITIALIZE), headers={"Origin": FOREIGN})
    run.holds("http.origin", reply.status == 403, f"it got status {reply.status}", *reply.evidence)
    if reply.status == 200:
        peer.id = reply.head.get("acp-connection-id")
    allowed = reply.head.get("access-control-allow-origin")
    run.holds("http.cors", allowed not in ("*", FOREIGN), f"it is `{allowed}`", *reply.evidence)


@SOCKET_SUITE.scenario(
    "ws-origin",
    "a page of another host opens a WebSocket",
    shows=(
        remote_should(
            "ws.origin",
            "A WebSocket of a page of another host is refused with status 403, unless that was allowed.",
            fix="Compare `Origin`, where there is one, with your own address and a list of allowed ones.",
        ),
    ),
)
async def socket_origin(run: ServerRun) -> None:
    socket = await run.socket().shake({"Origin": FOREIGN})
    run.holds("ws.origin", socket.head.status == 403, f"it got status {socket.head.status}", *socket.evidence)


def _should(id: str, text: str, fix: str) -> Callable[[str], Requirement]:
    return lambda prefix: remote_should(f"{prefix}.{id}", text, fix=fix)


@for_both(
    "token",
    "a client comes without the token",
    _should(
        "token",
        "A server that has a token opens no session for a client without it: it refuses with status 401, or until the client signs in.",
        "Compare the token of each request, before anything else is done with it.",
    ),
)
async def token(run: ServerRun, prefix: str) -> None:
    if run.address.token is None:
        raise NotOffered("no token was given")
    without = {"Authorization": None}
    if prefix == "http":
        reply = await run.http().post(request_of("none", "initialize", INITIALIZE), headers=without)
        run.holds("http.token", reply.status == 401, f"it got status {reply.status}", *reply.evidence)
        return
    peer = run.socket()
    socket = await peer.shake(without)
    if not socket.is_open:
        run.holds("ws.token", socket.head.status == 401, f"it got status {socket.head.status}", *socket.evidence)
        return
    await peer.send(request_of("none", "initialize", INITIALIZE))
    await peer.until(lambda: peer.answer("none") is not None or socket.ended)
    sent = await peer.send(request_of("new", "session/new", {"cwd": str(run.cwd), "mcpServers": []}))
    await peer.until(lambda: peer.answer("new") is not None or socket.ended or socket.closing is not None)
    found = peer.answer("new")
    run.holds("ws.token", found is None or "error" in found.msg, "it got a session", sent, found)
