"""`session/cancel`, at every moment in which a user may press the key."""

from collections.abc import Awaitable, Callable

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, Requirement, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import (
    UNKNOWN_SESSION,
    busy,
    early,
    ended,
    hold,
    interrupted,
    is_cancelled,
    reason,
    requests,
    still_runs,
    usable,
)
from antiphon.conformance.wire import PeerClosed, PendingRequest
from antiphon.traffic.entries import Entry

__all__: list[str] = []

LINK = "prompt-turn#cancellation"
SLEEP_COMMAND = "sleep 60"

PERMISSION = "session/request_permission"


def _stops(id: str, when: str, fix: str) -> Requirement:
    return must(id, f"A turn that is cancelled {when} is answered with `cancelled`.", link=LINK, fix=fix, needs=(RULE,))


RULE = "cancel.stop-reason"
"""The rule of all traffic that demands the same of every turn."""


def _next(id: str, when: str) -> Requirement:
    return must(
        id,
        f"After a turn that was cancelled {when} the session takes another.",
        link=LINK,
        fix="Forget that a turn was cancelled once it is answered.",
    )


async def _cancelled(
    run: AgentRun, requirement: str, begun: Callable[[], Awaitable[PendingRequest]], *, times: int = 1
) -> None:
    async def stop(session: str) -> Entry:
        sent = [await run.cancel(session) for _ in range(times)]
        return sent[0]

    await interrupted(run, requirement, begun, stop)


@SUITE.scenario(
    "cancel-streaming",
    "a user cancels while the agent sends a message",
    shows=(
        _stops(
            "cancel.talking",
            "while the agent sends a message",
            "Answer the prompt with `cancelled` when you have stopped.",
        ),
        _next("cancel.talking-next", "while the agent sent a message"),
    ),
)
async def talking(run: AgentRun) -> None:
    session = await run.session()
    await _cancelled(run, "cancel.talking", lambda: busy(run, session))
    await run.settle()
    await usable(run, "cancel.talking-next", session)


@SUITE.scenario(
    "cancel-asking",
    "a user cancels while the agent asks for permission",
    shows=(
        _stops(
            "cancel.asking",
            "while the agent asks for permission",
            "Take the outcome `cancelled` for the end of the turn, and answer the prompt with `cancelled`.",
        ),
        _next("cancel.asking-next", "while the agent asked"),
    ),
)
async def asking(run: AgentRun) -> None:
    session = await run.session()
    pending, asked = await hold(run, PERMISSION, session, "ask", file=run.cwd / "asked.txt", text="asked")
    await run.cancel(session)
    await run.client.respond(asked, {"outcome": {"outcome": "cancelled"}})
    is_cancelled(run, "cancel.asking", await ended(run, "cancel.asking", pending, "the turn went on"))
    await run.settle()
    await usable(run, "cancel.asking-next", session)


@SUITE.scenario(
    "cancel-running",
    "a user cancels while a command runs",
    files=True,
    shows=(
        _stops(
            "cancel.running",
            "while a command runs",
            "End the command, by `terminal/kill` or by yourself, and answer the prompt with `cancelled`.",
        ),
        should(
            "cancel.terminals",
            "A turn that is cancelled leaves no terminal behind.",
            link="terminals#releasing-terminals",
            fix="Send `terminal/release` for each terminal of the turn, also when it is cancelled.",
        ),
        _next("cancel.running-next", "while a command ran"),
    ),
)
async def running(run: AgentRun) -> None:
    session = await run.session()
    before = set(run.client.terminals)
    begun = len(run.wire.trace)

    async def command() -> PendingRequest:
        pending = await run.prompt(session, run.words("long_run", command=SLEEP_COMMAND))
        await _works(run, session, pending)
        return pending

    await _cancelled(run, "cancel.running", command)
    await run.settle()
    created = requests(run, "terminal/create", after=begun)
    if run.updates(session) and created:
        left = sorted(set(run.client.terminals) - before)
        run.holds("cancel.terminals", not left, f"{', '.join(left)} was not released", *created)
    await usable(run, "cancel.running-next", session)
    if not created:
        raise NotSeen("the agent runs its commands by itself")


