"""Acts on the files of the workspace. Those that change anything ask first."""

import asyncio
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.engines.demo.acts import act
from antiphon.engines.demo.workspace import counted, text_files
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__: list[str] = []

HITS: Final = 20
"""Lines that `/search` shows: enough to see that it works."""


def _words(text: str, usage: str, most: int) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not 1 <= len(words) <= most:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"say `{usage}`; names with spaces go in quotes")
    return words


@act("read", "Read a file, or some of its lines", "PATH [LINE [LIMIT]]")
async def read(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Through the client, which knows what is not saved yet."""
    path, *numbers = _words(rest, "/read PATH [LINE [LIMIT]]", 3)
    if not all(number.isdecimal() for number in numbers):
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "LINE and LIMIT are numbers, counted from 1")
    line, limit = ([int(number) for number in numbers] + [None, None])[:2]
    place = v1.ToolLocation(turn.path(path), line)
    asked = {"path": place.path, "line": line, "limit": limit}
    async with turn.tool(f"Read {path}", v1.ToolKind.READ, name="Read", input=asked, at=[place]) as call:
        text = await turn.read(path, line=line, limit=limit)
        await call.show(text, raw={"characters": len(text)})
    await turn.say(f"`{path}`: {counted(len(text.splitlines()), 'line')}, {counted(len(text), 'character')}.")
    return None


@act("edit", "Write a line into a file, after you allowed it", "PATH [TEXT]")
async def edit(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Adds a line at the end. The question for permission shows the change."""
    path = _words(rest, "/edit PATH [TEXT]", 1000)[0]
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
    """Clients have no one code for it, so the system's own words count too; nothing else does, or a file would be overwritten."""
    words = f"{error.message} {error.data}".replace(path, "").lower()
    if error.meaning == "resource not found":
        return "session" not in words
    return "no such file" in words or "enoent" in words


def _with_line(text: str, line: str) -> str:
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{end}{line}\n"


@act("delete", "Delete a file, after you allowed it", "PATH")
async def delete(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """One file of the workspace; the protocol has no method for it, so it happens on this machine."""
    path = _words(rest, "/delete PATH", 1)[0]
    place = demo.inside(turn, path)
    async with turn.tool(f"Delete {path}", v1.ToolKind.DELETE, name="Delete", at=[str(place)]) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.DELETE, str(place)):
            return None
        await asyncio.to_thread(_on_disk, os.unlink, place)
    await turn.say(f"`{path}` is gone.")
    return None


@act("move", "Move a file, after you allowed it", "FROM TO")
async def move(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Within the workspace, and never over a file that is there."""
    words = _words(rest, "/move FROM TO", 2)
    if len(words) != 2:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "say `/move FROM TO`")
    source, target = (demo.inside(turn, word) for word in words)
    title = f"Move {words[0]} to {words[1]}"
    async with turn.tool(title, v1.ToolKind.MOVE, name="Move", at=[str(source), str(target)]) as call:
        if not await demo.allowed(turn, call, v1.ToolKind.MOVE, f"{source} → {target}"):
            return None
        if target.exists():
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"`{words[1]}` is there already")
        await asyncio.to_thread(_on_disk, os.rename, source, target)
    await turn.say(f"`{words[0]}` is `{words[1]}` now.")
    return None


def _on_disk(do: object, *paths: Path) -> None:
    try:
        do(*paths)  # type: ignore[operator] # os.unlink or os.rename
    except OSError as error:
        raise RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", str(error)) from error


@act("search", "Look for a text in the workspace", "TEXT")
async def search(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Every line that has it, with its place."""
    wanted = rest.strip() or "demo"
    async with turn.tool(f"Search for {wanted!r}", v1.ToolKind.SEARCH, name="Grep", input={"text": wanted}) as call:
        hits = await asyncio.to_thread(_hits, turn.session.cwd, wanted)
        for path, line, _ in hits:
            await call.at(path, line)
        shown = "\n".join(f"{path.removeprefix(turn.session.cwd + os.sep)}:{line}: {text}" for path, line, text in hits)
        await call.show(shown or "nothing", raw={"hits": len(hits)})
    await turn.say(f"Found in {'at least ' if len(hits) == HITS else ''}{counted(len(hits), 'line')}.")
    return None


def _hits(root: str, wanted: str) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    for path, text in text_files(root):
        for line, content in enumerate(text.splitlines(), 1):
            if wanted in content:
                found.append((path, line, content.strip()[:200]))
                if len(found) == HITS:
                    return found
    return found


@act("fetch", "Fetch a `data:` or `file:` address; the demo has no network", "URL")
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
