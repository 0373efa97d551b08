"""What we write to the app server: whole lines, their end included. JSON-RPC without the field that says so."""

from typing import Any, Final

import msgspec

from antiphon.engines.codex.wire.lines import RequestId
from antiphon.errors import Code

__all__ = ["answer", "notification", "refusal", "request"]

_encode: Final = msgspec.json.Encoder().encode


def request(id: RequestId, method: str, params: Any = None) -> bytes:
    """Ask for something."""
    return _line({"method": method, "id": id, "params": {} if params is None else params})


def notification(method: str, params: Any = None) -> bytes:
    """Say something."""
    return _line({"method": method} if params is None else {"method": method, "params": params})


def answer(id: RequestId, result: Any) -> bytes:
    """Answer a question of the server."""
    return _line({"id": id, "result": result})


def refusal(id: RequestId, message: str, code: int = Code.INTERNAL_ERROR) -> bytes:
    """Say that a question cannot be answered."""
    return _line({"id": id, "error": {"code": code, "message": message}})


def _line(value: dict[str, Any]) -> bytes:
    return _encode(value) + b"\n"
