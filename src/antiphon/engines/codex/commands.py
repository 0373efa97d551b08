"""The slash commands of a session with Codex. Each is a request of the server; those that work begin a turn."""

from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.codex import wire
from antiphon.engines.project import TRUST
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.turn import Turn
    from antiphon.engines.codex.server import Server

__all__ = ["AT_ONCE", "COMMANDS", "NEXT_TURN", "run_command"]

NEXT_TURN: Final = "the turn that starts now"
"""In place of an id, where the server does not tell it."""

COMMANDS: Final = (
    v1.Command("review", "Review uncommitted changes, or what you say", v1.CommandInput("what to look at")),
    v1.Command("review-branch", "Review the changes since a branch", v1.CommandInput("branch")),
    v1.Command("review-commit", "Review one commit", v1.CommandInput("commit")),
    v1.Command("compact", "Go on with a summary of the conversation"),
    v1.Command("rename", "Give the session another title", v1.CommandInput("title")),
    v1.Command("archive", "Take the session off the list"),
    v1.Command("status", "Show the account, its limits and the settings"),
    v1.Command("mcp", "Show the MCP servers and their tools"),
    v1.Command("skills", "Show the skills there are"),
    TRUST,
)

AT_ONCE: Final = frozenset({"rename", "archive", "status", "mcp", "skills"})
"""Those that begin no turn: the answer is all there is to wait for."""


async def run_command(turn: "Turn", name: str, rest: str, server: "Server", thread: str) -> str | None:
    """Do what it says. The id of the turn that it begins, if it begins one."""
    match name:
        case "review" | "review-branch" | "review-commit":
            target = _target(name, rest.strip())
            begun = await server.call("review/start", {"threadId": thread, "target": target}, wire.TurnBegun)
            return begun.turn.id if begun.turn is not None else begun.turn_id
        case "compact":
            await server.request("thread/compact/start", {"threadId": thread})
            return NEXT_TURN
        case "rename":
            title = _needed(name, rest)
            await server.request("thread/name/set", {"threadId": thread, "name": title})
            await turn.say(f"The session is called “{title}” now.")
        case "archive":
            await server.request("thread/archive", {"threadId": thread})
            await turn.say("The session is archived: it is off the list until you go on with it, or load it by its id.")
        case "status":
            from antiphon.engines.codex.reporting import status_of

            await turn.say(await status_of(server, turn.session))
        case _:
            from antiphon.engines.codex.reporting import REPORTS

            await turn.say(await REPORTS[name](server, thread))
    return None


def _target(name: str, rest: str) -> dict[str, Any]:
    match name:
        case "review-branch":
            return {"type": "baseBranch", "branch": _needed(name, rest)}
        case "review-commit":
            return {"type": "commit", "sha": _needed(name, rest)}
        case _:
            return {"type": "custom", "instructions": rest} if rest else {"type": "uncommittedChanges"}


def _needed(name: str, rest: str) -> str:
    if not rest.strip():
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"`/{name}` needs a word after it")
    return rest.strip()
