"""Bytes on stdio: lines in pieces, lines together, long lines, and lines that are not messages."""

from typing import Final

import msgspec

from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import Blocked, NoResponse, advice, must, should
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PendingRequest

__all__: list[str] = []

MEBIBYTE: Final = 1024 * 1024
PAUSE: Final = 0.005
"""Seconds between the pieces of a line."""

STDIO = "transports#stdio"
READ = (
    "Read until a line feed, however much that is and however it is cut; a line feed and nothing else ends a message."
)
GO_ON = "Log what you cannot use, and read the next line."


@SUITE.scenario(
    "lines",
    "messages in pieces, together, and long ones",
    shows=(
        must("lines.pieces", "A message that comes in pieces is one message.", link=STDIO, fix=READ),
        must("lines.together", "Messages that come in one piece are several messages.", link=STDIO, fix=READ),
        must(
            "lines.unicode",
            "Only a line feed ends a message: other line ends of Unicode may stand in it.",
            link=STDIO,
            fix=READ,
        ),
        must(
            "lines.burst", "A thousand updates at once are taken.", link=STDIO, fix="Read on while you show what came."
        ),
        should("lines.large", "A message of 1 MiB is taken.", link=STDIO, fix=READ),
        advice("lines.huge", "A message of 8 MiB is taken.", link=STDIO, fix=READ),
    ),
)
async def lines(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    try:
        await _cut(run)
    except Blocked as blocked:
        if run.wire.closed:
            raise
        unseen: Blocked | None = blocked
    else:
        unseen = None
    burst = await run.wire.send_together([_update(run, f"{n} ") for n in range(1000)])
    await run.survives("lines.burst", "a thousand updates at once", burst[-1])
    large = await run.wire.send(_update(run, "large " * (MEBIBYTE // 6)))
    await run.survives("lines.large", "a message of 1 MiB", large)
    huge = await run.wire.send(_update(run, "huge " * (8 * MEBIBYTE // 5)))
    await run.survives("lines.huge", "a message of 8 MiB", huge)
    await turn.end()
    if unseen is not None:
        raise unseen


async def _cut(run: ClientRun) -> None:
    """Lines in pieces, lines together and lines with other line ends in them, each of which has a response if it was read.

    Raises:
        Blocked: nothing has.
    """
    sent = await run.wire.send_in_pieces(run.question("in-pieces", "ä" * 40), 33, PAUSE)
    await _comes(run, "lines.pieces", "a message in pieces", PendingRequest(run, sent))
    several = await run.wire.send_together([run.question(f"together-{n}") for n in range(3)])
    for one in several:
        await _comes(run, "lines.together", "messages in one piece", PendingRequest(run, one))
    odd = await run.wire.send_line(msgspec.json.encode(run.question("unicode", "a\u2028b\u2029c\u0085d\u000be")))
    await _comes(run, "lines.unicode", "a message with other line ends", PendingRequest(run, odd))


def _update(run: ClientRun, words: str) -> dict[str, object]:
    params = {"sessionId": run.session, "update": run.text_update(words)}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


async def _comes(run: ClientRun, id: str, what: str, pending: PendingRequest) -> None:
    try:
        response = await pending.response()
    except NoResponse as problem:
        run.holds(id, False, f"{what}: {problem}", pending.request, awaited=pending.request)
        await run.settle()
    else:
        run.holds(id, True, "", response)


@SUITE.scenario(
    "noise",
    "lines that are not messages, and responses without a request",
    shows=(
        advice(
            "noise.lines",
            "Lines that are not JSON, as a program that also prints sends them, are ignored.",
            link=STDIO,
            fix=GO_ON,
        ),
        advice("noise.objects", "JSON that is not a message is ignored.", link=STDIO, fix=GO_ON),
        should(
            "noise.stray",
            "A response without a request is ignored.",
            link="overview#error-handling",
            fix="Drop answers whose id belongs to no open request.",
        ),
        should(
            "noise.no-id",
            "An error without an id, or with the id null, is ignored.",
            link="overview#error-handling",
            fix="Log such an error: the agent could not read something, and nothing waits for it.",
        ),
    ),
)
async def noise(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    sent = [
        await run.wire.send_line(line)
        for line in (b"Loading model...", b"\x1b[32mINFO\x1b[0m {ready", b'{"jsonrpc":"2.0","method":', b"")
    ]
    await run.survives("noise.lines", "lines that are not JSON", *sent)
    sent = [await run.wire.send(one) for one in ({"foo": 1}, 7, None, "text", {"level": "info", "msg": "ready"})]
    await run.survives("noise.objects", "JSON that is not a message", *sent)
    sent = [
        await run.wire.send({"jsonrpc": "2.0", "id": 987654, "result": {}}),
        await run.wire.send({"jsonrpc": "2.0", "id": "nobody", "error": {"code": -32603, "message": "?"}}),
    ]
    await run.survives("noise.stray", "responses without a request", *sent)
    problem = {"code": -32700, "message": "Parse error"}
    sent = [
        await run.wire.send({"jsonrpc": "2.0", "error": problem}),
        await run.wire.send({"jsonrpc": "2.0", "id": None, "error": problem}),
    ]
    await run.survives("noise.no-id", "errors without an id", *sent)
    await turn.end()
