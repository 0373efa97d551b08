"""What the server asks about a thread: whether a command may run, whether a change may be made, and questions to the user."""

from typing import TYPE_CHECKING

from antiphon.engines.codex.approvals import ApprovalAsker
from antiphon.engines.codex.approvals.asker import changed_files, decided_by_mode
from antiphon.engines.codex.files import NewDirectories
from antiphon.engines.questions import CliQuestions

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex import wire
    from antiphon.engines.codex.settings import CodexSettings
    from antiphon.engines.codex.translate import CodexTranslator
    from antiphon.engines.events import UpdateSender
    from antiphon.protocol.base import JsonObject

__all__ = ["CodexQuestions"]


class CodexQuestions(CliQuestions["wire.ServerRequest"]):
    """The requests of the server about one thread."""

    def __init__(
        self,
        session: "AgentSession",
        updates: "UpdateSender",
        translator: "CodexTranslator",
        settings: "CodexSettings",
    ) -> None:
        super().__init__(session, updates)
        self._asker = ApprovalAsker(session)
        self._translator = translator
        self._settings = settings
        self._directories = NewDirectories()

    def _id_of(self, request: "wire.ServerRequest") -> "wire.RequestId":
        return request.id

    async def _result_of(self, request: "wire.ServerRequest") -> "JsonObject | None":
        call = self._translator.patch_of(request.params)
        result = decided_by_mode(self._session, self._settings, request.params, call)
        if result is None:
            result = await self._asker.answer(request.method, request.params, self._user, call)
        if call is not None and result is not None and _allows(result):
            self._directories.make(changed_files(request.params, call))
            await self._send_allowed(self._translator.allowed(call.tool_call_id))
        return result

    def turn_over(self) -> None:
        """Remove what was made for the changes of a turn that has ended."""
        self._directories.remove_empty()


def _allows(result: "JsonObject") -> bool:
    """Whether an answer lets the call run."""
    decision = result.get("decision")
    name = next(iter(decision), "") if isinstance(decision, dict) else decision
    return str(name).startswith(("accept", "approved")) or result.get("action") == "accept"
