"""The handshake and the frames of a WebSocket."""

import msgspec

from antiphon.conformance.remote.raw_http import CONNECTION
from antiphon.conformance.remote.raw_websocket import BINARY, CLOSE, CONT, PING, PONG, TEXT, accept_key
from antiphon.conformance.remote.server_run import INITIALIZE, ServerRun, SocketPeer, request_of
from antiphon.conformance.requirements import Blocked, Requirement
from antiphon.conformance.suites.server.http import FENCE, LARGE
from antiphon.conformance.suites.server.suite import SOCKET_SUITE, remote_must, remote_should, rfc6455
from antiphon.traffic.entries import Entry

__all__: list[str] = []


async def _connected(run: ServerRun) -> SocketPeer:
    peer = run.socket()
    await peer.connect()
    return peer


async def _lives(run: ServerRun, peer: SocketPeer, requirement: str, *evidence: Entry) -> bool:
    """Judge whether the connection goes on."""
    try:
        await peer.request(FENCE, {})
    except Blocked as silent:
        closing = peer.socket.closing
        why = f"the server closed the connection with {closing.code}" if closing is not None else str(silent)
        return run.holds(requirement, False, why, *evidence)
    return run.holds(requirement, True, "", *evidence)


@SOCKET_SUITE.scenario(
    "ws-handshake",
    "a client opens two WebSockets",
    shows=(
        rfc6455(
            "ws.upgrade",
            "GET with `Upgrade: websocket` gets status 101 with the right `Sec-WebSocket-Accept`.",
            link="4.2.2",
            fix="Let a library do the handshake.",
        ),
        remote_must(
            "ws.connection-id",
            f"The response with status 101 has an id of the connection in the header `{CONNECTION}`.",
            fix=f"Add `{CONNECTION}` to the headers with which you accept a WebSocket; some ASGI servers drop them.",
        ),
        remote_must(
            "ws.connection-unique",
            "Each WebSocket has an id of its own.",
            fix="Make a new random id for each WebSocket.",
            needs=("ws.connection-id",),
        ),
        rfc6455(
            "ws.not-offered",
            "A server chooses no subprotocol and no extension that the client did not offer.",
            link="4.2.2",
            fix="Send `Sec-WebSocket-Protocol` and `Sec-WebSocket-Extensions` only with what the client offered.",
        ),
        remote_must(
            "ws.initialize",
            "`initialize` on the socket is answered.",
            fix="Answer it as on stdio, in a text frame.",
        ),
        remote_must(
            "ws.text",
            "Each message is one text frame with one JSON-RPC message.",
            fix="Send text frames, and one message in each.",
        ),
        rfc6455(
            "ws.unmasked",
            "Frames of a server are not masked, and use no bits that were not negotiated.",
            link="5.1",
            fix="Do not mask what a server sends.",
        ),
    ),
)
async def handshake(run: ServerRun) -> None:
    peer, other = run.socket(), run.socket()
    socket, second = await peer.shake(), await other.shake()
    right = socket.is_open and socket.head.get("sec-websocket-accept") == accept_key(socket.key)
    if not run.holds("ws.upgrade", right, f"status {socket.head.status}", *socket.evidence):
        return
    ids = [one.head.get(CONNECTION) for one in (socket, second)]
    if run.holds("ws.connection-id", all(ids), "there is none", *socket.evidence):
        run.holds("ws.connection-unique", ids[0] != ids[1], "two have the same", *second.evidence)
    extra = socket.head.get("sec-websocket-protocol") or socket.head.get("sec-websocket-extensions")
    run.holds("ws.not-offered", not extra, f"it chose `{extra}`", *socket.evidence)
    sent = await peer.send(request_of("first", "initialize", INITIALIZE))
    await peer.until(lambda: peer.answer("first") is not None or socket.ended)
    response = peer.answer("first")
    run.holds("ws.initialize", response is not None and "result" in response.msg, "it was not", sent, response)
    if not socket.frames:
        raise Blocked("no frame came")
    wrong = [one for one in socket.messages if not isinstance(one.msg, dict)]
    binary = any(frame.opcode == BINARY for frame in socket.frames)
    found = "one is binary" if binary else "one is not"
    run.holds("ws.text", not wrong and not binary, found, *wrong[:1])
    odd = any(frame.masked or frame.reserved for frame in socket.frames)
    run.holds("ws.unmasked", not odd, "one is", *socket.evidence)


