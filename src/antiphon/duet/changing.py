"""What the user changes about a joint session: route, who leads, mode, models, whatever an engine has to choose from; and a fresh start."""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from antiphon.duet.options import AUTO_RESUME, MODE, PRIMARY, REVIEW_OPTION, ROUTE, address
from antiphon.duet.saying import told
from antiphon.errors import AcpError, Code, RequestError
from antiphon.store.errors import NoSuchSession, StoreError

if TYPE_CHECKING:
    from antiphon.duet.joint import JointSession
    from antiphon.duet.part import InnerSession

__all__ = ["clear", "put_away", "set_mode", "set_model", "set_option", "set_route"]


async def set_route(joint: "JointSession", route: str) -> None:
    """Let others answer from now on. They are opened while the user types."""
    joint.state.route, joint.state.routed = route, True
    await _changed(joint)


async def _changed(joint: "JointSession") -> None:
    await joint.open(joint.lead)
    await joint.standing.tell()
    await joint.standing.tell_commands()
    joint.prepare()
    await joint.save()


async def set_mode(joint: "JointSession", mode: str) -> None:
    """Another mode for all engines. Those that are open change at once, and the others when they are opened.

    Raises:
        RequestError: the engine that leads refuses.
    """
    lead = await joint.cast.part(joint.lead)
    if mode != _mode_of(lead):
        await joint.cast.set_mode(lead, mode)
    joint.state.mode = joint.guard.mode = mode
    for known in joint.state.engines.values():
        known.mode = ""
    for part in tuple(joint.cast.parts.values()):
        if part is lead or part.looking:  # who looks goes on looking; its next turn is in the new mode
            continue
        try:
            await joint.cast.align(part)
        except AcpError as error:  # it keeps its own, and that is shown among the settings
            await joint.saying.notice(f"{part.title} stays in its mode", told(error)[0])
    await joint.standing.tell()
    await joint.save()


def _mode_of(part: "InnerSession") -> str:
    return "" if part.modes is None else part.modes.current_mode_id


async def set_model(joint: "JointSession", model: str) -> None:
    """Another model of the engine that leads, in the way of older clients."""
    part = await joint.cast.part(joint.lead)
    await joint.cast.set_model(part, model)
    joint.state.of(part.name).options["model"] = model
    await joint.standing.tell()
    await joint.save()


async def set_option(joint: "JointSession", option: str, value: bool | str) -> None:
    """Another value of a setting: one of ours, or an engine's.

    Raises:
        RequestError: there is none, or the engine refuses.
    """
    if option == ROUTE:
        await set_route(joint, str(value))
    elif option == PRIMARY:
        joint.state.primary = str(value)
        await _changed(joint)
    elif option == REVIEW_OPTION:
        joint.state.review = str(value)
        await joint.save()
    elif option == AUTO_RESUME:
        joint.state.auto_resume = value in ("on", True)
        await joint.save()
    elif option == MODE:
        await set_mode(joint, str(value))
    else:
        await _set_of_engine(joint, option, value)


async def _set_of_engine(joint: "JointSession", option: str, value: bool | str) -> None:
    found = address(option, list(joint.cast.engines))
    if found is None:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"there is no setting `{option}`")
    name, own = found
    part = await joint.cast.part(name)
    if own == MODE:  # of this engine alone
        part.settings.check_mode(str(value))
        await joint.cast.set_mode(part, str(value))
        joint.state.of(name).mode = str(value)
    else:
        await joint.cast.set_option(part, own, value)
        joint.state.of(name).options[own] = str(value)
    await joint.standing.tell()
    await joint.save()


async def clear(joint: "JointSession") -> None:
    """Begin afresh. What was said stays in the list of sessions, under an id of its own; the client's session goes on, empty."""
    await put_away(joint)
    joint.prepare()


async def put_away(joint: "JointSession") -> None:
    """End what the engines do, and give what was said a session of its own."""
    await joint.save()
    await joint.stop_preparing()
    await joint.cast.drop()
    for known in joint.state.engines.values():
        known.conversation = known.source = ""
    await joint.journal.settled()
    if not joint.journal.empty:
        with suppress(NoSuchSession):  # somebody deleted it: all the fresher
            await joint.store.archive(joint.outer.id, os.urandom(16).hex(), joint.state.packed())
    joint.journal.restart()
    joint.saying.title = None
    with suppress(StoreError):  # what was allowed in the session that was
        await joint.guard.forget_session(joint.outer.id)
