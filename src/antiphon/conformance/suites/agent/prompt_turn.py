"""Turns: each has a response, also beside others."""

from itertools import pairwise

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, advice, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import (
    STOP_REASONS,
    breaks_off,
    busy,
    early,
    ended,
    reason,
    usable,
)
from antiphon.traffic.entries import Entry, as_object, objects_in

__all__: list[str] = []


@SUITE.scenario(
    "turn",
    "a user sends a prompt",
    shows=(
        must(
            "turn.ends",
            "`session/prompt` with a text is answered with a stop reason that the schema knows.",
            link="prompt-turn#4-check-for-completion",
            fix="Answer `session/prompt` with `stopReason` when the turn is over.",
        ),
        must(
            "turn.again",
            "A session takes one turn after the other.",
            link="prompt-turn#the-prompt-turn-lifecycle",
            fix="Leave the session as it was before the turn: ready for a prompt.",
        ),
    ),
)
async def turn(run: AgentRun) -> None:
    session = await run.session()
    response = await run.turn(session)
    run.holds("turn.ends", reason(response) in STOP_REASONS, "the answer has no such stop reason", response)
    await run.settle()
    await usable(run, "turn.again", session)
    await run.settle()


@SUITE.scenario(
    "turn-beside",
    "two sessions have a turn at once",
    shows=(
        must(
            "turn.beside",
            "Turns of two sessions at once are both answered.",
            link="session-setup",
            fix="Keep what belongs to a turn with its session: each has its own context, history and state.",
        ),
        must(
            "turn.apart",
            "Turns of two sessions at once do not mix: the updates of each go to its own session.",
            link="session-setup",
            fix="Send every `session/update` with the id of the session that it belongs to.",
        ),
    ),
)
async def beside(run: AgentRun) -> None:
    one, other = await run.session(), await run.session()
    pending = {session: await run.prompt(session, run.words("say")) for session in (one, other)}
    for each in pending.values():
        response = await ended(run, "turn.beside", each, "one of two turns did not end")
        right = response.error is None
        run.holds("turn.beside", right, "one of two turns was answered with an error", response)
    begun = pending[one].request.number
    updates = {session: _in_turn(run.updates(session, after=begun)) for session in pending}
    if not any(updates.values()):
        raise NotSeen("neither turn sent anything")
    missing = [session for session, found in updates.items() if not found]
    run.holds("turn.apart", not missing, f"nothing was sent in {missing}, all of it in the other", pending[one].request)


def _in_turn(updates: list[Entry]) -> list[Entry]:
    """Without those that are about a session rather than about what happens in it."""
    about = ("available_commands_update", "current_mode_update", "config_option_update", "session_info_update")
    return [one for one in updates if _kind(one) not in (*about, "usage_update")]


def _kind(entry: Entry) -> object:
    return as_object(entry.params.get("update")).get("sessionUpdate")


@SUITE.scenario(
    "turn-second",
    "a second prompt comes while the first is being answered",
    provokes=True,
    shows=(
        should(
            "turn.second",
            "A second prompt during a turn is answered too: queued, refused, or instead of the first.",
            link="prompt-turn",
            fix="Queue the second prompt, refuse it with an error, or end the first turn; but answer both.",
        ),
        should(
            "turn.after-second",
            "After a second prompt during a turn the session takes a third.",
            link="prompt-turn",
            fix="Let whatever happens to two prompts at once leave the session ready for the next.",
            needs=("turn.second",),
        ),
    ),
)
async def second(run: AgentRun) -> None:
    session = await run.session()
    pending = await busy(run, session)
    more = await run.prompt(session, run.words("say"))
    await early(more, run.options.silence)
    await run.cancel(session)
    for each in (pending, more):
        response = await ended(run, "turn.second", each, "one of two prompts in a session was not answered")
        run.holds("turn.second", True, "", response)
    await run.settle()
    await usable(run, "turn.after-second", session)


@SUITE.scenario(
    "turn-odd",
    "a prompt with nothing in it",
    provokes=True,
    shows=(
        should(
            "turn.empty",
            "A prompt without content is answered, and the session takes another.",
            link="prompt-turn#1-user-message",
            fix="Answer an empty prompt with an error or by ending the turn.",
        ),
    ),
)
async def odd(run: AgentRun) -> None:
    session = await run.session()
    empty = await run.send_request("session/prompt", {"sessionId": session, "prompt": []})
    await ended(run, "turn.empty", empty, "it was not answered")
    await usable(run, "turn.empty", session)


@SUITE.scenario(
    "plan",
    "an agent makes a plan",
    shows=(
        advice(
            "plan.whole",
            "Each plan that is sent is the whole plan.",
            link="agent-plan#updating-plans",
            fix="Send all entries each time: the client replaces the plan that it has.",
        ),
    ),
)
async def plan(run: AgentRun) -> None:
    session = await run.session()
    response = await run.turn(session, "plan")
    plans = [one for one in run.updates(session, after=response.request.number) if _kind(one) == "plan"]
    if len(plans) < 2:
        raise NotSeen("the agent sent no plan twice: a prompt file can name words that make it")
    for before, after in pairwise(plans):
        left = _open_entries(before) - _entries(after)
        partial = bool(left) and _entries(after) < _entries(before)
        run.holds("plan.whole", not partial, f"entries that were not done are missing: {sorted(left)}", before, after)


def _entries(entry: Entry) -> set[str]:
    return {str(one.get("content")) for one in _listed(entry)}


def _open_entries(entry: Entry) -> set[str]:
    return {str(one.get("content")) for one in _listed(entry) if one.get("status") != "completed"}


def _listed(entry: Entry) -> list[dict[str, object]]:
    return objects_in(as_object(entry.params.get("update")).get("entries"))


@SUITE.scenario(
    "commands",
    "an agent offers slash commands",
    shows=(
        should(
            "commands.names",
            "Commands are named without their slash, and each once.",
            link="slash-commands#advertising-commands",
            fix="Send names such as `web`: the client puts the slash before them.",
        ),
    ),
)
async def commands(run: AgentRun) -> None:
    session = await run.session()
    await run.turn(session)
    await run.settle()
    lists = [one for one in run.updates(session) if _kind(one) == "available_commands_update"]
    if not lists:
        raise NotSeen("the agent offers no commands")
    for entry in lists:
        listed = objects_in(as_object(entry.params.get("update")).get("availableCommands"))
        names = [str(one.get("name")) for one in listed]
        wrong = {name for name in names if name.startswith("/") or names.count(name) > 1}
        run.holds("commands.names", not wrong, f"there is a slash in front, or two have it: {sorted(wrong)}", entry)


breaks_off("turn.second")
SUITE.follows["turn.apart"] = ("turn.not-silent", "call.once")
