"""For people who write clients: connect to an agent, hold sessions, follow turns, show them. Never imports `agent`."""

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
