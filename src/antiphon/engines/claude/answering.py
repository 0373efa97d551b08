"""Answers to what the CLI asks: may this tool run, what does this server want to know."""

import logging
from typing import TYPE_CHECKING, Any

from antiphon.agent.asking import Asking
from antiphon.engines.claude import wire
from antiphon.engines.claude.permission import Asker
from antiphon.engines.claude.rules import HOOK, before_tool
from antiphon.engines.pending import Pending

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.engines.claude.process import Process
    from antiphon.engines.claude.translate.translator import Translator
    from antiphon.engines.telling import Telling

__all__ = ["Answering"]

_log = logging.getLogger(__name__)


class Answering:
    """Of one session. Questions belong to it and not to a turn, because sub-agents ask between turns too."""

    def __init__(self, session: "Session", translator: "Translator", telling: "Telling") -> None:
        self._session = session
        self._stage = Asking(session)
        self._asker = Asker(session)
        self._translator = translator
        self._telling = telling
        self._pending = Pending()

    def ask(self, process: "Process", line: wire.ControlRequest) -> None:
        """Begin to ask the user, and answer the CLI when they have."""
        self._pending.begin((process.pid, line.request_id), self._answer(process, line))

    async def _answer(self, process: "Process", line: wire.ControlRequest) -> None:
        try:
            body = await self._body(line)
        except Exception as error:  # a question that cannot be asked must not leave the CLI waiting
            _log.exception("a question of Claude Code could not be asked")
            process.refuse(line.request_id, f"the question could not be asked: {type(error).__name__}")
            return
        if body is None:
            process.refuse(line.request_id, "not supported here")
        else:
            process.answer(line.request_id, body)

    async def _body(self, line: wire.ControlRequest) -> dict[str, Any] | None:
        match line.request:
            case wire.CanUseTool() as asked:
                body = await self._asker.answer(asked, self._stage, self._translator.patch_of(asked))
                if body.get("behavior") == "allow" and asked.tool_use_id is not None:
                    for news in self._translator.allowed(asked.tool_use_id):
                        await self._telling.tell(news)
                return body
            case wire.Elicitation() as asked_by_server:
                return await self._asker.elicit(asked_by_server, self._stage)
            case wire.OtherControl(subtype=subtype, fields=fields) if subtype == HOOK:
                return before_tool(self._session, fields)
            case _:
                return None

    async def page_done(self, elicitation_id: str | None) -> None:
        """The user has done what a server wanted on a page: the client may stop waiting."""
        if elicitation_id is not None:
            await self._asker.page_done(elicitation_id)

    def withdraw(self, process: "Process", request_id: str) -> None:
        """The CLI does not want to know any more."""
        self._pending.withdraw((process.pid, request_id))

    def withdraw_all(self, process: "Process") -> None:
        """Nor anything else that this process asked."""
        self._pending.withdraw_all(lambda key: isinstance(key, tuple) and key[0] == process.pid)

    def close(self) -> None:
        """The session ends."""
        self._pending.withdraw_all()
        self._stage.end()
