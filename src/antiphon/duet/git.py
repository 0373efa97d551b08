"""The `git` program, run so that nothing of a repository is run by it and nothing of a repository is changed. Knows no diffs.

It gets a directory of its own as its repository, and an environment without the user's settings. So there are no hooks, no filters, no
drivers, no monitors and no helpers, whatever a repository names: all of those are set where this one does not look.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from antiphon.duet.programs import absolute_path, program
from antiphon.transports import guard
from antiphon.transports.exits import release, when_exited

__all__ = ["OUTPUT_LIMIT", "Git", "GitFailed", "TooMuch", "user_excludes"]

OUTPUT_LIMIT: Final = 16 * 1024 * 1024
"""Bytes that one run may write: the names of a hundred thousand files."""

LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at how much it wrote."""

KILL_GRACE: Final = 5.0
"""Seconds we wait for the kernel to report a run that was killed."""

_OPTIONS: Final = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false", "-c", "core.splitIndex=false",
    "-c", "core.quotePath=false", "-c", "core.fsync=none", "-c", "core.compression=0", "-c", "core.attributesFile=/dev/null",
    "-c", "gc.auto=0", "-c", "submodule.recurse=false", "-c", "protocol.allow=never",
)  # fmt: skip
"""Said once more, though there is nothing that could say otherwise. And no time is lost on what is thrown away soon."""


class GitFailed(Exception):
    """It could not be done; the words say why."""


class TooMuch(GitFailed):
    """It wrote more than anybody wants to read. What it wrote until then is in `output`."""

    def __init__(self, output: bytes) -> None:
        super().__init__("there is too much to look at")
        self.output = output


class Git:
    """Runs git on a tree, with a repository that is not the tree's."""

    def __init__(self, directory: Path, tree: str, at: str, excludes: str) -> None:
        self._directory = directory
        self._at = at
        self._options = [*_OPTIONS, "-c", f"core.excludesFile={excludes}"]
        self._environment = {
            "PATH": absolute_path(),
            "HOME": str(directory),
            "XDG_CONFIG_HOME": str(directory),
            "LC_ALL": "C",
            "GIT_DIR": str(directory),
            "GIT_WORK_TREE": tree,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }

    async def run(self, *words: str, said: bytes = b"", limit: int = OUTPUT_LIMIT, fails: Sequence[int] = ()) -> bytes:
        """What it writes. Whoever stops waiting for it ends it.

        Raises:
            GitFailed: it is not there, or ended with a code that is neither 0 nor among `fails`.
            TooMuch: it wrote more than `limit` bytes.
        """
        return await _run([*self._options, *words], self._directory, self._at, self._environment, said, limit, fails)


async def user_excludes(directory: Path) -> str:
    """The file that says what the user has git ignore everywhere; `/dev/null` if there is none. `directory` is in no repository.

    This alone asks the user's own settings, and it runs nothing that they name: git only reads a value.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"PATH": absolute_path()}
    words = ["config", "--global", "--type=path", "--get", "core.excludesFile"]
    try:
        found = os.fsdecode(await _run(words, directory, str(directory), own, b"", OUTPUT_LIMIT, (1,))).strip()
    except GitFailed:
        found = ""
    folder = own.get("XDG_CONFIG_HOME") or os.path.join(own.get("HOME", "/"), ".config")
    path = found or os.path.join(folder, "git", "ignore")
    return path if await asyncio.to_thread(os.path.isfile, path) else "/dev/null"


async def _run(
    words: Sequence[str],
    directory: Path,
    at: str,
    environment: Mapping[str, str],
    said: bytes,
    limit: int,
    fails: Sequence[int],
) -> bytes:
    git = program("git")
    if git is None:
        raise GitFailed("git could not be started: it is not on the PATH")
    heard, output, errors = (directory / name for name in ("antiphon-in", "antiphon-out", "antiphon-err"))
    heard.write_bytes(said)
    with heard.open("rb") as source, output.open("wb") as sink, errors.open("wb") as trouble:
        try:
            streams = (source.fileno(), sink.fileno(), trouble.fileno())
            child = guard.start([git, *words], streams, env=environment, cwd=at)
        except OSError as error:
            raise GitFailed(f"git could not be started: {error.strerror}") from error
    await _until_over(child, output, limit)
    if _size(output) > limit:
        with output.open("rb") as file:
            raise TooMuch(file.read(limit))
    if child.returncode not in (0, *fails):
        why = errors.read_text(encoding="utf-8", errors="replace").strip()[-500:]
        raise GitFailed(f"git ended with {child.returncode}: {why}")
    return output.read_bytes()


def _size(path: Path) -> int:
    return path.stat().st_size


async def _until_over(child: guard.Child, output: Path, limit: int) -> None:
    over = asyncio.Event()
    when_exited(asyncio.get_running_loop(), child, over.set)
    try:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), LOOK_AGAIN)
            except TimeoutError:
                if _size(output) > limit:
                    break
    finally:
        if not over.is_set():
            os.killpg(child.pid, signal.SIGKILL)
            await asyncio.wait([asyncio.ensure_future(over.wait())], timeout=KILL_GRACE)
        await release(child)
