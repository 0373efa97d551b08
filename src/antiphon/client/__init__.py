"""The SDK for clients: connect to an agent, open sessions, iterate over turns. Never imports `agent`.

Files in reading order:

    connect.py        `connect`, with a block or without
    agent.py          an agent that we are connected to: sessions opened, listed, deleted, found by the beginning of an id
    session.py        a session: prompts, settings, its end, and how it is opened again
    turn.py           a turn: one prompt, its updates, its result
    updates.py        where updates go outside of turns, settings that follow them, sessions by their ids, and open questions
    link.py           the link to an agent: target, start, handshake, sign-in, retries
    capabilities.py   what each side can do
    handlers.py       the agent's requests: permission, questions, extensions, and the handlers of users of this SDK
    files.py          files for the agent, inside the session's roots
    terminals.py      terminals for the agent
    attachments.py    files as content of a prompt
    launch.py         an agent started behind config, policy and store; its mode kept to that of the policy
    relay.py          an agent whose messages are forwarded, for the ACP engine
    sync.py           the same without `async`
    worker.py         the thread with the event loop below `sync`
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.client.agent import ConnectedAgent
    from antiphon.client.files import Files
    from antiphon.client.handlers import Elicitation, allow_always, allow_once, reject
    from antiphon.client.link import Retry
    from antiphon.client.session import ClientSession
    from antiphon.client.terminals import Terminals
    from antiphon.client.turn import ClientTurn
    from antiphon.transcript.transcript import Transcript, fold

__all__ = [
    "ClientSession",
    "ClientTurn",
    "ConnectedAgent",
    "Elicitation",
    "Files",
    "Retry",
    "Terminals",
    "Transcript",
    "allow_always",
    "allow_once",
    "fold",
    "reject",
]  # fmt: skip

if not TYPE_CHECKING:
    from antiphon.late import loader, names

    __getattr__ = loader(
        __name__,
        {
            "ConnectedAgent": "antiphon.client.agent",
            "Elicitation": "antiphon.client.handlers",
            "Files": "antiphon.client.files",
            "Retry": "antiphon.client.link",
            "ClientSession": "antiphon.client.session",
            "Terminals": "antiphon.client.terminals",
            "Transcript": "antiphon.transcript.transcript",
            "ClientTurn": "antiphon.client.turn",
            "allow_always": "antiphon.client.handlers",
            "allow_once": "antiphon.client.handlers",
            "fold": "antiphon.transcript.transcript",
            "reject": "antiphon.client.handlers",
        },
    )
    __dir__ = names(__name__, __all__)
