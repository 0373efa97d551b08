"""The workspace: the answer to plain text, and commands that read, change, search and run. Every change needs permission."""

import asyncio
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.engines.demo.commands import command
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.commands import FinishedCommand
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["counted", "describe", "text_files"]

# The answer to plain text: a look at the workspace, and at what came with the prompt.

MOST_FILES: Final = 2000
"""Files that are counted or searched: a look around, not a survey of a home directory."""

MOST_BYTES: Final = 256 * 1024
"""Files above this are not searched."""

_NOT_OURS: Final = frozenset({"node_modules", "__pycache__", "target", "dist", "build", "venv"})


def files(root: str) -> Iterator[str]:
    """The files below a directory, in a fixed order, without hidden and generated ones."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_OURS)
        for name in sorted(names):
            if name.startswith("."):
                continue
            seen += 1
            if seen > MOST_FILES:
                return
            yield os.path.join(folder, name)


def text_files(root: str) -> Iterator[tuple[str, str]]:
    """The text files among them, with their text."""
    for path in files(root):
        try:
            if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= MOST_BYTES:
                with open(path, encoding="utf-8") as file:
                    yield path, file.read()
        except (OSError, UnicodeDecodeError):
            continue


def _count(root: str) -> tuple[int, list[tuple[str, int]]]:
    kinds = Counter(os.path.splitext(path)[1] or "no extension" for path in files(root))
    return kinds.total(), sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:4]


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the plural if need be."""
    return f"{number} {what}{'' if number == 1 else 's'}"


async def describe(demo: "DemoSession", turn: "AgentTurn") -> "Outcome":
    """Describe the workspace and what came with the prompt."""
    if demo.setting("greeting"):
        await turn.say("Hello! ")
    if demo.setting("thinking") == "on":
        await turn.think("I have no model, so I look around instead.")
    repetitions = 2 if demo.setting("model") == "canon" else 1
    for _ in range(repetitions):
        await _look(demo, turn)
    return None


async def _look(demo: "DemoSession", turn: "AgentTurn") -> None:
    total, kinds = await asyncio.to_thread(_count, turn.session.cwd)
    name = os.path.basename(turn.session.cwd) or turn.session.cwd
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds)
    more = "at least " if total == MOST_FILES else ""
    await turn.say(
        f"You are in `{name}`, which has {more}{counted(total, 'file')}" + (f" ({listed}).\n" if listed else ".\n")
    )
    if demo.setting("length") == "short":
        return
    if (first := await _first_line(turn)) is not None:
        await turn.say(f"Its README begins with “{first}”.\n")
    for block in turn.prompt:
        if (seen := _seen(block)) is not None:
            await turn.say(f"With your words came {seen}.\n")
    await turn.say("I am a demo without a model: `/help` lists what I can show.\n")


async def _first_line(turn: "AgentTurn") -> str | None:
    try:
        text = await turn.read("README.md", limit=20)
    except RequestRefused:
        return None
    return next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), None)


def _seen(block: "v1.ContentBlock") -> str | None:
    match block:
        case v1.TextBlock():
            return None
        case v1.ImageBlock(mime_type=mime) | v1.AudioBlock(mime_type=mime):
            return f"{len(block.data) * 3 // 4} bytes of `{mime}`"
        case v1.ResourceLink(name=name):
            return f"a link to `{name}`"
        case v1.EmbeddedResource(resource=resource):
            return f"`{resource.uri}`"
        case _:
            return f"something called `{block.kind}`"


HITS: Final = 20
"""Lines that `/search` shows: enough to see that it works."""


def _arguments(text: str, usage: str, most: int) -> list[str]:
    try:
        arguments = shlex.split(text)
    except ValueError:
        arguments = []
    if not 1 <= len(arguments) <= most:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"use `{usage}`; names with spaces go in quotes")
    return arguments


