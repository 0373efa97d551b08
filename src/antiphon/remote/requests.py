"""The requests of the agent that the client has: shown to it once, however often the server sends them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final

import msgspec
from msgspec import Raw, UnsetType

from antiphon.errors import Code, RequestError
from antiphon.remote.messages import MessagePaths
from antiphon.remote.sessions import MessageMark, error_member, notification_frame
from antiphon.rpc.envelope import BAD_INPUT, RequestId
from antiphon.rpc.spans import params_values_of, replaced, values_of
from antiphon.text import one_line
from antiphon.transports.remote import MessageHead

__all__ = ["ForwardedRequests"]

_SERVED: Final = ("fs/", "terminal/")
"""How methods begin that use the files and the commands of the client's machine."""

_CONFIRMED: Final = frozenset({"session/request_permission", "elicitation/create"})
"""Requests whose answer the server confirms."""


class _ForwardedRequest:
    """A request of the agent that the editor has, under an id of ours."""

    __slots__ = ("answer", "frame", "generation", "id", "method", "name", "session_id", "written")

    def __init__(self, id: int, head: MessageHead, session_id: str | None, name: str) -> None:
        self.id = id
        self.frame = b""
        """The request as the editor got it."""
        self.method = head.name
        self.session_id = session_id
        self.name = name
        """The name under which it waits at the server; empty: it does not outlive the connection."""
        self.written = b""
        """The id that it has on the connection, as it is written."""
        self.generation = 0
        """The connection on which it came last."""
        self.answer = b""
        """The response of the editor, kept until the server says that it has it."""


