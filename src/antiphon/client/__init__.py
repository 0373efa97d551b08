"""For people who write clients: connect to an agent, hold sessions, follow turns, show them. Never imports `agent`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.client.files import Files
    from antiphon.client.handlers import Elicitation, allow_always, allow_once, reject
    from antiphon.client.remote import ConnectedAgent
    from antiphon.client.retry import Retry
    from antiphon.client.session import Session
    from antiphon.client.terminals import Terminals
    from antiphon.client.turn import Turn
    from antiphon.transcript.transcript import Transcript, fold

__all__ = [
    "ConnectedAgent", "Elicitation", "Files", "Retry", "Session", "Terminals", "Transcript", "Turn", "allow_always",
    "allow_once", "fold", "reject",
]  # fmt: skip

if not TYPE_CHECKING:
    from antiphon.late import loader, names

    __getattr__ = loader(
        __name__,
        {
            "ConnectedAgent": "antiphon.client.remote",
            "Elicitation": "antiphon.client.handlers",
            "Files": "antiphon.client.files",
            "Retry": "antiphon.client.retry",
            "Session": "antiphon.client.session",
            "Terminals": "antiphon.client.terminals",
            "Transcript": "antiphon.transcript.transcript",
            "Turn": "antiphon.client.turn",
            "allow_always": "antiphon.client.handlers",
            "allow_once": "antiphon.client.handlers",
            "fold": "antiphon.transcript.transcript",
            "reject": "antiphon.client.handlers",
        },
    )
    __dir__ = names(__name__, __all__)
