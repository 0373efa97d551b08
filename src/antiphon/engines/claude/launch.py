"""How `claude` is started: its command line, its environment, and the file with the MCP servers of the session."""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.config.environment import environment_for, harmless_git
from antiphon.engines.claude.history.records import VARIABLE, config_dir
from antiphon.engines.labels import free_name
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.protocol.base import JsonObject

__all__ = [
    "EDIT_HOOKS",
    "HOOKS",
    "ClaudeLaunch",
    "ServerFile",
    "command_of",
    "environment_of",
    "may_bypass",
    "servers_of",
]

STREAMING: Final = (
    "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json",
    "--include-partial-messages", "--permission-prompt-tool", "stdio",
)  # fmt: skip
"""A session in JSON lines, with every token as it comes, and with permission requests instead of refusals."""

UNTRUSTED: Final = ("--setting-sources", "user", "--strict-mcp-config")
"""Options for a project that is not trusted: no settings, hooks, commands, agents or skills of the project or a directory above it, and no MCP
servers but those of the session."""

HOOKS: Final = {"PreToolUse": [{"matcher": "*", "hookCallbackIds": ["antiphon-rules"]}]}
"""The hooks in a session with a policy: the CLI asks us before each tool."""

EDIT_HOOKS: Final = {
    "PreToolUse": [{"matcher": "Bash|Edit|MultiEdit|NotebookEdit|Write", "hookCallbackIds": ["antiphon-rules"]}]
}
"""The hooks in a session without a policy: the CLI asks us before each tool that may write a file which names programs to run."""

_NESTED: Final = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID")
"""Variables that Claude Code sets for its own children. We may be one of them; the CLI that we start is not."""


class ClaudeLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is started with. None: as in the user's own settings."""

    program: str
    cwd: str = ""
    """The directory that it works in."""
    session: str
    """The id under which it stores the session."""
    source: str | None = None
    """The stored session that it goes on with, if any: the same one, or another that it then copies."""
    last: str | None = None
    """The line of the source that is the last one of its copy; None: all of them are copied."""
    directories: Sequence[str] = ()
    servers: str | None = None
    """The path of the file with the MCP servers."""
    mode: str | None = None
    model: str | None = None
    effort: str | None = None
    settings: str | None = None
    """Further settings, as JSON, which count beside the user's own."""
    trusted: bool = False
    """Whether the settings, hooks and MCP servers of the project count. Without that, only the user's own do."""
    append: str | None = None
    """A text that is added to the system prompt."""
    max_turns: int | None = None
    """Requests to the model that one prompt may take."""
    max_cost: float | None = None
    """US dollars that the session may cost."""
    bypass: bool = False
    """Whether the mode without questions may be chosen later."""


def command_of(launch: ClaudeLaunch) -> list[str]:
    """Return the command line."""
    words = [launch.program, *STREAMING]
    if launch.source is None:
        words += ["--session-id", launch.session]
    else:
        words += ["--resume", launch.source]
        if launch.source != launch.session:
            words += ["--fork-session", "--session-id", launch.session]
            if launch.last is not None:
                words += ["--resume-session-at", launch.last]
    if launch.bypass:
        words.append("--allow-dangerously-skip-permissions")
    for flag, value in (
        ("--mcp-config", launch.servers),
        ("--settings", launch.settings),
        ("--permission-mode", launch.mode),
        ("--model", launch.model),
        ("--effort", launch.effort),
        ("--append-system-prompt", launch.append),
        ("--max-turns", None if launch.max_turns is None else str(launch.max_turns)),
        ("--max-budget-usd", None if launch.max_cost is None else f"{launch.max_cost:f}"),
    ):
        if value is not None:
            words += [flag, value]
    directories = list(launch.directories)
    if not launch.trusted:
        words += UNTRUSTED
        # Named as one more directory, its CLAUDE.md is read as text; the settings beside it are not.
        directories = list(dict.fromkeys([*directories, launch.cwd])) if launch.cwd else directories
    if directories:
        words += ["--add-dir", *directories]
    return words


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's own environment, with keys, proxies and settings as in a terminal, without the keys of other engines."""
    theirs = harmless_git(environment_for("claude", environment))
    ours = {name: value for name, value in theirs.items() if name not in _NESTED}
    ours.setdefault("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1")
    ours.setdefault("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1")  # without them there is no plan to show
    if ours.get(VARIABLE):  # the child works elsewhere, and a name without a root would mean another directory there
        ours[VARIABLE] = str(config_dir(ours))
    return ours