class ForwardedRequests:
    """The requests that were given to the client under ids of ours, and wait for its answer or for the server to confirm it.

    `send` sends a frame to the server, `deliver` one to the client, and `report` gets who answered in place of the user. Without `offers_files` the files and terminals of the client are not
    for the server: its requests for them are refused here, whatever the client offers. `ids` counts the ids of ours: links of one client share it.
    """

    def __init__(
        self,
        paths: MessagePaths,
        send: Callable[[bytes, str | None, RequestId | UnsetType], None],
        deliver: Callable[[bytes], None],
        report: Callable[[str], None],
        *,
        offers_files: bool,
        ids: Iterator[int] | None = None,
    ) -> None:
        self.offers_files = offers_files
        self._ids = ids or count(1)
        self.generation = 0
        """Which connection it is that requests come from now."""
        self._paths = paths
        self._send = send
        self._deliver = deliver
        self._report = report
        self._open: dict[int, _ForwardedRequest] = {}
        self._taken: dict[str, _ForwardedRequest] = {}
        """The requests that the server has just taken back from the client, by their names: it says next who answered."""

    def __bool__(self) -> bool:
        return bool(self._open)

    def __contains__(self, id: object) -> bool:
        return id in self._open

    def receive(self, line: bytes, head: MessageHead, mark: MessageMark, name: str) -> bytes | None:
        """Return the request as the client gets it; None: it has it already, or it is refused."""
        waiting = next((each for each in self._open.values() if name and each.name == name), None)
        if waiting is not None:
            waiting.written, waiting.generation = head.key, self.generation
            if waiting.answer:
                self._send_answer(waiting, waiting.answer)
            return None
        try:
            if head.name.startswith(_SERVED) and not self.offers_files:
                raise RequestError(
                    Code.METHOD_NOT_FOUND,
                    "the files and terminals of the client are not offered",
                    hint="start `antiphon agent --connect` with `--offer-files`",
                )
            line = self._paths.to_local(line, head.name)
        except RequestError as error:
            frame = b'{"jsonrpc":"2.0","id":%b,%b}' % (head.key, error_member(error))
            self._send(frame, mark.session_id or None, head.request_id)
            return None
        waiting = _ForwardedRequest(next(self._ids), head, mark.session_id or None, name)
        waiting.written, waiting.generation = head.key, self.generation
        self._open[waiting.id] = waiting
        waiting.frame = replaced(line, [(span, b"%d" % waiting.id) for span in values_of(line, "id")])
        return waiting.frame

    def shown(self, name: str) -> bytes | None:
        """Return a request that waits for the client's answer as the client got it, by its name at the server."""
        return next(
            (each.frame for each in self._open.values() if name and each.name == name and not each.answer), None
        )

    def answer(self, frame: bytes, id: RequestId) -> None:
        """Take the client's response. Without a connection it is kept until the server sends the request again."""
        waiting = self._open.get(id) if isinstance(id, int) else None
        if waiting is None:
            return
        if waiting.name and waiting.method in _CONFIRMED:
            waiting.answer = frame
        else:
            del self._open[waiting.id]
        if waiting.generation == self.generation:
            self._send_answer(waiting, frame)

    def _send_answer(self, waiting: _ForwardedRequest, frame: bytes) -> None:
        answers = msgspec.json.decode(waiting.written, type=int | float | str | None)
        self._send(
            replaced(frame, [(span, waiting.written) for span in values_of(frame, "id")]), waiting.session_id, answers
        )

    def cancelled(self, line: bytes, mark: MessageMark) -> bytes | None:
        """Return the server's cancellation of a request as the client gets it."""
        written = b"" if isinstance(mark.request_id, UnsetType) else bytes(mark.request_id)
        for waiting in self._open.values():
            if waiting.written == written and waiting.generation == self.generation:
                del self._open[waiting.id]
                if not waiting.answer:
                    self._taken = {waiting.name: waiting}
                own = b"%d" % waiting.id
                return (
                    None
                    if waiting.answer
                    else replaced(line, [(at, own) for at in params_values_of(line, "requestId")])
                )
        return None

    def resolved(self, mark: MessageMark) -> None:
        """Handle that a request has its answer, from this client or from another one."""
        taken = self._taken.pop(mark.request, None)
        for waiting in [each for each in self._open.values() if each.name == mark.request]:
            taken = None if waiting.answer else waiting
            self._cancel(waiting)
        if taken is not None and mark.sender:
            self._report(f"answered by {one_line(mark.sender)}{_choice(taken.frame, mark.result)}")

    def only(self, session_id: str, names: Iterable[str]) -> None:
        """Cancel the requests of a session that the server does not have any more: of those that came on earlier connections."""
        for waiting in [each for each in self._open.values() if each.session_id == session_id]:
            if waiting.generation != self.generation and waiting.name not in names:
                self._cancel(waiting)

    def interrupted(self) -> None:
        """Cancel the requests that end with their connection."""
        for waiting in [each for each in self._open.values() if not each.name]:
            self._cancel(waiting)

    def _cancel(self, waiting: _ForwardedRequest) -> None:
        """A client that has given its answer sees nothing of that."""
        del self._open[waiting.id]
        if not waiting.answer:
            self._deliver(notification_frame("$/cancel_request", {"requestId": waiting.id}))


class _Option(msgspec.Struct, rename="camel"):
    option_id: str
    name: str


class _Asked(msgspec.Struct):
    options: list[_Option] = []
    message: str = ""


class _AskedFrame(msgspec.Struct):
    params: _Asked = msgspec.field(default_factory=_Asked)


class _Outcome(msgspec.Struct, rename="camel"):
    option_id: str = ""


class _Answer(msgspec.Struct):
    outcome: _Outcome = msgspec.field(default_factory=_Outcome)
    action: str = ""


def _choice(frame: bytes, result: Raw | UnsetType) -> str:
    """Return what was answered as the end of a sentence; empty if that is not known."""
    try:
        asked = msgspec.json.decode(frame, type=_AskedFrame).params
        answer = msgspec.json.decode(b"{}" if isinstance(result, UnsetType) else result, type=_Answer)
    except BAD_INPUT:
        return ""
    names = [option.name for option in asked.options if option.option_id == answer.outcome.option_id]
    words = one_line(next(iter(names), answer.action))
    return f": {words}" if words else ""