@SOCKET_SUITE.scenario(
    "ws-control",
    "a client pings the server, and closes the connection",
    shows=(
        rfc6455(
            "ws.pong",
            "A ping is answered with a pong of the same data.",
            link="5.5.2",
            fix="Let a library answer pings.",
        ),
        rfc6455(
            "ws.fragments",
            "A message in several frames is put together, also with a ping between them.",
            link="5.4",
            fix="Gather the frames of a message until the last one.",
        ),
        rfc6455(
            "ws.close", "A close is answered with a close.", link="5.5.1", fix="Let a library close the connection."
        ),
    ),
)
async def control(run: ServerRun) -> None:
    peer = await _connected(run)
    sent = await peer.socket.send_frame(PING, b"antiphon")
    pong = await peer.until(
        lambda: any(one.opcode == PONG and one.payload == b"antiphon" for one in peer.socket.frames)
    )
    run.holds("ws.pong", pong, "there was none", sent)
    text = request_of("pieces", FENCE, {"text": "é" * 10})
    at = text.index("é".encode()) + 1  # in the middle of a character
    sent = await peer.socket.send_frame(TEXT, text[:at], fin=False)
    await peer.socket.send_frame(PING, b"between")
    await peer.socket.send_frame(CONT, text[at:-5], fin=False)
    await peer.socket.send_frame(CONT, text[-5:])
    whole = await peer.until(lambda: peer.answer("pieces") is not None or peer.socket.ended)
    run.holds("ws.fragments", whole and peer.answer("pieces") is not None, "it was not answered", sent)
    if peer.socket.ended:
        raise Blocked("the connection has ended")
    sent = await peer.socket.send_frame(CLOSE, (1000).to_bytes(2, "big"))
    closed = await peer.until(lambda: peer.socket.closing is not None)
    run.holds("ws.close", closed, "there was none", sent)


def _survives(id: str, what: str, fix: str) -> Requirement:
    return remote_should(id, f"The connection goes on after {what}.", fix=fix)


@SOCKET_SUITE.scenario(
    "ws-odd",
    "a client sends what is not a message",
    shows=(
        remote_must(
            "ws.binary",
            "A binary frame is ignored: the connection goes on.",
            fix="Ignore binary frames; messages are text.",
        ),
        _survives("ws.junk-survived", "a frame that is not JSON", "Answer it with -32700, and read the next frame."),
        remote_should(
            "ws.junk",
            "A frame that is not JSON is answered with -32700 and null for an id.",
            fix='Answer with {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}.',
            needs=("ws.junk-survived",),
        ),
        _survives("ws.batch-survived", "a batch", "Answer it with -32600, and read the next frame."),
        remote_should(
            "ws.batch",
            "A batch is refused with -32600, or its requests are answered: the client does not wait in vain.",
            fix="Answer a frame that is a list with -32600 and null for an id.",
            needs=("ws.batch-survived",),
        ),
        remote_should(
            "ws.initialize-again",
            "A second `initialize` is answered, and the connection goes on.",
            fix="Answer it with -32600, or as the first one.",
        ),
    ),
)
async def odd(run: ServerRun) -> None:
    peer = await _connected(run)
    sent = await peer.socket.send_frame(BINARY, request_of("binary", FENCE, {}))
    if await _lives(run, peer, "ws.binary", sent):
        found = peer.answer("binary")
        run.holds("ws.binary", found is None, "it was answered as a message", sent, found)
    peer = await _renewed(run, peer)
    sent = await peer.socket.send_frame(TEXT, b"{this is not JSON")
    if await _lives(run, peer, "ws.junk-survived", sent):
        await _refused(run, peer, "ws.junk", sent, -32700)
    peer = await _renewed(run, peer)
    sent = await peer.send(b"[" + request_of("batch", FENCE, {}) + b"]")
    if await _lives(run, peer, "ws.batch-survived", sent):
        await peer.silence()
        listed = any(isinstance(one.msg, list) for one in peer.received)
        if not listed and peer.answer("batch") is None:
            await _refused(run, peer, "ws.batch", sent, -32600)
        else:
            run.holds("ws.batch", True, "")
    peer = await _renewed(run, peer)
    sent = await peer.send(request_of("again", "initialize", INITIALIZE))
    await peer.until(lambda: peer.answer("again") is not None or peer.socket.ended)
    again = peer.answer("again")
    if run.holds("ws.initialize-again", again is not None, "it was not", sent):
        await _lives(run, peer, "ws.initialize-again", sent)