@command("read", "Read a file, or some of its lines", "PATH [LINE [LIMIT]]")
async def read(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Through the client, which knows what is not saved yet."""
    path, *numbers = _arguments(rest, "/read PATH [LINE [LIMIT]]", 3)
    if not all(number.isdecimal() for number in numbers):
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "LINE and LIMIT are numbers, counted from 1")
    line, limit = ([int(number) for number in numbers] + [None, None])[:2]
    place = v1.ToolLocation(turn.path(path), line)
    tool_input = {"path": place.path, "line": line, "limit": limit}
    async with turn.tool(f"Read {path}", v1.ToolKind.READ, name="Read", input=tool_input, at=[place]) as call:
        text = await turn.read(path, line=line, limit=limit)
        await call.show(text, raw={"characters": len(text)})
    await turn.say(f"`{path}`: {counted(len(text.splitlines()), 'line')}, {counted(len(text), 'character')}.")
    return None


@command("edit", "Write a line into a file, after you allowed it", "PATH [TEXT]")
async def edit(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Adds a line at the end. The permission request shows the change."""
    path = _arguments(rest, "/edit PATH [TEXT]", 1000)[0]
    added = (
        rest.strip().removeprefix(path).strip() if rest.strip().startswith(path) else " ".join(shlex.split(rest)[1:])
    )
    place = turn.path(path)
    async with turn.tool(f"Edit {path}", v1.ToolKind.EDIT, name="Edit", input={"path": place}) as call:
        old = await _text_if_any(turn, path)
        new = _with_line(old or "", added or "Call and response.")
        await call.at(path, len(new.splitlines()))
        await call.preview(v1.Diff(place, new, old))
        if not await demo.allowed(turn, call, v1.ToolKind.EDIT, place):
            return None
        await turn.write(path, new)
    await turn.say(f"`{path}` has {counted(len(new.splitlines()), 'line')} now.")
    return None


async def _text_if_any(turn: "AgentTurn", path: str) -> str | None:
    try:
        return await turn.read(path)
    except RequestRefused as error:
        if _means_missing(error, turn.path(path)):
            return None
        raise


def _means_missing(error: RequestRefused, path: str) -> bool:
    """Clients have no one code for it, so the text of the system error counts too; nothing else does, or a file would be overwritten."""
    arguments = f"{error.message} {error.data}".replace(path, "").lower()
    if error.meaning == "resource not found":
        return "session" not in arguments
    return "no such file" in arguments or "enoent" in arguments


def _with_line(text: str, line: str) -> str:
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{end}{line}\n"


@command("delete", "Delete a file, after you allowed it", "PATH")
async def delete(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Delete a file of the workspace, on this machine: the protocol has no method for it."""
    path = _arguments(rest, "/delete PATH", 1)[0]
    place = demo.inside(turn, path)
    async with turn.tool(f"Delete {path}", v1.ToolKind.DELETE, name="Delete", at=[str(place)]) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.DELETE, str(place)):
            return None
        await asyncio.to_thread(_on_disk, os.unlink, place)
    await turn.say(f"`{path}` is gone.")
    return None


@command("move", "Move a file, after you allowed it", "FROM TO")
async def move(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Within the workspace, and never over a file that is there."""
    arguments = _arguments(rest, "/move FROM TO", 2)
    if len(arguments) != 2:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "use `/move FROM TO`")
    source, target = (demo.inside(turn, argument) for argument in arguments)
    title = f"Move {arguments[0]} to {arguments[1]}"
    async with turn.tool(title, v1.ToolKind.MOVE, name="Move", at=[str(source), str(target)]) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.MOVE, f"{source} → {target}"):
            return None
        if target.exists():
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"`{arguments[1]}` is there already")
        await asyncio.to_thread(_on_disk, os.rename, source, target)
    await turn.say(f"`{arguments[0]}` is `{arguments[1]}` now.")
    return None


def _on_disk(do: object, *paths: Path) -> None:
    try:
        do(*paths)  # type: ignore[operator] # os.unlink or os.rename
    except OSError as error:
        raise RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", str(error)) from error


