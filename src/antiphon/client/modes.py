"""One mode for one session: the agent's own mode and the mode of our policy are kept in step, and one word says what happens.

An agent that has modes of the policy's names does by itself what its mode allows; what it asks is decided by the policy's. Where the two
differ, the wider one is what happens. So a mode is changed on both sides, and an agent that comes back in a wider mode than the policy's is
set to the policy's: what it says about its own mode never widens anything here.
"""

from typing import TYPE_CHECKING, Final

from antiphon.client import settings
from antiphon.errors import AcpError
from antiphon.policy import PolicyMode
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.client.session import Session
    from antiphon.permission.gate import PermissionGate

__all__ = ["agent_mode", "agent_modes", "follow_agent", "keep_agent_to", "mode_in_force", "set_mode"]

ORDER: Final = (PolicyMode.PLAN, PolicyMode.DONT_ASK, PolicyMode.DEFAULT, PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS)
"""From the mode that lets least happen to the one that lets everything happen."""


def agent_modes(session: "Session") -> list[str]:
    """The ids of the agent's own modes."""
    if session.modes is not None:
        return [mode.id for mode in session.modes.available_modes]
    option = settings.of_category(session, v1.ConfigCategory.MODE)
    if option is None:
        return []
    groups = [entry.options if isinstance(entry, v1.SelectGroup) else [entry] for entry in option.options]
    return [each.value for group in groups for each in group]


def agent_mode(session: "Session") -> str | None:
    """The agent's own mode that is in force."""
    if session.modes is not None:
        return session.modes.current_mode_id
    option = settings.of_category(session, v1.ConfigCategory.MODE)
    return None if option is None else option.current_value


def _as_ours(id: str | None) -> PolicyMode | None:
    return next((mode for mode in ORDER if id is not None and mode.value.lower() == id.lower()), None)


def mode_in_force(session: "Session", ours: PolicyMode) -> PolicyMode:
    """The mode that says what happens."""
    theirs = _as_ours(agent_mode(session))
    if theirs is None:
        return ours
    if ORDER.index(theirs) < ORDER.index(
        PolicyMode.DEFAULT
    ):  # it holds itself back, and asks nothing that we could allow
        return theirs
    if (
        ORDER.index(ours) < ORDER.index(PolicyMode.DEFAULT) and theirs is PolicyMode.DEFAULT
    ):  # all that it asks is denied
        return ours
    return max(theirs, ours, key=ORDER.index)


async def set_mode(session: "Session", gate: "PermissionGate", wanted: str) -> None:
    """Change the mode: the agent's, that of the policy, or both where they have the same name.

    Raises:
        AcpError: there is no such mode, or the agent refuses it.
    """
    there = agent_modes(session)
    theirs = next((id for id in there if id.lower() == wanted.lower()), None)
    ours = _as_ours(wanted)
    if theirs is None and ours is None:
        every = ", ".join(dict.fromkeys([*there, *(mode.value for mode in PolicyMode)]))
        raise AcpError(f"there is no mode `{wanted}`", hint=f"there are {every}")
    if theirs is not None:
        await session.set_mode(theirs)
        follow_agent(gate, theirs)
    elif ours is not None:
        gate.mode = ours
        await keep_agent_to(session, ours)


def follow_agent(gate: "PermissionGate", chosen: str) -> None:
    """Take over a mode that the user has chosen for the agent."""
    mode = _as_ours(chosen)
    if mode is not None:
        # An agent that plans asks when the plan is done, and goes on when it is approved: `plan` of ours would still forbid it.
        gate.mode = PolicyMode.DEFAULT if mode is PolicyMode.PLAN else mode


async def keep_agent_to(session: "Session", ours: PolicyMode) -> PolicyMode | None:
    """Set an agent that would do more unasked than our mode allows to that mode, or to one that asks. The mode that it was in, or None.

    Raises:
        AcpError: it refuses.
    """
    theirs = _as_ours(agent_mode(session))
    # In `default` and below it does nothing unasked: what it asks is decided here.
    if theirs is None or ORDER.index(theirs) <= max(ORDER.index(ours), ORDER.index(PolicyMode.DEFAULT)):
        return None
    offered = {mode: id for id in agent_modes(session) if (mode := _as_ours(id)) is not None}
    wanted = next(
        (mode for mode in (ours, PolicyMode.DEFAULT, PolicyMode.DONT_ASK, PolicyMode.PLAN) if mode in offered), None
    )
    if wanted is None:
        raise AcpError(f"the agent is in `{theirs.value}` and offers no mode that allows less")
    await session.set_mode(offered[wanted])
    return theirs
