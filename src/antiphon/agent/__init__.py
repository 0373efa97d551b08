"""For people who write agents: an agent, its sessions, a turn with verbs, tool calls. Never imports `client`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.commands import FinishedCommand, RunningCommand
    from antiphon.agent.questions import Permission
    from antiphon.agent.session import AgentSession
    from antiphon.agent.tools import LiveCall
    from antiphon.agent.turn import AgentTurn

__all__ = ["Agent", "AgentSession", "AgentTurn", "FinishedCommand", "LiveCall", "Permission", "RunningCommand"]

if not TYPE_CHECKING:
    from antiphon.late import loader, names

    __getattr__ = loader(
        __name__,
        {
            "Agent": "antiphon.agent.agent",
            "FinishedCommand": "antiphon.agent.commands",
            "LiveCall": "antiphon.agent.tools",
            "Permission": "antiphon.agent.questions",
            "RunningCommand": "antiphon.agent.commands",
            "AgentSession": "antiphon.agent.session",
            "AgentTurn": "antiphon.agent.turn",
        },
    )
    __dir__ = names(__name__, __all__)
