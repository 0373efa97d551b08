"""Asks a program something, with a limit. What it starts ends with it, and with us."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from antiphon.errors import SpawnFailed
from antiphon.local.commands import Command

__all__ = ["Answer", "ask", "home"]

OUTPUT: Final = 64 * 1024


class Answer(msgspec.Struct, frozen=True):
    """What a program said, stdout and stderr together; or why it said nothing."""

    said: str = ""
    status: int | None = None
    trouble: str | None = None

    @property
    def first_line(self) -> str:
        """What to show of it."""
        line = self.said.strip().partition("\n")[0][:200]
        return line or ("nothing" if self.status == 0 else f"nothing, and ended with {self.status}")


async def ask(path: str, *words: str, limit: float, cwd: str | None = None, env: Mapping[str, str]) -> Answer:
    """Run it with these words, in a directory, and hear what it says. It reads nothing."""
    try:
        command = await Command.start([path, *words], cwd=cwd or home(), env=env, output_limit=OUTPUT)
    except SpawnFailed as error:
        return Answer(trouble=str(error).partition("\n")[0])
    async with command:
        try:
            async with asyncio.timeout(limit):
                exit = await command.wait()
        except TimeoutError:
            return Answer(trouble=f"`{' '.join((os.path.basename(path), *words))}` took more than {limit:g} seconds")
        return Answer(command.output(), exit.code)


def home() -> str:
    """Where programs are asked that are not to look at a project."""
    place = Path.home()
    return str(place) if place.is_dir() else "/"