async def _works(run: AgentRun, session: str, pending: PendingRequest) -> None:
    """Until a command runs: in a terminal of ours, or in a tool call that is in progress.

    Raises:
        Unseen: none does.
    """

    def shows(entry: Entry) -> bool:
        update = entry.params.get("update")
        at_work = isinstance(update, dict) and update.get("status") == "in_progress"
        over = entry.is_response and entry.msg.get("id") == pending.request.msg["id"]
        return entry.method in ("terminal/wait_for_exit", "terminal/output") or at_work or over

    try:
        await run.wire.wait_for(shows, after=pending.request.number, limit=run.options.limit)
    except TimeoutError:
        await run.cancel(session)
        raise NotSeen("no command ran: a prompt file can name words that make the agent run one") from None
    except PeerClosed:
        raise pending.lost() from None
    await still_runs(run, session, pending)


@SUITE.scenario(
    "cancel-crossing",
    "a user allows a command and cancels in the same moment",
    files=True,
    shows=(
        _stops(
            "cancel.crossing",
            "right after a permission was given",
            "Look whether the turn is cancelled after each answer that you waited for.",
        ),
    ),
)
async def crossing(run: AgentRun) -> None:
    session = await run.session()

    async def allowed() -> PendingRequest:
        pending, asked = await hold(run, PERMISSION, session, "long_run", command=SLEEP_COMMAND)
        await run.client.handle(asked)
        return pending

    await _cancelled(run, "cancel.crossing", allowed)
    await run.settle()


@SUITE.scenario(
    "cancel-idle",
    "cancelling where nothing runs",
    provokes=True,
    shows=(
        must(
            "cancel.idle",
            "Cancelling a session in which nothing runs changes nothing: its next turn is not cancelled.",
            link=LINK,
            fix="Ignore `session/cancel` where no turn runs; do not keep it for the next one.",
        ),
        must(
            "cancel.unknown-session",
            "Cancelling a session that does not exist is not answered and does no harm.",
            link=LINK,
            fix="Ignore `session/cancel` with an id that you do not know: a notification has no answer.",
        ),
    ),
)
async def idle(run: AgentRun) -> None:
    session = await run.session()
    await run.cancel(session)
    await run.settle()  # where each message is handled by a task of its own, the prompt could overtake it
    response = await run.turn(session)
    right = response.error is None and reason(response) != "cancelled"
    run.holds("cancel.idle", right, "the next turn was cancelled or refused", response)
    cancellation = await run.cancel(UNKNOWN_SESSION)
    await run.settle()
    stray = [
        one for one in run.wire.received if one.number > cancellation.number and one.is_response and _id(one) is None
    ]
    run.holds("cancel.unknown-session", not stray, "it was answered", cancellation, *stray)
    await usable(run, "cancel.unknown-session", session)


def _id(entry: Entry) -> object:
    return entry.msg.get("id")


@SUITE.scenario(
    "cancel-twice",
    "an impatient user cancels twice",
    shows=(
        _stops("cancel.twice", "twice", "Ignore `session/cancel` for a turn that is being cancelled."),
        _next("cancel.twice-next", "twice"),
    ),
)
async def twice(run: AgentRun) -> None:
    session = await run.session()
    await _cancelled(run, "cancel.twice", lambda: busy(run, session), times=2)
    await run.settle()
    response = await run.turn(session)
    right = response.error is None and reason(response) != "cancelled"
    run.holds("cancel.twice-next", right, "the next turn was cancelled or refused", response)


@SUITE.scenario(
    "cancel-one",
    "a user cancels one of two sessions",
    shows=(
        must(
            "cancel.one",
            "Cancelling one session leaves the turn of another alone.",
            link=LINK,
            fix="Keep for each session by itself whether its turn is cancelled.",
        ),
    ),
)
async def one_of_two(run: AgentRun) -> None:
    one, other = await run.session(), await run.session()
    left = await busy(run, one)
    stopped = await run.prompt(other, run.words("long"))
    if await run.sign(other, stopped) is None:
        for session in other, one:
            await run.cancel(session)
        for turn in left, stopped:
            await turn.response()
        raise NotSeen("the turn of one session waits for that of the other")
    await still_runs(run, other, stopped)
    await run.cancel(other)
    await stopped.response()
    ended_too = await early(left, run.options.silence)
    await run.cancel(one)
    await left.response()
    if ended_too is not None and reason(ended_too) not in (None, "cancelled"):
        raise NotSeen("the turn of the other session ended by itself: a prompt file can name a longer one")
    run.holds("cancel.one", ended_too is None, "the turn of the other session ended too", ended_too)


for _one in ("talking", "asking", "running", "crossing", "twice"):
    SUITE.follows[f"cancel.{_one}"] = (RULE,)
SUITE.follows["cancel.terminals"] = ("terminal.released",)
SUITE.follows["cancel.one"] = ("cancel.unasked",)
