"""Answers to what the server asks about a thread: may this run, may this change be made, what does the user say."""

import logging
from typing import TYPE_CHECKING, Any

from antiphon.agent.questions import UserQuestions
from antiphon.engines.codex.approvals import ApprovalAsker
from antiphon.engines.codex.approvals.asker import changed_files, decided_by_mode
from antiphon.engines.codex.files import NewDirectories
from antiphon.engines.questions import OpenQuestions
from antiphon.errors import Code

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex import wire
    from antiphon.engines.codex.server import CodexServer
    from antiphon.engines.codex.settings import CodexSettings
    from antiphon.engines.codex.translate import CodexTranslator
    from antiphon.engines.events import UpdateSender

__all__ = ["CodexQuestions"]

_log = logging.getLogger(__name__)


class CodexQuestions:
    """Of one session. Questions belong to it and not to a turn, because sub-agents ask between turns too."""

    def __init__(
        self, session: "AgentSession", translator: "CodexTranslator", telling: "UpdateSender", choosing: "CodexSettings"
    ) -> None:
        self._stage = UserQuestions(session)
        self._asker = ApprovalAsker(session)
        self._translator = translator
        self._telling = telling
        self._choosing = choosing
        self._pending = OpenQuestions()
        self._directories = NewDirectories()

    def ask(self, server: "CodexServer", question: "wire.ServerRequest") -> None:
        """Begin to ask the user, and answer the server when they have."""
        self._pending.begin((server.pid, question.id), self._answer(server, question))

    async def _answer(self, server: "CodexServer", question: "wire.ServerRequest") -> None:
        try:
            call = self._translator.patch_of(question.params)
            result = decided_by_mode(self._stage.session, self._choosing, question.params, call)
            if result is None:
                result = await self._asker.answer(question.method, question.params, self._stage, call)
            if call is not None and result is not None and _allows(result):
                self._directories.make(changed_files(question.params, call))
                for each in self._translator.allowed(call.tool_call_id):
                    await self._telling.tell(each)
        except Exception as error:  # a question that cannot be asked must not leave the server waiting
            _log.exception("a question of Codex could not be asked")
            server.refuse(question.id, f"the question could not be asked: {type(error).__name__}", Code.INTERNAL_ERROR)
            return
        if result is None:
            server.refuse(question.id, f"not supported here: {question.method}", Code.METHOD_NOT_FOUND)
        else:
            server.answer(question.id, result)

    def turn_over(self) -> None:
        """The turn has ended, and with it all of its changes."""
        self._directories.remove_empty()

    def withdraw(self, server: "CodexServer", id: "wire.RequestId") -> None:
        """The server does not want to know any more."""
        self._pending.withdraw((server.pid, id))

    def withdraw_all(self) -> None:
        """Nor anything else."""
        self._pending.withdraw_all()

    def close(self) -> None:
        """The session ends."""
        self._pending.withdraw_all()
        self._stage.end()


def _allows(result: dict[str, Any]) -> bool:
    """Whether an answer lets the call run."""
    decision = result.get("decision")
    name = next(iter(decision), "") if isinstance(decision, dict) else decision
    return str(name).startswith(("accept", "approved")) or result.get("action") == "accept"
