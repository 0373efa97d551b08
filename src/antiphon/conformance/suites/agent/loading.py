"""Going on with a session: `session/load`, `session/resume` and, a draft, `session/fork`."""

from antiphon.conformance.requirements import Requirement, advice, capability, should
from antiphon.conformance.stage import Answer, Stage
from antiphon.conformance.suites.agent.acting import NOBODY, is_refused, said, usable
from antiphon.conformance.suites.agent.settings import choose, options, other_value
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import Blocked, NotOffered, Unseen

__all__: list[str] = []

LINK = "session-setup#loading-sessions"


def _unknown(id: str, method: str) -> Requirement:
    return should(
        id,
        f"`{method}` of a session that does not exist is answered with an error.",
        link="session-setup",
        fix="Answer with an error, such as -32002, instead of opening a new session under that id.",
    )


def _next(id: str, what: str) -> Requirement:
    return capability(
        id,
        f"A session that was {what} takes a turn.",
        link="session-setup",
        fix=f"Leave a session that was {what} as `session/new` leaves one: ready for a prompt.",
    )


async def _used(stage: Stage, purpose: str = "say") -> tuple[str, str, str]:
    """A session with a turn behind it that is not open any more, if that can be: its id, what we said, what the agent said."""
    session = await stage.session()
    answer = await stage.turn(session, purpose)
    await stage.settle()
    told = said(stage.updates(session, after=answer.asked.number))
    if stage.offers("sessionCapabilities", "close"):
        await stage.ask("session/close", {"sessionId": session})
    return session, stage.words(purpose), told


async def _reopen(stage: Stage, method: str, session: str) -> Answer:
    """Load or resume. Some agents refuse that for a session that is open, and may.

    Raises:
        Unseen: it is open, and refused.
    """
    answer = await stage.ask(method, {"sessionId": session, "cwd": str(stage.cwd), "mcpServers": []})
    if is_refused(answer) and not stage.offers("sessionCapabilities", "close"):
        raise Unseen("the agent refuses that for a session that is open, and cannot close one")
    return answer


@SUITE.scenario(
    "load",
    "a user goes back to a session",
    shows=(
        capability(
            "load.loads",
            "A session with a turn in it can be loaded.",
            link=LINK,
            fix="Keep what is needed to go on with a session, or do not offer `loadSession`.",
        ),
        capability(
            "load.user",
            "Loading a session tells again what the user said.",
            link=LINK,
            fix="Send the prompts of the session as `user_message_chunk` before you answer.",
            needs=("load.loads",),
        ),
        capability(
            "load.agent",
            "Loading a session tells again what the agent said, in the same order.",
            link=LINK,
            fix="Send the answers of the session as `agent_message_chunk` before you answer.",
            needs=("load.loads",),
        ),
        _next("load.next", "loaded"),
    ),
)
async def load(stage: Stage) -> None:
    stage.need("loadSession")
    session, asked, told = await _used(stage, "many")
    answer = await _reopen(stage, "session/load", session)
    if not stage.holds("load.loads", not is_refused(answer), "it was answered with an error", answer):
        raise Blocked("the session could not be loaded")
    history = stage.updates(session, after=answer.asked.number, before=answer.entry.number)
    again = said(history, "user_message_chunk")
    stage.holds("load.user", _has(again, asked), f"it told {again[:80]!r} instead of {asked[:80]!r}", answer)
    if told:
        again = said(history)
        stage.holds("load.agent", _has(again, told), f"it told {again[:80]!r} instead of {told[:80]!r}", answer)
    await usable(stage, "load.next", session)
    if not told:
        raise Unseen("the agent said nothing that could be told again")


def _has(text: str, part: str) -> bool:
    """Whether it is in there: white space is lost where pieces are joined anew."""
    return "".join(part.split()) in "".join(text.split())