def may_bypass(environment: Mapping[str, str]) -> bool:
    """Whether the CLI would start at all with that mode on offer: as root only inside a sandbox."""
    return os.geteuid() != 0 or environment.get("IS_SANDBOX") == "1"  # the only value that it accepts as true


# The MCP servers of a session, in the file that `--mcp-config` names. It may hold keys, so only its owner can read it.

_DOLLAR: Final = "${ANTIPHON_UNSET_VARIABLE:-$}{"
"""What the CLI reads as a plain `${`: it replaces variables in the file by their values, which the client does not expect."""

_TIMES_IN_HEADERS: Final = 2
"""How often it replaces variables in headers: when it reads the file, and again when it connects."""


class ServerFile:
    """The file with the MCP servers: made when a process first needs it, and kept for the next one until it is removed.

    Where the system can, it is not a file on a disk but memory of ours that has a name: it is gone when we are, however that happens.
    """

    def __init__(self, servers: "Iterable[v1.McpServer]") -> None:
        self._servers = servers_of(servers)
        self._memory: int | None = None
        self._folder: str | None = None

    def path(self) -> str | None:
        """Return the path of the file; None without servers."""
        if not self._servers:
            return None
        if self._memory is None and self._folder is None:
            self._make(msgspec.json.encode({"mcpServers": self._servers}))
        if self._folder is not None:
            return os.path.join(self._folder, "servers.json")
        return f"/proc/{os.getpid()}/fd/{self._memory}"

    def _make(self, data: bytes) -> None:
        if hasattr(os, "memfd_create"):
            self._memory = os.memfd_create("antiphon")
            os.fchmod(self._memory, 0o600)
            if os.access(f"/proc/{os.getpid()}/fd/{self._memory}", os.R_OK):
                os.write(self._memory, data)
                return
            self.remove()  # there is no /proc to find it in
        self._folder = tempfile.mkdtemp(prefix="antiphon-")  # for its owner alone
        fd = os.open(
            os.path.join(self._folder, "servers.json"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(fd, "wb") as file:
            file.write(data)

    def remove(self) -> None:
        """Remove the file. No process may live that knows its name and may not have read it yet.

        The name of our memory is the number of a descriptor, and the next thing that we open gets it. A process that comes late
        reads that instead: from a pipe, it takes away what was sent to another.
        """
        memory, self._memory = self._memory, None
        if memory is not None:
            os.close(memory)
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(OSError):
                shutil.rmtree(folder)


def servers_of(servers: "Iterable[v1.McpServer]") -> "dict[str, JsonObject]":
    """Return name → MCP server as the CLI takes it. The names become parts of tool names, so each is made safe and unique."""
    found: dict[str, JsonObject] = {}
    for server in servers:
        match server:
            case v1.StdioServer():
                written = {
                    "type": "stdio",
                    "command": _literal(server.command),
                    "args": [_literal(each) for each in server.args],
                    "env": {each.name: _literal(each.value) for each in server.env},
                }
            case v1.HttpServer() | v1.SseServer():
                written = {
                    "type": "http" if isinstance(server, v1.HttpServer) else "sse",
                    "url": _literal(server.url),
                    "headers": {each.name: _literal(each.value, _TIMES_IN_HEADERS) for each in server.headers},
                }
            case _:  # a kind that was never offered: it was refused before
                continue
        found[free_name(server.name, found)] = written
    return found


def _literal(value: str, times: int = 1) -> str:
    for _ in range(times):
        value = value.replace("${", _DOLLAR)
    return value
