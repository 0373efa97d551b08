"""Acts for the parts of the protocol that are still drafts, for clients that say they know them."""

from typing import TYPE_CHECKING

from antiphon.engines.demo.acts import act
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__: list[str] = []


@act("plans", "Show several plans, of every form (draft)")
async def plans(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """As a list, as a file, as Markdown; then one is dropped."""
    if turn.session.client.capabilities.plan is None:
        await turn.say("Your client does not show several plans; `/plan` shows one.")
        return None
    entry = v1.PlanEntry("Sing", v1.PlanPriority.HIGH, v1.PlanStatus.PENDING)
    readme = f"file://{turn.path('README.md')}"
    for plan in (v1.PlanItems("list", [entry]), v1.PlanFile("file", readme), v1.PlanMarkdown("text", "- [ ] Sing")):
        await turn.update(v1.PlanUpdate(plan))
    await turn.update(v1.PlanRemoved("file"))
    await turn.say("Two plans are left.")
    return None


@act("child", "Show a child session at work (draft)")
async def child(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """It goes through its states, and the two exchange a message."""
    if turn.session.client.capabilities.subagents is None:
        await turn.say("Your client does not show child sessions.")
        return None
    id = f"{turn.session.id}-{turn.next_id('child')}"
    states = (v1.RunningState(), v1.ActionRequiredState(), v1.UnknownState(), v1.IdleState(v1.IdleReason.END_TURN))
    await turn.update(v1.SubagentUpdate(id, title="The second voice", cwd=turn.session.cwd))
    for state in states:
        await turn.update(v1.SubagentUpdate(id, state=state))
    message = turn.next_id("message")
    await turn.update(v1.SessionMessage(message, sender_session_id=turn.session.id, recipient_session_id=id))
    await turn.update(v1.SessionMessageChunk(message, v1.TextBlock("Your turn.")))
    await turn.say("The child is done.")
    return None
