"""One prompt for several agents, side by side: each is a run of its own process, in a git worktree of its own.

A run is `antiphon run`, with its policy, limits and exit statuses. A comparison is a directory: a patch of each run, the results, and a page.
"""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from antiphon.config.directories import make_private_directory
from antiphon.errors import AcpError
from antiphon.local.commands import LocalCommand
from antiphon.runs.events import VERSION, ErrorEvent, ResultEvent

__all__ = ["ComparedRun", "Comparison", "ComparisonError", "Contestant", "contestants_of", "status_of_comparison"]

MOST: Final = 16
"""Agents of one comparison: each is a process with a CLI, a worktree and a model of its own."""

RESULT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of a result that are read."""

PATCH_SHOWN: Final = 2 * 1024 * 1024
"""Bytes of a patch that are kept in memory for the page."""

PROMPT: Final = "prompt.md"
DATA: Final = "stdin.txt"
"""Files of a comparison: what all agents are given."""

_NAMED: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)@(\S+)")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class ComparisonError(AcpError):
    """A comparison makes no sense, or a run of it gave no result."""


class Contestant(msgspec.Struct, frozen=True):
    """An agent of a comparison: `claude`, `claude@opus` with a model, or a command."""

    label: str
    """Its name in the comparison, which no other has."""
    agent: str
    model: str | None = None
    file_name: str = ""
    """The name of its files, which no other has."""


def contestants_of(names: Sequence[str]) -> list[Contestant]:
    """Return the agents that names mean.

    Raises:
        ComparisonError: there are too few or too many.
    """
    found: list[Contestant] = []
    for name in (name.strip() for name in names):
        if not name:
            continue
        label, number = name, 1
        while (file_name := _UNSAFE.sub("-", label).strip("-.")) in [each.file_name for each in found]:
            number += 1
            label = f"{name} ({number})"
        given = _NAMED.fullmatch(name)
        agent, model = (name, None) if given is None else (given[1], given[2])
        found.append(Contestant(label, agent, model, file_name))
    if not 2 <= len(found) <= MOST:
        raise ComparisonError(
            f"a comparison has from 2 to {MOST} agents, not {len(found)}",
            hint="name them, as in `--agents claude,codex`",
        )
    return found


class ComparedRun(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of one agent."""

    agent: str
    """Its label."""
    result: ResultEvent
    patch: str = ""
    """The path of its patch."""
    added: int = 0
    removed: int = 0

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.result.exit_code == 0

    def diff(self) -> str:
        """Return its patch as text; the beginning of a very long one."""
        if not self.patch:
            return ""
        with suppress(OSError), open(self.patch, "rb") as file:
            return file.read(PATCH_SHOWN).decode("utf-8", "replace")
        return ""


def status_of_comparison(runs: Sequence[ComparedRun], half: int) -> int:
    """Return the exit status of a comparison: that of the runs if it is the same, `half` if some ended well, else 1."""
    statuses = {each.result.exit_code for each in runs}
    if len(statuses) == 1:
        return statuses.pop()
    return half if 0 in statuses else 1


class Comparison:
    """A comparison that runs. `directory` gets the patches."""

    def __init__(
        self,
        prompt: str,
        contestants: Sequence[Contestant],
        directory: Path,
        cwd: str,
        options: Sequence[str] = (),
        *,
        data: str | None = None,
    ) -> None:
        """`options` are words of `antiphon run` that every run gets; `data` is what its stdin has beside the prompt."""
        self.prompt = prompt
        self.contestants = list(contestants)
        self.directory = directory
        self._data = data
        self._cwd = cwd
        self._options = list(options)
        self._commands: dict[str, LocalCommand] = {}

    async def run(self, ended: Callable[[ComparedRun], None] = lambda run: None) -> list[ComparedRun]:
        """Run all of them at the same time, and return what became of each, in their order. `ended` is called with each when it has ended.

        Raises:
            SpawnFailed: this Python cannot be started.
        """
        make_private_directory(self.directory)
        (self.directory / PROMPT).write_text(self.prompt, encoding="utf-8")
        if self._data is not None:
            (self.directory / DATA).write_text(self._data, encoding="utf-8")
        for each in self.contestants:
            self._patch_of(each).unlink(missing_ok=True)  # of an earlier comparison in this directory

        async def one(contestant: Contestant) -> ComparedRun:
            found = await self._run_one(contestant)
            ended(found)
            return found

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(each), name=f"compare {each.label}") for each in self.contestants]
        return [task.result() for task in tasks]

    def cancel(self) -> None:
        """Cancel the runs, as Ctrl-C does. A second call ends them at once."""
        for command in self._commands.values():
            if command.exit is None:
                with suppress(ProcessLookupError):
                    os.kill(command.pid, signal.SIGINT)

    def _patch_of(self, contestant: Contestant) -> Path:
        return self.directory / f"{contestant.file_name}.patch"

    async def _run_one(self, contestant: Contestant) -> ComparedRun:
        patch = self._patch_of(contestant)
        words = [sys.executable, "-m", "antiphon", "run", "--output", "json", "--worktree", "--patch", str(patch)]
        words += ["--agent", contestant.agent, *self._options]
        if contestant.model is not None:
            words += ["--model", contestant.model]
        began = time.monotonic()
        words += ["--file", str(self.directory / PROMPT)]  # an argument has at most 128 KiB on Linux
        stdin = os.open(os.devnull if self._data is None else self.directory / DATA, os.O_RDONLY | os.O_CLOEXEC)
        try:
            command = await LocalCommand.start(
                words, cwd=self._cwd, output_limit=RESULT_LIMIT, errors=False, stdin=stdin
            )
        finally:
            os.close(stdin)
        async with command:
            self._commands[contestant.label] = command
            exit = await command.wait()
        result = _result(command.output(), exit.code, time.monotonic() - began)
        added, removed = await asyncio.to_thread(_lines, patch)
        return ComparedRun(contestant.label, result, str(patch) if patch.exists() else "", added, removed)


def _result(output: str, code: int | None, seconds: float) -> ResultEvent:
    """Return the result that a run has printed; an error before the start becomes one."""
    try:
        found = msgspec.json.decode(output, type=ResultEvent | ErrorEvent)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, ResultEvent):
        return found
    return ResultEvent(
        schema_version=VERSION,
        exit_code=1 if found is None and not code else found.exit_code if found is not None else code or 1,
        text="",
        files_changed=[],
        denials=[],
        seconds=round(seconds, 3),
        error=None if found is None else found.error,
    )


def _lines(patch: Path) -> tuple[int, int]:
    """Return how many lines a patch adds and removes."""
    added = removed = 0
    in_hunk = False
    try:
        with patch.open("rb") as file:
            for line in file:
                if line.startswith(b"@@ "):
                    in_hunk = True
                elif line.startswith(b"diff --git "):
                    in_hunk = False
                elif in_hunk:
                    added += line.startswith(b"+")
                    removed += line.startswith(b"-")
    except OSError:  # there is none
        pass
    return added, removed
