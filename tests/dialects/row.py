"""One row of the test table: what a peer sends, and what must arrive."""

from typing import Any, NamedTuple

import msgspec

from antiphon.protocol.methods import Half

__all__ = ["GOOD", "Json", "Row", "wire"]

Json = dict[str, Any] | list[Any] | str | int | bool | None


class Row(NamedTuple):
    """What a peer sends, and what must arrive."""

    name: str
    source: str
    method: str
    half: Half
    wire: bytes
    """The params or the result, as that peer sends them."""
    seen: Json
    """What the handler got (or the asker), as it would be sent again; defaults are left out."""
    rules: tuple[str, ...] = ()
    """The rules that it takes; none where the types alone are enough."""
    meanings: dict[str, str] = {}  # noqa: RUF012
    """Words kept in the peer's spelling → what they mean."""
    says: Json = None
    """For questions: what our handler answers, in the schema's words; None for the mirror's own answer."""
    received: Json = None
    """What the asker gets then; None for the same."""
    sent_as: str | None = None
    """The older name of the method, if the peer uses it."""


def wire(value: Json) -> bytes:
    return msgspec.json.encode(value)


GOOD: dict[str, Json] = {
    "authenticate": {"methodId": "key"},
    "fs/write_text_file": {"sessionId": "s", "path": "/a", "content": ""},
    "initialize": {"protocolVersion": 1},
    "logout": {},
    "providers/disable": {"providerId": "p"},
    "providers/set": {"providerId": "p", "apiType": "openai", "baseUrl": "https://example.com"},
    "session/archive": {"sessionId": "s"},
    "session/close": {"sessionId": "s"},
    "session/delete": {"sessionId": "s"},
    "session/fork": {"sessionId": "s", "cwd": "/w"},
    "session/list": {},
    "session/load": {"sessionId": "s", "cwd": "/w", "mcpServers": []},
    "session/new": {"cwd": "/w", "mcpServers": []},
    "session/prompt": {"sessionId": "s", "prompt": []},
    "session/request_permission": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []},
    "session/resume": {"sessionId": "s", "cwd": "/w"},
    "session/set_config_option": {"sessionId": "s", "configId": "c", "value": "v"},
    "session/set_mode": {"sessionId": "s", "modeId": "m"},
    "session/set_model": {"sessionId": "s", "modelId": "m"},
    "session/unarchive": {"sessionId": "s"},
    "terminal/kill": {"sessionId": "s", "terminalId": "term"},
    "terminal/output": {"sessionId": "s", "terminalId": "term"},
    "terminal/release": {"sessionId": "s", "terminalId": "term"},
    "terminal/wait_for_exit": {"sessionId": "s", "terminalId": "term"},
}
"""Questions as the schema has them, for rows that are answers."""