@command("search", "Look for a text in the workspace", "TEXT")
async def search(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Every line that has it, with its place."""
    value = rest.strip() or "demo"
    async with turn.tool(f"Search for {value!r}", v1.ToolKind.SEARCH, name="Grep", input={"text": value}) as call:
        hits = await asyncio.to_thread(_hits, turn.session.cwd, value)
        for path, line, _ in hits:
            await call.at(path, line)
        found = "\n".join(f"{path.removeprefix(turn.session.cwd + os.sep)}:{line}: {text}" for path, line, text in hits)
        await call.show(found or "nothing", raw={"hits": len(hits)})
    await turn.say(f"Found in {'at least ' if len(hits) == HITS else ''}{counted(len(hits), 'line')}.")
    return None


def _hits(root: str, value: str) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    for path, text in text_files(root):
        for line, content in enumerate(text.splitlines(), 1):
            if value in content:
                found.append((path, line, content.strip()[:200]))
                if len(found) == HITS:
                    return found
    return found


@command("fetch", "Fetch a `data:` or `file:` address; the demo has no network", "URL")
async def fetch(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """What can be fetched without a network."""
    from urllib.parse import unquote, urlsplit

    url = rest.strip() or "data:,call%20and%20response"
    parts = urlsplit(url)
    async with turn.tool(f"Fetch {url[:60]}", v1.ToolKind.FETCH, name="WebFetch", input={"url": url}) as call:
        if parts.scheme == "data":
            text = unquote(parts.path.partition(",")[2])
        elif parts.scheme == "file":
            text = await turn.read(unquote(parts.path))
        else:
            wrong = f"the demo has no network: give it a `data:` or `file:` address, not `{url}`"
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong)
        await call.show(text)
    await turn.say(f"{counted(len(text), 'character')}.")
    return None


# Commands that run programs, only after permission.


LONGEST: Final = 3600.0
"""Seconds that `/limit` waits at most."""


@command("run", "Run a command, after you allowed it", "CMD")
async def run(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Run a command, in the client's terminal if it has one. The line is the shell's, because it was typed by a person."""
    if not rest.strip():
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "name what to run, such as `/run ls`")
    async with turn.tool(f"Run `{rest}`", v1.ToolKind.EXECUTE, name="Bash", input={"command": rest}) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.EXECUTE, rest):
            return None
        async with call.cancellable():
            finished = await call.run(rest)
            if not finished.ok:
                call.fail()
    await turn.say("You cancelled the command, and the turn goes on." if call.cancelled else _ending(rest, finished))
    return None


@command("limit", "Run a command, but no longer than that many seconds", "SECONDS CMD")
async def limit(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Run a command with a time limit. Its output is sent as it comes; at the limit it is killed and the output stays."""
    seconds, line = _timed(rest)
    title = f"Run `{line}` for {seconds:g} s"
    tool_input = {"command": line, "timeout": seconds}
    async with turn.tool(title, v1.ToolKind.EXECUTE, name="Bash", input=tool_input) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.EXECUTE, line):
            return None
        async with turn.run(line) as running:
            try:
                async with asyncio.timeout(seconds):
                    async for piece in running:
                        await turn.say(piece)
            except TimeoutError:
                await running.kill()
                call.fail()
            finished = await running.finish()
    await turn.say(_ending(line, finished))
    return None


def _timed(rest: str) -> tuple[float, str]:
    arguments = rest.split(maxsplit=1)
    try:
        return min(float(arguments[0]), LONGEST), arguments[1]
    except (IndexError, ValueError):
        wrong = "give the seconds and the command, such as `/limit 2 make`"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong) from None


def _ending(line: str, finished: "FinishedCommand") -> str:
    if finished.signal is not None:
        return f"`{line}` ended by {finished.signal}."
    if finished.exit_code is not None:
        return f"`{line}` ended with {finished.exit_code}."
    return f"`{line}` ended, and the client does not report how."  # both are optional in the protocol