@SUITE.scenario(
    "load-unknown",
    "a user goes back to a session that does not exist",
    shows=(_unknown("load.unknown", "session/load"),),
)
async def load_unknown(stage: Stage) -> None:
    stage.need("loadSession")
    await stage.session()  # so that it is this one that is refused, and not everybody
    params = {"sessionId": NOBODY, "cwd": str(stage.cwd), "mcpServers": []}
    answer = await stage.ask("session/load", params)
    stage.holds("load.unknown", is_refused(answer), "it was answered with a result", answer)


@SUITE.scenario(
    "load-settings",
    "a user goes back to a session with settings of its own",
    shows=(
        advice(
            "load.settings",
            "A session that is loaded has the settings that it was left with, but for the mode.",
            link="session-config-options#initial-state",
            fix="Keep the settings of a session with its history.",
        ),
    ),
)
async def load_settings(stage: Stage) -> None:
    stage.need("loadSession")
    session, made = await stage.opened()
    # A mode may let the agent do more: one that goes back to asking does well.
    kept = [one for one in options(made) if one.get("category") != "mode"]
    option = next((one for one in kept if other_value(one) is not None), None)
    if option is None:
        raise NotOffered("the session has no settings but modes")
    chosen = other_value(option)
    if is_refused(await choose(stage, session, option.get("id"), chosen)):
        raise Blocked("a setting was refused")
    await stage.turn(session)
    if stage.offers("sessionCapabilities", "close"):
        await stage.ask("session/close", {"sessionId": session})
    answer = await _reopen(stage, "session/load", session)
    found = next((one.get("currentValue") for one in options(answer) if one.get("id") == option.get("id")), None)
    if found is None:
        raise Unseen("the answer to `session/load` has no settings")
    stage.holds("load.settings", found == chosen, f"`{option.get('id')}` is {found!r} and was {chosen!r}", answer)


@SUITE.scenario(
    "resume",
    "a client goes on with a session whose history it has",
    shows=(
        capability(
            "resume.resumes",
            "A session with a turn in it can be resumed.",
            link="session-setup#resuming-sessions",
            fix="Keep what is needed to go on with a session, or do not offer `sessionCapabilities.resume`.",
        ),
        _next("resume.next", "resumed"),
        _unknown("resume.unknown", "session/resume"),
    ),
)
async def resume(stage: Stage) -> None:
    stage.need("sessionCapabilities", "resume")
    session, _, _ = await _used(stage)
    unknown = await stage.ask("session/resume", {"sessionId": NOBODY, "cwd": str(stage.cwd), "mcpServers": []})
    stage.holds("resume.unknown", is_refused(unknown), "it was answered with a result", unknown)
    answer = await _reopen(stage, "session/resume", session)
    if not stage.holds("resume.resumes", not is_refused(answer), "it was answered with an error", answer):
        raise Blocked("the session could not be resumed")
    await stage.settle()
    await usable(stage, "resume.next", session)


@SUITE.scenario(
    "fork",
    "a user takes a session as the beginning of another",
    shows=(
        capability(
            "fork.another",
            "A fork of a session has an id of its own.",
            link="draft/schema",
            fix="Answer `session/fork` with a new `sessionId`, or do not offer `sessionCapabilities.fork`.",
        ),
        _next("fork.next", "forked from another"),
        capability(
            "fork.original",
            "The session that was forked goes on as before.",
            link="draft/schema",
            fix="Copy the session: neither of the two may know what is said in the other.",
        ),
    ),
)
async def fork(stage: Stage) -> None:
    stage.need("sessionCapabilities", "fork")
    session = await stage.session()
    await stage.turn(session)
    answer = await stage.ask("session/fork", {"sessionId": session, "cwd": str(stage.cwd), "mcpServers": []})
    made = answer.get("sessionId")
    another = isinstance(made, str) and bool(made) and made != session
    if not stage.holds("fork.another", another, f"the fork of {session} is {made}", answer):
        raise Blocked("there is no fork")
    await usable(stage, "fork.next", made)
    await usable(stage, "fork.original", session)
