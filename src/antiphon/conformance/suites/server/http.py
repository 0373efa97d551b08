"""Requests over streamable HTTP, and the statuses that they get."""

import ssl
from typing import Final

from antiphon.conformance.remote.raw_http import CONNECTION, SESSION, HttpReply
from antiphon.conformance.remote.server_run import INITIALIZE, HttpPeer, ServerRun, request_of
from antiphon.conformance.requirements import Blocked, NotOffered, Requirement
from antiphon.conformance.suites.server.suite import HTTP_SUITE, remote_must, remote_should

__all__: list[str] = []

FENCE: Final = "_antiphon/fence"
"""A request that no agent knows, and that is harmless for that reason."""

UNKNOWN: Final = "antiphon-no-such-connection"
LARGE: Final = 1024 * 1024


@HTTP_SUITE.scenario(
    "http-initialize",
    "a client opens two connections",
    shows=(
        remote_must(
            "http.initialize",
            "A post of `initialize` without a connection id gets status 200 with the response as its body.",
            fix="Answer the post of `initialize` itself: it is the only one whose response does not come on a stream.",
        ),
        remote_should(
            "http.initialize-type",
            "The body of the response to `initialize` is `application/json`.",
            fix="Send `Content-Type: application/json` with it.",
        ),
        remote_must(
            "http.connection-id",
            f"The response to `initialize` has an id of the connection in the header `{CONNECTION}`.",
            fix=f"Make an id for each connection, and send it as `{CONNECTION}`.",
        ),
        remote_must(
            "http.connection-unique",
            "Each connection has an id of its own.",
            fix="Make a new random id for each `initialize`.",
            needs=("http.connection-id",),
        ),
    ),
)
async def initialize(run: ServerRun) -> None:
    replies = [await run.http().post(request_of("first", "initialize", INITIALIZE)) for _ in range(2)]
    reply = replies[0]
    body = reply.message
    answered = isinstance(body, dict) and "result" in body and body.get("id") == "first"
    found = f"status {reply.status}" + ("" if answered else " without the response")
    run.holds("http.initialize", reply.status == 200 and answered, found, *reply.evidence)
    kind = reply.head.get("content-type")
    run.holds("http.initialize-type", kind.startswith("application/json"), f"it is `{kind}`", *reply.evidence)
    ids = [one.head.get(CONNECTION) for one in replies]
    visible = all(id and id.isascii() and id.isprintable() and " " not in id for id in ids)
    if run.holds("http.connection-id", visible, "there is none", *reply.evidence):
        run.holds("http.connection-unique", ids[0] != ids[1], "two have the same", *replies[1].evidence)
    for one in ids:
        peer = run.http()
        peer.id = one


def _refused(id: str, what: str, *statuses: int, level: object = remote_must) -> Requirement:
    shown = " or ".join(map(str, statuses))
    make = remote_must if level is remote_must else remote_should
    return make(id, f"{what} is refused with status {shown}.", fix=f"Answer it with status {shown}.")


STATUSES: Final = {
    "http.connection-missing": (400,),
    "http.stream-connection-missing": (400,),
    "http.connection-unknown": (404,),
    "http.stream-connection-unknown": (404,),
    "http.delete-unknown": (404,),
    "http.content-type": (415,),
    "http.accept": (406,),
    "http.not-json": (400,),
    "http.not-object": (400,),
    "http.batch": (501, 400),
    "http.initialize-again": (400,),
    "http.session-mismatch": (400,),
    "http.method": (405,),
}
"""Requirement → the statuses that keep it."""


