"""A user at a real client, and the questions of a CLI as they stand on the wire."""

from collections.abc import Callable
from typing import Any

import msgspec

from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.engines.claude import wire
from antiphon.engines.claude.questions import ClaudeAsker
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing

Body = dict[str, Any]
Reply = v1.CreateElicitationResult | v1.PermissionOutcome | v1.PermissionResult | RequestError
Ask = Callable[[ClaudeAsker, AgentTurn], Any]

NO_FORMS = v1.ClientCapabilities()
CALL = v1.ToolCallPatch("toolu_1", kind=v1.ToolKind.EXECUTE, title="git init x", name="Bash")


class User:
    """Gives its answers one after the other, and remembers what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[Any] = []
        self.completed: list[str] = []
        self._replies = list(replies)
        self.router = Router()
        self.router.on_request(m.REQUEST_PERMISSION, self._permission)
        self.router.on_request(m.CREATE_ELICITATION, self._reply)
        self.router.on_notice(m.COMPLETE_ELICITATION, lambda shown: self.completed.append(shown.elicitation_id))

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
    def names(self) -> list[str]:
        """What the options of the first question are called."""
        return [option.name for option in self.asked[0].options]

    @property
    def ids(self) -> list[str]:
        """The ids of the options of the first question."""
        return [option.option_id for option in self.asked[0].options]

    @property
    def shown(self) -> str:
        """The text that the first question shows."""
        return text_of(self.asked[0].tool_call)


def text_of(call: v1.ToolCallPatch) -> str:
    """The text of what a question shows."""
    items = [each.content for each in call.content or () if isinstance(each, v1.ContentItem)]
    return "\n".join(item.text for item in items if isinstance(item, v1.TextBlock))


def may(tool: str = "Bash", **fields: Any) -> wire.CanUseTool:
    """A question for permission, read from the line that the CLI would write."""
    asked = {"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "toolu_1", "input": {"command": "git init x"}}
    request = _read({**asked, **fields})
    assert isinstance(request, wire.CanUseTool)
    return request


def wants(**fields: Any) -> wire.ElicitationRequest:
    """A question of an MCP server."""
    request = _read({"subtype": "elicitation", "mcp_server_name": "songs", "message": "Who sings?", **fields})
    assert isinstance(request, wire.ElicitationRequest)
    return request


def _read(request: Body) -> object:
    line = wire.decode(msgspec.json.encode({"type": "control_request", "request_id": "r", "request": request}))
    assert isinstance(line, wire.ControlRequest)
    return line.request


async def answer_to(ask: Ask, user: User, capabilities: v1.ClientCapabilities = FULL, cwd: str = "/w") -> Any:
    """What comes of a question that is asked in a turn."""
    found: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        found.append(await ask(ClaudeAsker(turn.session), turn))

    async with playing(only_prompt(prompt), capabilities, user.router) as editor:
        await editor.turn(cwd)
    return found[0]


async def answer(
    request: wire.CanUseTool, user: User, capabilities: v1.ClientCapabilities = FULL, call: v1.ToolCallPatch = CALL
) -> Body:
    """The body of the answer to a question for permission."""
    body: Body = await answer_to(lambda asker, turn: asker.answer(request, turn, call), user, capabilities)
    return body
