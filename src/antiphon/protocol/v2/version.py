"""Version 2 of ACP as a connection sees it."""

from typing import Final

from antiphon.protocol.v2.methods import CREATE_ELICITATION, SESSION_UPDATE
from antiphon.protocol.version import Template, Version

__all__ = ["V2"]


def _text(kind: bytes) -> Template:
    # Version 2 wants an id on every piece: one message for all that a connection sends by this template.
    update = b'{"sessionUpdate":"%b","messageId":"%b","content":{"type":"text","text":' % (kind, kind)
    return Template(b'{"sessionId":%b,"update":' + update, b"}}}")


V2: Final = Version(
    2,
    SESSION_UPDATE,
    params_update=Template(b'{"sessionId":%b,"update":', b"}"),
    params_say=_text(b"agent_message_chunk"),
    params_think=_text(b"agent_thought_chunk"),
    request_ids={CREATE_ELICITATION.name: "requestId"},
)
