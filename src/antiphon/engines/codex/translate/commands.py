"""Command calls: the command line without its shell, the output while it runs, and all of it at the end."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from antiphon.engines.codex.translate.calls import CallDescription, CallOutcome, CodexCall, CodexCalls, terminal_exit
from antiphon.engines.codex.translate.events import CodexEvent
from antiphon.engines.codex.wire import CommandAction, CommandExecution
from antiphon.engines.events import Mirror
from antiphon.engines.labels import DENIED, absolute_path, one_line, shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import fenced, strip_ansi

__all__ = [
    "TAIL",
    "CommandCalls",
    "command_line",
    "file_uri",
    "kind_of_command",
    "places_of_command",
    "seconds",
    "shell_line",
]

# Command lines without the shell around them, and addresses of files.

_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_WINDOWS_SHELLS: Final = frozenset({"cmd", "powershell", "pwsh"})
_RUN_THIS: Final = frozenset({"-c", "-lc", "-cl", "-ic", "-ilc", "-lic", "-command", "/c"})


def file_uri(path: str) -> str:
    """The address of a file."""
    return path if "://" in path else "file://" + quote(path if path.startswith("/") else f"/{path}", errors="replace")


def command_line(command: str) -> str:
    """Return the command without its shell: `/bin/bash -lc 'ls -l'` → `ls -l`."""
    try:
        argv = shlex.split(command)
    except ValueError:
        return command
    return _inner(argv) or command


def shell_line(argv: Sequence[str]) -> str:
    """Return the command without its shell, from a list of arguments."""
    return _inner(argv) or shlex.join(argv)


def _inner(argv: Sequence[str]) -> str | None:
    if len(argv) < 3:
        return None
    program = re.split(r"[/\\]", argv[0])[-1].lower().removesuffix(".exe")
    if program in _SHELLS:
        return argv[2] if len(argv) == 3 and argv[1] in _RUN_THIS else None
    if program in _WINDOWS_SHELLS and argv[-2].lower() in _RUN_THIS:
        return argv[-1]
    return None


def seconds(milliseconds: int) -> str:
    """A duration as text, such as `1.5 s`."""
    return f"{milliseconds // 1000} s" if milliseconds >= 100_000 else f"{milliseconds / 1000:.3g} s"


TAIL: Final = 4096
"""Characters of its output that are shown as text while a command runs. Each update repeats them; the end has everything."""

STEP: Final = TAIL // 16
"""Characters that must have come before the tail is shown again, once there is more output than it holds."""

_CLEAR: Final = "\x1b[2J\x1b[3J\x1b[H"
"""Empties a terminal: Codex sends the first piece of the output only at the end, and it belongs at the top."""

_READING: Final = frozenset({"read", "listFiles", "list_files"})


class _Output:
    """The output of a running command, as far as it was reported."""

    __slots__ = ("length", "pieces", "unreported")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.unreported = 0

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)
        self.unreported += len(text)

    def tail(self) -> str:
        """The end of it, from the start of a line."""
        text = self.text
        if len(text) > TAIL:
            text = text[-TAIL:]
            self.pieces = [text]
        if self.length <= TAIL:
            return text
        return "…\n" + (text.partition("\n")[2] or text)


class CommandCalls:
    """The commands of one thread. With `terminals` the client shows their output in terminals, with `mirror` the session does."""

    def __init__(self, calls: CodexCalls, cwd: str, *, terminals: bool, mirror: bool) -> None:
        self._calls = calls
        self._cwd = cwd
        self._terminals = terminals
        self._mirror = mirror and not terminals
        self._outputs: dict[str, _Output] = {}

    def started(self, item: CommandExecution) -> Iterator[CodexEvent]:
        """Report a command that starts, or that the user is asked about next."""
        yield from self._calls.begin(self._call(item))

    def printed(self, id: str, text: str) -> Iterator[CodexEvent]:
        """Report a piece of output."""
        call = self._calls.get(id)
        if call is None or not text:
            return
        call.lasting = True
        output = self._outputs.setdefault(id, _Output())
        output.add(text)
        if call.terminal:
            yield v1.ToolCallUpdate(tool_call_id=id, meta=_prints(id, text))
        elif output.length <= TAIL or output.unreported >= STEP:
            output.unreported = 0
            description = shown_text(fenced(strip_ansi(output.tail())))
            yield v1.ToolCallUpdate(tool_call_id=id, content=[description])

    def typed(self, id: str, text: str) -> Iterator[CodexEvent]:
        """Report input of a command. It is shown with the output; the end, which has the output alone, replaces it."""
        if text.strip():
            yield from self.printed(id, text if text.endswith("\n") else f"{text}\n")

    def completed(self, item: CommandExecution, *, replay: bool) -> Iterator[CodexEvent]:
        """Report a command that ended, was declined, or never ran."""
        if self._calls.is_done(item.id):
            return
        call = self._call(item)
        params = self._outputs.pop(item.id, None)
        output = item.aggregated_output or ""
        content: list[v1.ToolContent] | None = [shown_text(text)] if (text := _ending(item)) else []
        meta = None
        if item.status == "declined":
            meta = DENIED
        elif call.terminal:
            yield from self._rest(call, params.text if params else "", output)
            content, meta = None, terminal_exit(item.id, item.exit_code)
        elif self._mirror and output and not replay:
            if not self._calls.is_known(item.id):
                yield from self._calls.begin(call)
            yield Mirror(item.id, command_line(item.command), output, item.exit_code)
            content = None
        raw = {"status": item.status, "exitCode": item.exit_code, "aggregatedOutput": output}
        yield from self._calls.finish(
            call, CallOutcome(failed=item.status != "completed", content=content, raw_output=raw, meta=meta)
        )

    def forget(self) -> None:
        """Drop the output of commands that are over."""
        self._outputs = {id: output for id, output in self._outputs.items() if self._calls.get(id) is not None}

    def _rest(self, call: CodexCall, params: str, output: str) -> Iterator[CodexEvent]:
        """Report the part of the output that the terminal does not show yet."""
        if not self._calls.is_known(call.id):
            yield from self._calls.begin(call)
        missing = output[len(params) :]
        if not output.startswith(params):  # output that Codex cut in the middle shows less than the terminal does
            missing = _CLEAR + output if len(output) >= len(params) else ""
        if missing:
            yield v1.ToolCallUpdate(tool_call_id=call.id, meta=_prints(call.id, missing))

    def _call(self, item: CommandExecution) -> CodexCall:
        line = command_line(item.command)
        kind = kind_of_command(item.command_actions)
        cwd = item.cwd or self._cwd
        terminal = self._terminals and kind == v1.ToolKind.EXECUTE
        description = CallDescription(
            title=one_line(line) or "Run a command",
            kind=kind,
            name="Bash",
            raw_input={"command": line, "cwd": cwd},
            locations=places_of_command(item.command_actions, cwd),
            content=[v1.TerminalItem(terminal_id=item.id)] if terminal else [],
            meta={"terminal_info": {"terminal_id": item.id, "cwd": cwd}} if terminal else None,
        )
        return CodexCall(item.id, description, terminal=terminal, lasting=item.process_id is not None)


def kind_of_command(actions: Sequence[CommandAction]) -> v1.ToolKind:
    """Return the kind of work: reading or searching only if it surely does nothing else."""
    types = {action.type for action in actions}
    if not types or not types <= {*_READING, "search"}:
        return v1.ToolKind.EXECUTE
    return v1.ToolKind.SEARCH if "search" in types else v1.ToolKind.READ


def places_of_command(actions: Sequence[CommandAction], cwd: str) -> list[v1.ToolLocation]:
    """Return the files that a command reads."""
    paths = dict.fromkeys(
        absolute_path(action.path, cwd) for action in actions if action.type == "read" and action.path
    )
    return [v1.ToolLocation(path=path) for path in paths]


def _ending(item: CommandExecution) -> str:
    """Return what is shown of a command that is over."""
    if item.status == "declined":
        return "Not run, because it was declined."
    text = [fenced(strip_ansi(item.aggregated_output))] if item.aggregated_output else []
    if item.exit_code:
        text.append(_how(item.exit_code))
    elif item.status == "inProgress":
        text.append("It did not come to its end.")
    elif item.status == "failed" and item.exit_code is None:
        text.append("It failed.")
    return "\n".join(text)


def _how(code: int) -> str:
    return "It was stopped." if code < 0 else f"It ended with exit code {code}."


def _prints(id: str, text: str) -> JsonObject:
    return {"terminal_output": {"terminal_id": id, "data": text}}
