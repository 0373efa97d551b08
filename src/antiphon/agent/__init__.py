"""For people who write agents: an agent, its sessions, a turn with verbs, tool calls. Never imports `client`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.commands import Finished, Running
    from antiphon.agent.permission import Permission
    from antiphon.agent.session import Session
    from antiphon.agent.tools import LiveCall
    from antiphon.agent.turn import Turn

__all__ = ["Agent", "Finished", "LiveCall", "Permission", "Running", "Session", "Turn"]

if not TYPE_CHECKING:
    from antiphon.late import loader, names

    __getattr__ = loader(
        __name__,
        {
            "Agent": "antiphon.agent.agent",
            "Finished": "antiphon.agent.commands",
            "LiveCall": "antiphon.agent.tools",
            "Permission": "antiphon.agent.permission",
            "Running": "antiphon.agent.commands",
            "Session": "antiphon.agent.session",
            "Turn": "antiphon.agent.turn",
        },
    )
    __dir__ = names(__name__, __all__)
