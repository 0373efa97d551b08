"""Version 1 of ACP as a connection sees it."""

from typing import Final

from antiphon.protocol.v1.methods import CREATE_ELICITATION, SESSION_UPDATE
from antiphon.protocol.version import Template, Version

__all__ = ["V1"]


def _text(kind: bytes) -> Template:
    update = b'{"sessionUpdate":"%b","content":{"type":"text","text":' % kind
    return Template(b'{"sessionId":%b,"update":' + update, b"}}}")


V1: Final = Version(
    1,
    SESSION_UPDATE,
    params_update=Template(b'{"sessionId":%b,"update":', b"}"),
    params_say=_text(b"agent_message_chunk"),
    params_think=_text(b"agent_thought_chunk"),
    request_ids={CREATE_ELICITATION.name: "requestId"},
)
