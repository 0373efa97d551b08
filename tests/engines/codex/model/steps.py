"""What the model of the tests of Codex is asked to say, beside what every model can say."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.engines.model.steps import Cut, Header, Json, Stop, Text, Think, Used, Wait

__all__ = ["Answer", "Broken", "Call", "CodexCalls", "Fail", "Patch", "Search", "Step", "command", "patch", "plan"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool is to be used, in a namespace if it belongs to an MCP server."""

    name: str
    input: Json = field(default_factory=dict)
    namespace: str = ""
    size: int = 40


@dataclass(frozen=True, slots=True)
class Patch:
    """A tool that takes a text and no JSON: `apply_patch`."""

    text: str
    name: str = "apply_patch"


@dataclass(frozen=True, slots=True)
class Search:
    """The model has searched the web, by itself."""

    query: str


@dataclass(frozen=True, slots=True)
class Fail:
    """An error instead of an answer, so it stands alone."""

    status: int
    kind: str = "server_error"
    message: str = "out of tune"
    code: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    more: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broken:
    """The answer fails at its end."""

    code: str = "server_error"
    message: str = "out of tune"


Step: TypeAlias = Text | Think | Call | Patch | Search | Wait | Fail | Broken | Cut | Header | Stop | Used
Answer: TypeAlias = tuple[Step, ...]


def command(line: str, **more: object) -> Call:
    """A command line."""
    return Call("exec_command", {"cmd": line, **more})


def patch(*lines: str) -> Patch:
    """Changes to files, in the model's own words for them."""
    return Patch("\n".join(("*** Begin Patch", *lines, "*** End Patch")) + "\n")


def plan(**steps: str) -> Call:
    """A plan: each step and how it stands."""
    return Call("update_plan", {"plan": [{"step": step, "status": status} for step, status in steps.items()]})


class CodexCalls:
    """Calls of the tools of Codex."""

    def command(self, line: str) -> Call:
        return command(line, yield_time_ms=30_000)

    def asked_command(self, line: str) -> Call:
        return command(line, sandbox_permissions="require_escalated", justification="May I sing?")

    def add_file(self, path: Path, text: str) -> Patch:
        return patch(f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines()))

    def edit_file(self, path: Path, old: str, new: str) -> Patch:
        return patch(f"*** Update File: {path}", "@@", f"-{old}", f"+{new}")

    def mcp_tool(self, server: str, tool: str, **given: Any) -> Call:
        return Call(tool, given, namespace=f"mcp__{server}")
