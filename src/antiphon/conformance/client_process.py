"""Clients that are commands: what to start for each purpose, with what on stdin, and which signal makes it cancel."""

import asyncio
import os
import shlex
import signal
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from antiphon.conformance.shim_socket import OnAgentStart, ShimSocket
from antiphon.errors import AcpError
from antiphon.local.commands import LocalCommand
from antiphon.traffic.entries import JsonObject

__all__ = [
    "CLIENT_PURPOSES",
    "CLIENT_PURPOSES_V2",
    "BadCommands",
    "ClientCommands",
    "ClientSource",
    "RunningClient",
]

# --- clients in general
# A source starts clients: commands, or tasks of this process in tests. Other transports can join as places of their own.


class RunningClient(Protocol):
    """A client that was started."""

    @property
    def ended(self) -> asyncio.Event:
        """Set when it has ended."""

    @property
    def status(self) -> int | None:
        """How it ended: 0 is well; None while it runs."""

    @property
    def output(self) -> str:
        """The last of what it printed."""

    def end_input(self) -> None:
        """The user has no more prompts."""

    def interrupt(self) -> bool:
        """Do what makes it cancel a turn, where that has to come from outside: whether there is such a thing."""

    async def close(self) -> None:
        """End it, by all means there are."""


class ClientSource(Protocol):
    """A source of clients."""

    @property
    def is_process(self) -> bool:
        """Whether the agent that a client starts is a process here, with stderr, signals and an end."""

    def has(self, purpose: str) -> bool:
        """Whether a client can be made to do this."""

    async def start(self, purpose: str, cwd: Path, on_start: OnAgentStart) -> RunningClient:
        """A client that does what the purpose names, in a workspace; `on_start` is called for every agent that it starts."""


CLIENT_PURPOSES: Final = {
    "prompt": "open a session, send one prompt, and end when the turn has ended",
    "refuse": "send one prompt, with a user who refuses whatever the agent asks for",
    "cancel": "send one prompt, and cancel the turn while it runs: by itself, or by a signal that `[signal]` names",
    "two_prompts": "send a second prompt in the same session when the first turn has ended",
    "auth": "open a session with an agent that requires a login first",
    "set_mode": "open a session, choose the mode `plan`, send one prompt",
    "set_option": "open a session, set the option `length` to `long`, send one prompt",
    "load": "go on with an earlier session by `session/load`, send one prompt",
    "resume": "go on with an earlier session by `session/resume`, send one prompt",
    "list": "list the agent's sessions",
    "close": "close a session",
    "delete": "delete one of the agent's sessions",
}
"""Name → what the client is to do."""

CLIENT_PURPOSES_V2: Final = {
    **{name: text for name, text in CLIENT_PURPOSES.items() if name != "set_mode"},
    "prompt": "open a session, send one prompt, and end when the session is idle again",
    "two_prompts": "send a second prompt in the same session when it is idle again",
    "load": "go on with an earlier session and its history, by `session/resume` with `replayFrom`; send one prompt",
    "two_at_once": "send a second prompt while the first is worked on, and end when both are done",
    "cancel_call": "send one prompt, and cancel the tool call that offers `cancel`, by `tool_call/cancel`",
}
"""The same for clients of version 2."""

_ANY_PURPOSE: Final = {**CLIENT_PURPOSES, **CLIENT_PURPOSES_V2}

OUTPUT_LIMIT: Final = 64 * 1024
"""Bytes kept of what a client prints."""

NOT_STARTED: Final = 127
BY_SIGNAL: Final = 128
"""Exit statuses of shells: of a program that does not exist, and of one that was ended by a signal."""


class BadCommands(AcpError):
    """A file of commands that cannot be used."""


@dataclass(frozen=True, slots=True)
class ClientCommands:
    """A client's commands for each purpose, one after another where there are several. `{agent}` and `{cwd}` in them are filled in."""

    words: Mapping[str, Sequence[Sequence[str]]]
    stdin: Mapping[str, str] = field(default_factory=dict)
    signals: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] | None = None
    is_process = True

    @classmethod
    def of(
        cls,
        prompt: Sequence[str],
        more: Path | None = None,
        env: Mapping[str, str] | None = None,
        *,
        target: str = "{agent}",
    ) -> "ClientCommands":
        """The command for a prompt, and those of a TOML file: a command for each purpose, or a list of commands that are run in turn,
        with tables `[stdin]` (what is typed) and `[signal]` (`cancel = "INT"`). `target` is what the client connects to: `{agent}`, which
        it starts, or `{url}`, the address of one.

        Raises:
            BadCommands: the target is not in it, or no such file.
        """
        found = _read(more) if more is not None else {}
        stdin, signals = _table(found, "stdin"), _table(found, "signal")
        words: dict[str, Sequence[Sequence[str]]] = {"prompt": [_whole(prompt)]} if prompt else {}
        words |= {name: [_whole(shlex.split(one)) for one in _lines(name, given)] for name, given in found.items()}
        for name, commands in words.items():
            if not any(target in word for command in commands for word in command):
                what = "command" if target == "{agent}" else "address"
                raise BadCommands(
                    f"there is no {target} in the command for `{name}`",
                    hint=f"put {target} where the client takes the {what} of the agent.",
                )
        for name in signals.values():
            if f"SIG{name}" not in signal.Signals.__members__:
                raise BadCommands(f"`{name}` is no signal", hint="INT and TERM are.")
        return cls(words, stdin, signals, env)

    def has(self, purpose: str) -> bool:
        return purpose in self.words

    async def start(self, purpose: str, cwd: Path, on_start: OnAgentStart) -> RunningClient:
        socket = ShimSocket(on_start)
        places = {"{agent}": str(socket.agent), "{cwd}": str(cwd)}
        commands = [[_filled(word, places) for word in command] for command in self.words[purpose]]
        return CommandClient(self, purpose, commands, cwd, socket)

    def start_for(self, purpose: str, cwd: Path, url: str, token: str) -> RunningClient:
        """A client that does what the purpose names with the agent at an address."""
        places = {"{url}": url, "{cwd}": str(cwd), "{token}": token}
        commands = [[_filled(word, places) for word in command] for command in self.words[purpose]]
        return CommandClient(self, purpose, commands, cwd, None)


