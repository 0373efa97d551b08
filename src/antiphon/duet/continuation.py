"""`/continue`: the client's session becomes a copy of an earlier one, and goes on from there.

The client knows its session by an id that cannot change, and others may know the earlier one by its own: so both stay, and the earlier
one is left as it is.
"""

from typing import TYPE_CHECKING, Final

from antiphon.config.clients import SCRIPTS
from antiphon.duet.changing import put_away
from antiphon.duet.events import PromptEvent
from antiphon.duet.journal import OURS
from antiphon.duet.replaying import replayed
from antiphon.duet.state import JointState
from antiphon.duet.wishes import JOINT_ROUTES

if TYPE_CHECKING:
    from antiphon.duet.joint import JointSession
    from antiphon.store.sessions import SessionRow

__all__ = ["continue_session"]

SHOWN: Final = 8
"""Letters of an id that are shown where several begin alike."""

CANDIDATES: Final = 5
"""Sessions that are named then."""


async def continue_session(joint: "JointSession", id: str) -> None:
    """Go on with the last session of this directory that a person made, or with the one whose id begins like this."""
    outer = joint.outer
    if not id:
        row = await joint.store.last(OURS, outer.cwd, not_by=SCRIPTS, but=outer.id)
        if row is None:
            await joint.saying.say("There is no earlier session in this directory. `/sessions` shows what there is.")
            return
    else:
        found = [each for each in await joint.store.beginning(id, OURS) if each.id != outer.id and each.length]
        if len(found) != 1:
            await joint.saying.say(_not_one(id, found))
            return
        row = found[0]
    await _take_up(joint, row)
    title = f"Going on with “{row.title}”" if row.title else "Going on with an earlier session"
    await joint.saying.notice(title, "It stays in the list as it was, under its own id.", kept=False)


def _not_one(id: str, found: "list[SessionRow]") -> str:
    if not found:
        return f"There is no session whose id begins with `{id}`. `/sessions` shows those of this directory."
    named = ", ".join(f"`{row.id[: max(SHOWN, len(id) + 2)]}` ({row.title or row.cwd})" for row in found[:CANDIDATES])
    return f"Several sessions begin with `{id}`: {named}. Give some more letters."


async def _take_up(joint: "JointSession", row: "SessionRow") -> None:
    outer, journal = joint.outer, joint.journal
    if any(isinstance(event, PromptEvent) and not event.by for event in await joint.history()):
        await put_away(joint)
    else:  # only commands were typed, which are nothing to keep
        await joint.stop_preparing()
        await joint.cast.drop()
        journal.restart()
    await joint.store.delete(outer.id)
    state = JointState.read(await joint.store.state(row.id))
    for known in state.engines.values():
        known.source, known.conversation = known.conversation or known.source, ""
    await joint.store.fork(
        row.id,
        outer.id,
        cwd=outer.cwd,
        directories=outer.directories,
        state=state.packed(),
        client=outer.client.name,
    )
    journal.empty = False
    _follow(joint, state)
    events = await joint.history()
    for event in events:
        journal.minutes.hear(event)
    for update in replayed(events):
        await outer.update(update)
    if row.title:
        await joint.saying.entitled(row.title)
    await joint.open(joint.lead)
    await joint.standing.tell()
    await joint.standing.tell_commands()
    joint.prepare()


def _follow(joint: "JointSession", state: JointState) -> None:
    """What was chosen there holds here, as far as the same engines are here."""
    engines = joint.cast.engines
    if state.route in (*engines, *(JOINT_ROUTES if len(engines) > 1 else ())):
        joint.state.route, joint.state.routed = state.route, state.routed
    if state.primary in engines:
        joint.state.primary = state.primary
    joint.state.review = state.review or joint.state.review
    joint.state.mode = state.mode
    joint.guard.mode = state.mode or "default"
    joint.state.engines = state.engines