async def _renewed(run: ServerRun, peer: SocketPeer) -> SocketPeer:
    """The connection, or another one where that has ended."""
    return peer if not peer.socket.ended and peer.socket.closing is None else await _connected(run)


async def _refused(run: ServerRun, peer: SocketPeer, requirement: str, sent: Entry, code: int) -> None:
    def is_it(entry: Entry) -> bool:
        error = entry.msg.get("error") if isinstance(entry.msg, dict) else None
        return (
            entry.number > sent.number
            and isinstance(error, dict)
            and error.get("code") == code
            and entry.msg.get("id") is None
        )

    found = await peer.message(is_it, 4 * run.options.silence)
    run.holds(requirement, found is not None, "no such answer came", sent)


@SOCKET_SUITE.scenario(
    "ws-early",
    "a client sends a request before `initialize`",
    shows=(
        remote_should(
            "ws.initialize-first",
            "A request before `initialize` is refused: with an error, or by a close of the connection.",
            fix="Answer it with an error, or close the connection with 1002.",
        ),
    ),
)
async def early(run: ServerRun) -> None:
    peer = run.socket()
    await peer.shake()
    sent = await peer.send(request_of("early", "session/new", {"cwd": str(run.cwd), "mcpServers": []}))
    await peer.until(lambda: peer.answer("early") is not None or peer.socket.closing is not None or peer.socket.ended)
    found = peer.answer("early")
    refused = "error" in found.msg if found is not None else peer.socket.ended or peer.socket.closing is not None
    run.holds(
        "ws.initialize-first", refused, "it was answered with a session" if found else "nothing came", sent, found
    )


@SOCKET_SUITE.scenario(
    "ws-broken",
    "a client breaks the rules of WebSocket",
    shows=(
        rfc6455(
            "ws.masked",
            "A frame of a client that is not masked ends the connection, and is not taken as a message.",
            link="5.1",
            fix="Close the connection with 1002.",
        ),
        rfc6455(
            "ws.utf8",
            "A text frame that is not UTF-8 ends the connection, and is not taken as a message.",
            link="8.1",
            fix="Close the connection with 1007.",
        ),
    ),
)
async def broken(run: ServerRun) -> None:
    text = request_of("bare", FENCE, {"text": "?"})
    await _ends(run, "ws.masked", text, mask=False)
    await _ends(run, "ws.utf8", text.replace(b"?", b"\xff\xfe"), mask=True)


async def _ends(run: ServerRun, requirement: str, text: bytes, *, mask: bool) -> None:
    """Judge whether a frame ends the connection."""
    peer = await _connected(run)
    sent = await peer.socket.send_frame(TEXT, text, mask=mask)

    def has_ended() -> bool:
        return peer.socket.ended or peer.socket.closing is not None

    await peer.until(lambda: peer.answer("bare") is not None or has_ended())
    found = peer.answer("bare")
    why = "it goes on" if found is None else "it was answered"
    run.holds(requirement, has_ended() and found is None, why, sent, found)


@SOCKET_SUITE.scenario(
    "ws-large",
    "a client sends a large message",
    shows=(
        remote_should(
            "ws.large",
            "A message of 1 MiB is taken.",
            fix="Raise the limit on the size of a message: files and pictures are larger than 1 MiB.",
        ),
    ),
)
async def large(run: ServerRun) -> None:
    peer = await _connected(run)
    sent = await peer.send(
        msgspec.json.encode({"jsonrpc": "2.0", "id": "large", "method": FENCE, "params": {"text": "x" * LARGE}})
    )
    await peer.until(lambda: peer.answer("large") is not None or peer.socket.ended)
    closing = peer.socket.closing
    why = f"the server closed the connection with {closing.code}" if closing is not None else "it was not answered"
    run.holds("ws.large", peer.answer("large") is not None, why, sent)


@SOCKET_SUITE.scenario(
    "ws-leave",
    "a client is gone without a word, and another one stays",
    shows=(
        remote_must(
            "ws.others-stay",
            "The end of one connection leaves the others alone.",
            fix="End what belongs to the connection that is gone, and nothing else.",
        ),
    ),
)
async def leave(run: ServerRun) -> None:
    gone, stays = await _connected(run), await _connected(run)
    await gone.session(run.cwd)
    await stays.session(run.cwd)
    await gone.close()
    await _lives(run, stays, "ws.others-stay", run.sent("the connection was cut"))
