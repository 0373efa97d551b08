"""What we write to the CLI: whole lines, their end included."""

from typing import Any

import msgspec

from antiphon.protocol.base import JsonObject

__all__ = ["control_answer", "control_refusal", "control_request", "user_message"]

_encode = msgspec.json.Encoder().encode


def user_message(content: str | list[JsonObject], uuid: str) -> bytes:
    """What the user says: text or blocks. The id comes back in the turn's result."""
    return _line({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}})


def control_request(request_id: str, subtype: str, fields: JsonObject) -> bytes:
    """Ask the CLI for something."""
    return _line({"type": "control_request", "request_id": request_id, "request": {**fields, "subtype": subtype}})


def control_answer(request_id: str, body: JsonObject) -> bytes:
    """Answer a question of the CLI."""
    return _response({"subtype": "success", "request_id": request_id, "response": body})


def control_refusal(request_id: str, error: str) -> bytes:
    """Say that a question cannot be answered."""
    return _response({"subtype": "error", "request_id": request_id, "error": error})


def _response(response: dict[str, Any]) -> bytes:
    return _line({"type": "control_response", "response": response})


def _line(value: dict[str, Any]) -> bytes:
    return _encode(value) + b"\n"
