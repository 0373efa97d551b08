"""What both profiles carry: ids, requests at once, two sessions, cancellation, permission, and connections apart."""

from collections.abc import Callable

import msgspec

from antiphon.conformance.remote.server_run import PERMISSION, RemotePeer, ServerRun, is_update
from antiphon.conformance.requirements import Blocked, NotSeen, Requirement
from antiphon.conformance.suites.server.http import FENCE
from antiphon.conformance.suites.server.suite import for_both, remote_must
from antiphon.traffic.entries import Entry

__all__: list[str] = []


def _must(id: str, text: str, fix: str, *needs: str) -> Callable[[str], Requirement]:
    return lambda prefix: remote_must(f"{prefix}.{id}", text, fix=fix, needs=tuple(f"{prefix}.{one}" for one in needs))


@for_both(
    "ids",
    "requests whose ids differ by their type",
    _must(
        "ids",
        'The response to a request has its id as it was: requests with the ids 1 and "1" are open at once, and both are answered.',
        'Keep the type of an id: 1 and "1" are two requests.',
    ),
)
async def ids(run: ServerRun, prefix: str) -> None:
    peer = await run.connected()
    numbers = (71, "71")
    for id in numbers:
        await peer.ask(FENCE, {}, id=id)
    came = await peer.until(lambda: all(peer.answer(id) is not None for id in numbers))
    lost = next((id for id in numbers if peer.answer(id) is None), None)
    found = peer.find(lambda one: one.is_response and one.msg.get("id") in (71, "71"))
    run.holds(f"{prefix}.ids", came, f"the request with the id {lost!r} was not answered", found)


@for_both(
    "two-sessions",
    "turns of two sessions run at the same time",
    _must(
        "concurrent",
        "While a turn runs, other requests are answered, also those of another session.",
        "Take each message as it comes, and do not wait for the turn of another.",
    ),
    _must(
        "sessions-apart",
        "Updates name the session that they belong to, and come where that is read.",
        "Send an update on the stream of its session.",
    ),
    _must(
        "cancel",
        "`session/cancel` ends the turn of its session with `cancelled`, and the other turn goes on.",
        "Forward the notification to the session that it names.",
    ),
)
async def two_sessions(run: ServerRun, prefix: str) -> None:
    peer = await run.connected()
    one, other = await peer.session(run.cwd), await peer.session(run.cwd)
    turn = await peer.prompt(one, "long")
    started = await peer.until(lambda: peer.find(_of_turn(one)) is not None or peer.answer(turn) is not None)
    if not started or peer.answer(turn) is not None:
        raise NotSeen("no turn ran long enough: a prompt file can name words for `long`")
    second = await peer.prompt(other, "say")
    came = await peer.until(lambda: peer.answer(second) is not None)
    if not run.holds(f"{prefix}.concurrent", came, "the prompt of another session was not answered", peer.received[-1]):
        raise Blocked("the second turn did not end")
    early = peer.answer(turn)
    if _stop_reason(early) == "end_turn":
        raise NotSeen("the long turn ended by itself: a prompt file can name words for `long`")
    run.holds(f"{prefix}.concurrent", early is None, "the first turn ended with it", early)
    known = {one, other}
    strays = [
        entry
        for entry in peer.received
        if entry.method == "session/update" and entry.params.get("sessionId") not in known
    ]
    missing = next((each for each in (one, other) if peer.find(is_update(each)) is None), None)
    found = "a session had no update" if missing else "an update names another session"
    run.holds(f"{prefix}.sessions-apart", not strays and missing is None, found, *strays[:1])
    sent = await peer.send(_cancel(one), one)
    await peer.until(lambda: peer.answer(turn) is not None)
    ended = peer.answer(turn)
    reason = _stop_reason(ended)
    text = "the turn did not end" if ended is None else f"it ended with {reason}"
    run.holds(f"{prefix}.cancel", reason == "cancelled", text, sent, ended)


def _stop_reason(response: Entry | None) -> object:
    result = response.msg.get("result") if response is not None else None
    return result.get("stopReason") if isinstance(result, dict) else None


def _of_turn(session: str) -> Callable[[Entry], bool]:
    def is_it(entry: Entry) -> bool:
        update = entry.params.get("update")
        kind = str(update.get("sessionUpdate")) if isinstance(update, dict) else ""
        return is_update(session)(entry) and kind.startswith(("agent_", "tool_call", "plan"))

    return is_it


def _cancel(session: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})


@for_both(
    "permission",
    "the agent asks for permission",
    _must(
        "request",
        "A request of the agent comes where its session is read, with an id.",
        "Send requests of the agent like its updates.",
    ),
    _must(
        "answer",
        "The answer of the client reaches the agent: the turn ends.",
        "Take responses like requests, and forward them to the agent.",
        "request",
    ),
)
async def permission(run: ServerRun, prefix: str) -> None:
    peer = await run.connected()
    session = await peer.session(run.cwd)
    turn = await peer.prompt(session, "ask")
    asked: list[Entry] = []

    def is_new(entry: Entry) -> bool:
        return entry.method == PERMISSION and entry not in asked

    while True:
        await peer.until(lambda: peer.answer(turn) is not None or peer.find(is_new) is not None)
        found = peer.find(is_new)
        if found is None:
            break
        asked.append(found)
        fine = found.is_request and found.params.get("sessionId") == session
        run.holds(f"{prefix}.request", fine, "it has no id, or another session", found)
        await peer.send(peer.refusal(found), session)
    if not asked:
        raise NotSeen("the agent did not ask for permission: a prompt file can name words for `ask`")
    ended = peer.answer(turn) is not None
    run.holds(f"{prefix}.answer", ended, "the turn waits for it still", asked[-1])


@for_both(
    "connections",
    "two clients use the same ids",
    _must(
        "connections-apart",
        "Each connection gets the responses to its own requests, and nothing of another.",
        "Keep the ids of requests apart for each connection.",
    ),
)
async def connections(run: ServerRun, prefix: str) -> None:
    peers = [await run.connected(), await run.connected()]
    for number, peer in enumerate(peers):
        await peer.ask(f"{FENCE}/{number}", {}, id="same")
        await peer.ask(FENCE, {}, id=f"of {number}")
    came = all([await _answered(peer, number) for number, peer in enumerate(peers)])
    await peers[0].silence()
    strays = [peers[0].answer("of 1"), peers[1].answer("of 0")]
    stray = next((one for one in strays if one is not None), None)
    twice = [
        peer for peer in peers if sum(one.is_response and one.msg.get("id") == "same" for one in peer.received) > 1
    ]
    found = "a response did not come" if not came else "a response came to the other connection"
    run.holds(f"{prefix}.connections-apart", came and stray is None and not twice, found, stray)


async def _answered(peer: RemotePeer, number: int) -> bool:
    return await peer.until(lambda: peer.answer("same") is not None and peer.answer(f"of {number}") is not None)
