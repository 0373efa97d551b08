"""The SDK for agents: an agent, its sessions, a turn with methods, tool calls. Never imports `client`.

Files in reading order:

    agent.py       the agent: hooks to fill in, capabilities computed from them, and serving over stdio or a transport
    service.py     one client that is served: which request goes where
    sessions.py    the sessions of one client: opened, prompted, changed, closed; what was not advertised is refused
    prompts.py     the prompts of one session, one at a time, and how they end; additions to a turn that runs
    session.py     a session as its agent sees it
    settings.py    its modes, models and config options
    turn.py        a turn: what an agent does between a prompt and its response
    questions.py   requests that wait for the user: permission, forms, pages, and what their answers mean
    tools.py       a tool call while it happens
    work.py        work beside the answer to a prompt: by itself, in the background, and what the client cancels alone
    commands.py    a command while it runs, in a terminal of the client or on this machine
    client.py      the client at the other end, and what it can do
"""

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
