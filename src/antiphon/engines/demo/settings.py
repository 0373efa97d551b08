"""Acts on the session itself: its mode, its settings, its MCP servers."""

from typing import TYPE_CHECKING

from antiphon.engines.demo.acts import act
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__: list[str] = []


@act("mode", "Switch the mode, as an agent does by itself", "default|plan")
async def mode(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A tool call of the kind that switches modes, and the news of it."""
    wanted = rest.strip() or "plan"
    async with turn.tool(f"Switch to {wanted}", v1.ToolKind.SWITCH_MODE, input={"mode": wanted}):
        await turn.session.switch_mode(wanted)
        await demo.remember()
    await turn.say(f"The mode is `{wanted}` now.")
    return None


@act("set", "Change a setting, as an agent does by itself", "KEY VALUE")
async def set_option(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """The settings as they stand afterwards."""
    words = rest.split()
    if len(words) != 2:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "say `/set KEY VALUE`, such as `/set thinking on`")
    key, value = words
    switches = [option.id for option in turn.session.config_options if isinstance(option, v1.BooleanConfig)]
    await turn.session.change_option(key, value in ("on", "true", "yes") if key in switches else value)
    await demo.remember()
    await turn.say(f"`{key}` is `{value}` now.")
    return None


@act("mcp", "List the MCP servers of this session")
async def mcp(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """What the client gave; the demo starts none of them."""
    servers = turn.session.mcp_servers
    if not servers:
        await turn.say("This session has no MCP servers.")
    for server in servers:
        where = getattr(server, "command", None) or getattr(server, "url", "")
        await turn.say(f"- `{getattr(server, 'name', '?')}`: {where}\n")
    return None
