"""The handshake and the frames of a client over WebSocket."""

import base64
import binascii

from antiphon.conformance.remote.client_check import RemoteClientRun
from antiphon.conformance.remote.judge import large_update
from antiphon.conformance.remote.raw_websocket import BINARY, CLOSE, PING, PONG, encode
from antiphon.conformance.requirements import Blocked
from antiphon.conformance.suites.remote_client.suite import REMOTE_CLIENT_SUITE as SUITE
from antiphon.conformance.suites.server.suite import remote_must, remote_should, rfc6455

__all__: list[str] = []


@SUITE.scenario(
    "ws-turn",
    "a client sends a prompt over WebSocket, and is asked for permission",
    shows=(
        remote_must(
            "ws.turn",
            "A turn over WebSocket ends, and the client with it.",
            fix="Read the socket until the response has come.",
        ),
        rfc6455(
            "ws.handshake",
            "The handshake has version 13 and a key of 16 bytes.",
            link="4.1",
            fix="Let a library do the handshake.",
        ),
        remote_must(
            "ws.initialize-first",
            "The first message is `initialize`.",
            fix="Begin each connection with `initialize`.",
        ),
        remote_must(
            "ws.text",
            "Each message is one text frame, or several of one message, with one JSON-RPC message.",
            fix="Send text frames, and one message in each.",
        ),
        rfc6455("ws.masked", "Frames of a client are masked.", link="5.1", fix="Mask what a client sends."),
        remote_should(
            "ws.close",
            "A client that leaves closes the WebSocket with a close frame.",
            fix="Close the socket before you leave.",
        ),
    ),
)
async def turn(run: RemoteClientRun) -> None:
    run.judge.script.permission = True
    await run.start("ws")
    await run.received("initialize")
    status = await run.ended()
    shaken = run.judge.requests[0]
    run.holds("ws.turn", status == 0, run.how(status), run.judge.messages[-1])
    key = shaken.head.get("sec-websocket-key")
    right = shaken.head.get("sec-websocket-version") == "13" and _is_key(key)
    run.holds("ws.handshake", right, "it has not", shaken.entry)
    first = run.judge.messages[0]
    run.holds("ws.initialize-first", first.method == "initialize", f"it is `{first.method}`", first)
    odd = [entry for entry in run.judge.messages if not isinstance(entry.msg, dict)]
    binary = any(frame.opcode == BINARY for frame in run.judge.frames)
    run.holds("ws.text", not odd and not binary, "one is binary" if binary else "one is not", *odd[:1])
    bare = [frame for frame in run.judge.frames if not frame.masked]
    run.holds("ws.masked", not bare, "one is not", shaken.entry)
    if status == 0:
        closed = any(frame.opcode == CLOSE for frame in run.judge.frames)
        run.holds("ws.close", closed, "there was none", run.judge.messages[-1])


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 16
    except binascii.Error:
        return False


@SUITE.scenario(
    "ws-frames",
    "messages come in several frames, with pings between them",
    shows=(
        rfc6455(
            "ws.fragments",
            "A message in several frames is put together, also with a ping between them.",
            link="5.4",
            fix="Gather the frames of a message until the last one.",
        ),
        rfc6455(
            "ws.pong",
            "A ping is answered with a pong of the same data.",
            link="5.5.2",
            fix="Let a library answer pings.",
        ),
    ),
)
async def frames(run: RemoteClientRun) -> None:
    run.judge.script.fragments = True
    run.judge.script.before_answer = lambda socket: [encode(PING, b"antiphon", mask=False)]
    await run.start("ws")
    await run.received("initialize")
    status = await run.ended()
    run.holds("ws.fragments", status == 0, run.how(status), run.judge.messages[-1])
    answered = any(frame.opcode == PONG and frame.payload in (b"antiphon", b"between") for frame in run.judge.frames)
    run.holds("ws.pong", answered, "there was none", run.judge.messages[-1])


@SUITE.scenario(
    "ws-binary",
    "a binary frame comes in the middle of a turn",
    shows=(
        remote_must(
            "ws.binary",
            "A binary frame is ignored: the turn goes on.",
            fix="Ignore binary frames; messages are text.",
        ),
    ),
)
async def binary(run: RemoteClientRun) -> None:
    run.judge.script.before_answer = lambda socket: [encode(BINARY, b"\x00\x01not a message", mask=False)]
    await run.start("ws")
    await run.received("session/prompt")
    status = await run.ended()
    run.holds("ws.binary", status == 0, run.how(status), run.judge.messages[-1])


@SUITE.scenario(
    "ws-large",
    "an update of 2 MiB comes in one frame",
    shows=(
        remote_should(
            "ws.large",
            "A message of 2 MiB is taken.",
            fix="Raise the limit on the size of a message: many libraries have one of 1 MiB.",
        ),
    ),
)
async def large(run: RemoteClientRun) -> None:
    run.judge.script.before_answer = lambda socket: [large_update("judge-1")]
    await run.start("ws")
    await run.received("session/prompt")
    status = await run.ended()
    run.holds("ws.large", status == 0, run.how(status), run.judge.messages[-1])


@SUITE.scenario(
    "ws-cancel",
    "a user cancels over WebSocket",
    shows=(
        remote_must(
            "ws.cancel",
            "`session/cancel` is sent while the turn runs.",
            fix="Send the notification at once: nothing waits for the response to the prompt.",
        ),
    ),
)
async def cancel(run: RemoteClientRun) -> None:
    run.judge.script.waits = True
    await run.start("ws", "cancel")
    prompt = await run.received("session/prompt")
    run.running.interrupt()
    try:
        await run.received("session/cancel")
    except Blocked as missing:
        run.holds("ws.cancel", False, str(missing), prompt)
        return
    run.holds("ws.cancel", True, "")