class CommandClient:
    """The commands of one purpose, one after another. What they leave running stays until `close`: some start a helper process."""

    def __init__(
        self, plan: ClientCommands, purpose: str, commands: list[list[str]], cwd: Path, socket: ShimSocket | None
    ) -> None:
        self.ended = asyncio.Event()
        self.status: int | None = None
        self._plan = plan
        self._purpose = purpose
        self._cwd = cwd
        self._socket = socket
        self._started: list[LocalCommand] = []
        self._problem = ""
        self._typing = -1
        self._task = asyncio.create_task(self._run(commands), name=f"client for {purpose}")

    async def _run(self, commands: list[list[str]]) -> None:
        status = 0
        try:
            for words in commands:
                status = status or await self._run_one(words)
            self.status = status
        except AcpError as error:
            self._problem, self.status = str(error), NOT_STARTED
        finally:
            self.end_input()
            self.ended.set()

    async def _run_one(self, words: list[str]) -> int:
        theirs, self._typing = os.pipe()
        env = dict(os.environ if self._plan.env is None else self._plan.env)
        try:
            command = await LocalCommand.start(words, cwd=self._cwd, env=env, output_limit=OUTPUT_LIMIT, stdin=theirs)
        finally:
            os.close(theirs)
        self._started.append(command)
        self._type(self._plan.stdin.get(self._purpose, ""))
        exit = await command.wait()
        self.end_input()
        return exit.code if exit.code is not None else BY_SIGNAL + signal.Signals[exit.signal or "SIGKILL"]

    def _type(self, text: str) -> None:
        if not text:
            self.end_input()
            return
        os.set_blocking(self._typing, False)  # what a pipe does not hold is more than a person types
        with suppress(OSError):
            os.write(self._typing, text.encode())

    @property
    def output(self) -> str:
        return "\n".join([*(one.output() for one in self._started), self._problem]).strip()

    def end_input(self) -> None:
        if self._typing >= 0:
            os.close(self._typing)
            self._typing = -1

    def interrupt(self) -> bool:
        name = self._plan.signals.get(self._purpose)
        if name is None or not self._started or self.ended.is_set():
            return False
        os.kill(
            self._started[-1].pid, signal.Signals[f"SIG{name}"]
        )  # not reaped before `close`, so the number is its own
        return True

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, *(one.close() for one in self._started), return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()


def _whole(words: Sequence[str]) -> list[str]:
    """Make relative paths in a command absolute: the client is started in another directory."""
    # A program is looked for on the PATH; a word after it that is a file here is that file.
    return [
        os.path.abspath(word) if ("/" in word and os.path.exists(word)) or (at > 0 and os.path.isfile(word)) else word
        for at, word in enumerate(words)
    ]


def _filled(word: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        word = word.replace(name, value)
    return word


def _read(path: Path) -> JsonObject:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadCommands(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            hint='it has a line for each purpose, such as: cancel = "my-client --agent {agent}"',
        ) from None


def _table(found: JsonObject, name: str) -> dict[str, str]:
    table = found.pop(name, {})
    if not isinstance(table, dict) or not all(
        purpose in _ANY_PURPOSE and isinstance(text, str) for purpose, text in table.items()
    ):
        raise BadCommands(
            f"`[{name}]` is a table of purposes and texts", hint=f"the purposes are {', '.join(_ANY_PURPOSE)}."
        )
    return table


def _lines(name: str, given: object) -> list[str]:
    lines = [given] if isinstance(given, str) else given
    if name not in _ANY_PURPOSE or not isinstance(lines, list) or not all(isinstance(one, str) for one in lines):
        raise BadCommands(
            f"`{name}` is no purpose with a command, or a list of commands",
            hint=f"the purposes are {', '.join(_ANY_PURPOSE)}.",
        )
    return lines
