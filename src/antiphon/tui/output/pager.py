"""The user's pager: long output as a page of its own, which leaves the scrollback as it was."""

import asyncio
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

from antiphon.text import strip_ansi
from antiphon.tui.output.links import without_links

__all__ = ["page_of", "pager_command", "run_pager"]


def pager_command(environment: Mapping[str, str]) -> list[str] | None:
    """Return the command of the pager: `$PAGER`, else less, else more; None if there is none, or `PAGER=cat` wants none."""
    path = environment.get("PATH")
    wanted = environment.get("PAGER", "").strip()
    if wanted == "cat":
        return None
    if wanted:
        try:
            words = shlex.split(wanted)
        except ValueError:
            words = []
        if words and shutil.which(words[0], path=path):
            return words
    return next(([found] for name in ("less", "more") if (found := shutil.which(name, path=path))), None)


def page_of(lines: Sequence[str], command: Sequence[str]) -> bytes:
    """Return painted lines as the pager takes them. Only less and its relatives know colours."""
    plain = os.path.basename(command[0]) not in ("less", "most", "bat", "batcat", "moar", "moor", "ov")
    shown = (strip_ansi(line) if plain else without_links(line) for line in lines)
    return "".join(f"{line}\n" for line in shown).encode("utf-8", "replace")


async def run_pager(lines: Sequence[str], command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Show painted lines in the pager, until the user leaves it. Less shows colours, and what it is given as UTF-8."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, env={"LESS": "-R", "LESSCHARSET": "utf-8", **environment}
    )
    try:
        await process.communicate(page_of(lines, command))
    finally:
        if process.returncode is None:
            process.terminate()
