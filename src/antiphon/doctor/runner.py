"""Runs checks side by side, each with a time limit; a check that fails is a finding itself."""

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec

from antiphon.doctor.findings import Check, DoctorContext, Finding, problem
from antiphon.errors import SpawnFailed
from antiphon.local.commands import LocalCommand
from antiphon.redaction import Redactor
from antiphon.text import one_line

__all__ = ["DoctorResult", "ProgramOutput", "ask", "home", "in_thread", "run_checks"]

# --- programs, run with a limit --------------------------------------------------------------------------------------

OUTPUT: Final = 64 * 1024


class ProgramOutput(msgspec.Struct, frozen=True):
    """The output of a program, stdout and stderr together, or why there is none."""

    text: str = ""
    status: int | None = None
    trouble: str | None = None

    @property
    def first_line(self) -> str:
        """The first line, for display."""
        line = self.text.strip().partition("\n")[0][:200]
        return line or ("nothing" if self.status == 0 else f"nothing, and ended with {self.status}")


async def ask(path: str, *words: str, limit: float, cwd: str | None = None, env: Mapping[str, str]) -> ProgramOutput:
    """Run a program without stdin, and return its output."""
    try:
        command = await LocalCommand.start([path, *words], cwd=cwd or home(), env=env, output_limit=OUTPUT)
    except SpawnFailed as error:
        return ProgramOutput(trouble=str(error).partition("\n")[0])
    async with command:
        try:
            async with asyncio.timeout(limit):
                exit = await command.wait()
        except TimeoutError:
            return ProgramOutput(
                trouble=f"`{' '.join((os.path.basename(path), *words))}` took more than {limit:g} seconds"
            )
        return ProgramOutput(command.output(), exit.code)


def home() -> str:
    """Return the directory for programs that must not read a project."""
    place = Path.home()
    return str(place) if place.is_dir() else "/"


T = TypeVar("T")

AT_ONCE: Final = 16
"""Checks that run at the same time: most wait for a program."""


LONGEST: Final = 500
"""Letters of a sentence or a hint: the output of a program may be long."""


class DoctorResult(msgspec.Struct, frozen=True):
    """A check, what it found, and the seconds that it took."""

    check: Check
    findings: tuple[Finding, ...]
    seconds: float


async def run_checks(
    checks: Sequence[Check], context: DoctorContext, done: Callable[[Check], None] = lambda _: None
) -> tuple[DoctorResult, ...]:
    """Run all checks, and return the results in their order. `done` is called as each one ends."""
    gate = asyncio.Semaphore(AT_ONCE)
    redact = Redactor(context.environment)

    async def do(check: Check) -> DoctorResult:
        async with gate:
            began = time.monotonic()
            found = await _find(check, context)
            done(check)
            return DoctorResult(check, tuple(_clean(each, redact) for each in found), time.monotonic() - began)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(do(check), name=check.id) for check in checks]
    return tuple(task.result() for task in tasks)


async def in_thread(work: Callable[[], T]) -> T:
    """Run something that may block in a thread that is left behind if it hangs, for example on a dead network disk."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():
            return  # the runner has stopped waiting
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", result))

    def run() -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            result = work()
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="doctor", daemon=True).start()
    return await future


async def _find(check: Check, context: DoctorContext) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(check.limit):
            if inspect.iscoroutinefunction(check.look):
                return await cast("Awaitable[Sequence[Finding]]", check.look(context))
            look = cast("Callable[[DoctorContext], Sequence[Finding]]", check.look)
            return await in_thread(lambda: look(context))
    except TimeoutError:
        return problem(
            f"this could not be found out within {check.limit:g} seconds",
            "look whether the machine or a disk is busy or stuck, and try again, perhaps with a longer --timeout",
        )
    except Exception as error:  # the other checks have to be reported all the same
        return problem(
            f"this could not be found out: {type(error).__name__}: {_first_line(error)}",
            "this is a mistake of Antiphon: please report it, with this line",
        )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _clean(found: Finding, redact: Redactor) -> Finding:
    """Return a finding without secrets."""

    def clean(text: str) -> str:
        text = one_line(redact(text))
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    return Finding(
        found.status,
        clean(found.sentence),
        None if found.hint is None else clean(found.hint),
        {name: clean(value) for name, value in found.facts.items()},
    )
