"""A program that implements both sides of ACP and shows what it understood. Run it and send it messages over its stdin and stdout.

It handles every method of v1 and remembers the typed value its handler got. Besides the protocol it answers four requests:

- `_seen`: the last value, as it would be sent again; the meaning of every word in it that the lists do not have; the rules it
  took to read what came since the last `_seen`; the counts of all reports. Asking forgets the value and the rules.
- `_answer {method, result}`: what to answer to that method from now on, in the schema's words.
- `_ask {method, params}`: ask the other side that, and remember the typed answer. Answered when that is done.
- `_tell {method, params}`: send the other side that.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from antiphon.connection.connection import Connection
from antiphon.connection.reports import LenientlyRead, Report
from antiphon.connection.router import Router
from antiphon.errors import AcpError, Code, RequestError
from antiphon.protocol.base import encode
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.protocol.words import Word
from antiphon.transports.stdio import open_stdio

RESULTS: dict[str, bytes] = {
    "auth/status": b'{"state":"not_required"}',
    "elicitation/create": b'{"action":"decline"}',
    "fs/read_text_file": b'{"content":"text"}',
    "initialize": b'{"protocolVersion":1,"authMethods":[]}',
    "mcp/message": b'{"result":{}}',
    "providers/list": b'{"providers":[]}',
    "proxy/initialize": b'{"protocolVersion":1}',
    "session/fork": b'{"sessionId":"fork"}',
    "session/list": b'{"sessions":[]}',
    "session/new": b'{"sessionId":"new"}',
    "session/prompt": b'{"stopReason":"end_turn"}',
    "session/request_permission": b'{"outcome":{"outcome":"cancelled"}}',
    "session/set_config_option": b'{"configOptions":[]}',
    "session/set_title": b'{"title":"title"}',
    "session/status": b'{"status":"open"}',
    "terminal/create": b'{"terminalId":"term"}',
    "terminal/output": b'{"output":"","truncated":false}',
}
"""What the mirror answers by default; every other call gets `{}`."""


class Named(Struct):
    """The params of `_answer`, `_ask` and `_tell`."""

    method: str
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"{}")


class Mirror:
    """What was seen, and what to answer."""

    def __init__(self) -> None:
        self.answers = {
            call.name: call.decode_result(RESULTS.get(call.name, b"{}")) for call in m.CALLS_BY_NAME.values()
        }
        self.seen: dict[str, Any] = {}
        self.rules: list[str] = []
        self.connection: Connection | None = None

    def router(self) -> Router:
        """A handler for every method there is."""
        router = Router()
        for method in m.ALL:
            if isinstance(method, Call):
                router.on_request(method, self.handler_of(method))
            elif isinstance(method, Notice):
                router.on_notice(method, self.listener_of(method))
        router.other_request = self.asked
        return router

    def handler_of(self, call: Call[Any, Any]) -> Any:
        def handle(params: Any) -> Any:
            self.remember(call.name, "params", params)
            return self.answers[call.name]

        return handle

    def listener_of(self, notice: Notice[Any]) -> Any:
        return lambda params: self.remember(notice.name, "params", params)

    def remember(self, method: str, half: str, value: Any) -> None:
        self.seen = {"method": method, "half": half, "value": Raw(encode(value)), "meanings": dict(meanings(value))}

    def observe(self, report: Report) -> None:
        if isinstance(report, LenientlyRead):
            self.rules += report.rules

    # Our own requests.

    async def asked(self, method: str, params: Raw) -> object:
        assert self.connection is not None
        match method:
            case "_seen":
                seen, rules, self.seen, self.rules = self.seen, self.rules, {}, []
                return {**seen, "rules": rules, "counts": self.connection.counts}
            case "_answer":
                named = msgspec.json.decode(params, type=Named)
                self.answers[named.method] = m.CALLS_BY_NAME[named.method].decode_result(named.result)
            case "_ask":
                await self.ask(self.connection, msgspec.json.decode(params, type=Named))
            case "_tell":
                named = msgspec.json.decode(params, type=Named)
                notice = m.NOTICES_BY_NAME[named.method]
                await self.connection.notify(notice, notice.decode_params(named.params))
            case _:
                raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        return {}

    async def ask(self, connection: Connection, named: Named) -> None:
        call = m.CALLS_BY_NAME[named.method]
        try:
            self.remember(call.name, "result", await connection.request(call, call.decode_params(named.params)))
        except AcpError as error:
            self.seen = {"method": call.name, "half": "result", "error": f"{type(error).__name__}: {error}"}


def meanings(value: Any) -> Iterator[tuple[str, str]]:
    """Every word in a value that its list does not have → what it is read as."""
    if isinstance(value, Word) and not value.known:
        yield value.value, value.meaning.value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from meanings(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from meanings(item)


async def main() -> None:
    mirror = Mirror()
    async with Connection(open_stdio(), mirror.router(), observer=mirror.observe, version=V1) as mirror.connection:
        await mirror.connection.wait_closed()


if __name__ == "__main__":
    asyncio.run(main())