@HTTP_SUITE.scenario(
    "http-refused",
    "a client makes every kind of mistake",
    shows=(
        _refused("http.connection-missing", f"A post without `{CONNECTION}` that is not `initialize`", 400),
        _refused("http.stream-connection-missing", f"A request for a stream without `{CONNECTION}`", 400),
        _refused("http.connection-unknown", "A post to a connection that does not exist", 404),
        _refused("http.stream-connection-unknown", "A request for a stream of a connection that does not exist", 404),
        _refused("http.delete-unknown", "The end of a connection that does not exist", 404, level=remote_should),
        _refused("http.content-type", "A post that is not `application/json`", 415),
        _refused("http.accept", "A request for a stream that does not accept `text/event-stream`", 406),
        _refused("http.not-json", "A post that is not JSON", 400),
        _refused("http.not-object", "A post of JSON that is not a message, such as a number", 400, level=remote_should),
        _refused("http.batch", "A batch", 501, 400),
        _refused(
            "http.initialize-again", "`initialize` on a connection that has it behind it", 400, level=remote_should
        ),
        _refused(
            "http.session-mismatch",
            f"A post whose `{SESSION}` is not the session of its params",
            400,
            level=remote_should,
        ),
        _refused("http.method", "A request with another method than GET, POST and DELETE", 405, level=remote_should),
        remote_must(
            "http.refusals-survived",
            "A connection goes on after requests that were refused.",
            fix="Refuse the request, and leave the connection as it is.",
        ),
    ),
)
async def refused(run: ServerRun) -> None:
    peer = await run.connected_http()
    fence = request_of("fence", FENCE, {})
    sent: dict[str, HttpReply] = {
        "http.connection-missing": await peer.post(fence, headers={CONNECTION: None}),
        "http.connection-unknown": await peer.post(fence, headers={CONNECTION: UNKNOWN}),
        "http.delete-unknown": await peer.delete(UNKNOWN),
        "http.content-type": await peer.post(fence, headers={"Content-Type": "text/plain"}),
        "http.not-json": await peer.post(b"{this is not JSON"),
        "http.not-object": await peer.post(b"7"),
        "http.batch": await peer.post(b"[" + fence + b"]"),
        "http.initialize-again": await peer.post(request_of("again", "initialize", INITIALIZE)),
        "http.session-mismatch": await _mismatch(peer),
        "http.method": await run.address.exchange(run.log, "PUT", {CONNECTION: peer.id}, b"{}"),
        "http.stream-connection-missing": await _get(peer, {CONNECTION: None}),
        "http.stream-connection-unknown": await _get(peer, {CONNECTION: UNKNOWN}),
        "http.accept": await _get(peer, {CONNECTION: peer.id, "Accept": "application/json"}),
    }
    for id, reply in sent.items():
        run.holds(id, reply.status in STATUSES[id], f"it got status {reply.status}", *reply.evidence)
    try:
        await peer.request(FENCE, {})
        run.holds("http.refusals-survived", True, "")
    except Blocked as silent:
        run.holds("http.refusals-survived", False, str(silent), *sent["http.batch"].evidence)


async def _get(peer: HttpPeer, headers: dict[str, str | None]) -> HttpReply:
    return await peer.address.exchange(peer.log, "GET", {"Accept": "text/event-stream", **headers})


async def _mismatch(peer: HttpPeer) -> HttpReply:
    params = {"sessionId": "antiphon-one", "modeId": "antiphon"}
    return await peer.post(request_of("mismatch", "session/set_mode", params), session="antiphon-another")


@HTTP_SUITE.scenario(
    "http-delete",
    "a client ends its connection",
    shows=(
        remote_must(
            "http.delete",
            "DELETE with the id of a connection gets status 202, or another that means success.",
            fix="Answer it with status 202.",
        ),
        remote_must(
            "http.delete-ends",
            "The streams of a connection end with it.",
            fix="End the responses of its streams where a connection is deleted.",
            needs=("http.delete",),
        ),
        remote_must(
            "http.delete-gone",
            "A connection that was deleted does not exist any more: a post to it gets status 404.",
            fix="Forget the connection where it is deleted.",
            needs=("http.delete",),
        ),
    ),
)
async def delete(run: ServerRun) -> None:
    peer = await run.connected_http()
    stream = peer.streams[None]
    reply = await peer.delete()
    if not run.holds("http.delete", 200 <= reply.status < 300, f"it got status {reply.status}", *reply.evidence):
        return
    ended = await peer.until(lambda: stream.ended)
    run.holds("http.delete-ends", ended, "the stream of the connection goes on", *reply.evidence)
    after = await peer.post(request_of("late", FENCE, {}))
    run.holds("http.delete-gone", after.status == 404, f"it got status {after.status}", *after.evidence)
    peer.id = ""


@HTTP_SUITE.scenario(
    "http-large",
    "a client posts a large message",
    shows=(
        remote_should(
            "http.large",
            "A message of 1 MiB is taken.",
            fix="Raise the limit on the body of a request: files and pictures are larger than 1 MiB.",
        ),
    ),
)
async def large(run: ServerRun) -> None:
    peer = await run.connected_http()
    reply = await peer.post(request_of("large", FENCE, {"text": "x" * LARGE}))
    answered = reply.status == 202 and await peer.until(lambda: peer.answer("large") is not None)
    found = f"it got status {reply.status}" if reply.status != 202 else "it was not answered"
    run.holds("http.large", answered, found, *reply.evidence)


@HTTP_SUITE.scenario(
    "http-version",
    "a client offers HTTP/2",
    shows=(
        remote_must(
            "http.http2",
            "A server that is reached by TLS speaks HTTP/2, so that posts and streams share a connection.",
            fix="Serve HTTP/2, as with hypercorn or a proxy in front, and offer `h2` in the handshake of TLS.",
        ),
    ),
)
async def version(run: ServerRun) -> None:
    if not run.address.secure:
        raise NotOffered("HTTP/2 is negotiated by TLS, and the address is plain `http`")
    context = run.address.tls()
    context.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await run.address.open(context)
    try:
        found = writer.get_extra_info("ssl_object")
        chosen = found.selected_alpn_protocol() if isinstance(found, ssl.SSLObject) else None
    finally:
        writer.close()
        context.set_alpn_protocols(["http/1.1"])
    run.holds(
        "http.http2", chosen == "h2", f"it chose {chosen or 'nothing'}", run.sent("TLS, offering h2 and http/1.1")
    )
