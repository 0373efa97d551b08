"""A user at a real client, and the questions of an app server as they stand on the wire."""

from collections.abc import Callable
from typing import Any

import msgspec

from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals import ApprovalAsker
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, Editor, only_prompt, playing

Body = dict[str, Any]
Reply = v1.CreateElicitationResult | v1.PermissionOutcome | v1.PermissionResult | RequestError
Ask = Callable[[ApprovalAsker, AgentTurn], Any]

NO_FORMS = v1.ClientCapabilities()
COMMAND = "item/commandExecution/requestApproval"
CHANGES = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
QUESTIONS = "item/tool/requestUserInput"
SERVER = "mcpServer/elicitation/request"
OLD_COMMAND = "execCommandApproval"
OLD_CHANGES = "applyPatchApproval"

CALL = v1.ToolCallPatch(
    "call_1", kind=v1.ToolKind.EXECUTE, title="touch x", name="Bash", raw_input={"command": "touch x", "cwd": "/w"}
)


class User:
    """Gives its answers one after the other, and remembers what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[Any] = []
        self.editor: Editor | None = None
        self._replies = list(replies)
        self.router = Router()
        self.router.on_request(m.REQUEST_PERMISSION, self._permission)
        self.router.on_request(m.CREATE_ELICITATION, self._reply)

    def _permission(self, asked: v1.RequestPermission) -> v1.PermissionResult:
        reply = self._reply(asked)
        return reply if isinstance(reply, v1.PermissionResult) else v1.PermissionResult(reply)

    def _reply(self, asked: object) -> Any:
        self.asked.append(asked)
        reply = self._replies.pop(0)
        if isinstance(reply, RequestError):
            raise reply
        return reply

    @property
    def options(self) -> list[v1.PermissionOption]:
        """The options of the first question."""
        found: list[v1.PermissionOption] = self.asked[0].options
        return found

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return [option.name for option in self.options]

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return [option.option_id for option in self.options]

    @property
    def shown(self) -> str:
        """The text that the first question shows."""
        return text_of(self.asked[0].tool_call)

    def updates_of(self, kind: str) -> list[dict[str, Any]]:
        """The updates of a kind that the client received."""
        assert self.editor is not None
        return self.editor.updates(kind)


def text_of(call: v1.ToolCallPatch) -> str:
    """The text of what a question shows."""
    items = [each.content for each in call.content or () if isinstance(each, v1.ContentItem)]
    return "\n".join(item.text for item in items if isinstance(item, v1.TextBlock))


def asks(method: str, **fields: Any) -> wire.ServerRequest:
    """A question, read from the line that the server would write."""
    params: Body = {"threadId": "t", "turnId": "u", "itemId": "call_1", "startedAtMs": 1, **fields}
    if method in (OLD_COMMAND, OLD_CHANGES):
        params = {"conversationId": "t", "callId": "call_1", **fields}
    line = wire.decode(msgspec.json.encode({"id": 0, "method": method, "params": params}))
    assert isinstance(line, wire.ServerRequest)
    return line


async def answer_to(ask: Ask, user: User, capabilities: v1.ClientCapabilities = FULL) -> Any:
    """What comes of a question that is asked in a turn."""
    found: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        found.append(await ask(ApprovalAsker(turn.session), turn))

    async with playing(only_prompt(prompt), capabilities, user.router) as editor:
        user.editor = editor
        await editor.turn()
    return found[0]


async def answer(
    asked: wire.ServerRequest,
    user: User,
    capabilities: v1.ClientCapabilities = FULL,
    call: v1.ToolCallPatch | None = CALL,
) -> Body:
    """The result of a question."""
    body: Body = await answer_to(
        lambda asker, turn: asker.answer(asked.method, asked.params, turn, call), user, capabilities
    )
    return body
