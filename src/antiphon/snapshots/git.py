"""How a directory looked, remembered with git in a second repository, and what has changed in it since.

The tree's own repository, if it has one, is only read: its index is copied, so that git need not read files that did not change, and its
objects are borrowed. What the tree ignores is ignored.
"""

import asyncio
import os
import re
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec

from antiphon.transports import guard
from antiphon.transports.process import release, when_exited

__all__ = [
    "FILE_LIMIT",
    "OUTPUT_LIMIT",
    "Git",
    "GitFailed",
    "Repository",
    "TooMuch",
    "TreeSnapshot",
    "absolute_path",
    "in_thread",
    "make_repository",
    "new_folder",
    "program",
    "repository_of",
    "sweep",
    "user_excludes",
]

# The `git` program, run so that nothing of a repository is run by it and nothing of a repository is changed.
# It gets a directory of its own as its repository, and an environment without the user's settings. So there are no hooks, no filters, no
# drivers, no monitors and no helpers, whatever a repository names: all of those are set where this one does not look.

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
"""Set explicitly, though nothing sets them otherwise. And no time is lost on syncing what is removed soon."""


class GitFailed(Exception):
    """A snapshot could not be made; the text is the reason."""


class TooMuch(GitFailed):
    """A program wrote more than the limit. Its output until then is in `output`."""

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

    async def run(self, *words: str, stdin: bytes = b"", limit: int = OUTPUT_LIMIT, fails: Sequence[int] = ()) -> bytes:
        """Run git, and return what it writes. Cancelling this kills it.

        Raises:
            GitFailed: it is not there, or ended with a code that is neither 0 nor among `fails`.
            TooMuch: it wrote more than `limit` bytes.
        """
        return await _run([*self._options, *words], self._directory, self._at, self._environment, stdin, limit, fails)


async def user_excludes(directory: Path) -> str:
    """The user's global ignore file of git; `/dev/null` without one. `directory` is in no repository.

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
    stdin: bytes,
    limit: int,
    fails: Sequence[int],
) -> bytes:
    git = program("git")
    if git is None:
        raise GitFailed("git could not be started: it is not on the PATH")
    stdin_file, output, errors = (directory / name for name in ("antiphon-in", "antiphon-out", "antiphon-err"))
    stdin_file.write_bytes(stdin)
    with stdin_file.open("rb") as source, output.open("wb") as sink, errors.open("wb") as trouble:
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


# Programs that we start ourselves. We work in projects of other people, so a relative directory of the PATH is left out.


def absolute_path() -> str:
    """The PATH without its relative directories. An empty one would be read as the current directory."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder.startswith("/")) or "/"


def program(name: str) -> str | None:
    """The whole path of a program; None if it is not installed."""
    import shutil

    return shutil.which(name, path=absolute_path())


# Temporary directories of our own. A process that is killed leaves one behind; its name has the process id, and another process removes it.

LEFT: Final = 24 * 60 * 60.0
"""Seconds after which a directory whose process is not there was left. Not at once: another container may share the directory, and not the
processes."""

_PREFIX: Final = "antiphon-look-"
_NAME: Final = re.compile(rf"{_PREFIX}(\d+)-")


def new_folder() -> Path:
    """A new directory that only this user can read."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))  # always with the mode 0700


def sweep() -> None:
    """Remove those that were left. Takes its time: call it in a thread."""
    now = time.time()
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            left = [entry.path for entry in entries if _was_left(entry, now)]
    except OSError:
        return
    for path in left:
        shutil.rmtree(path, ignore_errors=True)


def _was_left(entry: "os.DirEntry[str]", now: float) -> bool:
    named = _NAME.match(entry.name)
    if named is None or _lives(int(named[1])):
        return False
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:  # another process was faster
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and now - facts.st_mtime > LEFT


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is there, and another user's
        return True
    return True


P = ParamSpec("P")

FILE_LIMIT: Final = 2 * 1024 * 1024
"""Bytes of a file that is looked into. Larger ones are seldom written by hand; that they changed is reported."""

TRIES: Final = 3
"""How often we look at a directory in which files come and go."""

TOTAL_LIMIT: Final = 256 * 1024 * 1024
"""Bytes that are read of a tree of which nothing is known yet."""

_SHA256: Final = re.compile(rb"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)


class Repository(NamedTuple):
    """The directory of a tree's own repository."""

    top: str
    directory: Path
    """The directory of this work tree: its index is here."""
    common: Path
    """The directory of all its work trees: the objects are here."""


class SeenTree(NamedTuple):
    """How the tree looks: what is new since the look before was put into the index."""

    nested: list[str]
    """Repositories inside, which are trees of their own."""
    large: dict[str, tuple[int, int]]
    """Files that were not looked into, with their size and date."""


async def in_thread(work: "Callable[P, None]", *args: P.args, **named: P.kwargs) -> None:
    """Work on our own files in a thread, since they may be large. A cancelled caller waits for its end, and then removes the files."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *args, **named))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # seen: nothing waits for it any more
        raise


def repository_of(root: str) -> Repository | None:
    """The repository that a directory is in. Found without running anything."""
    for top in (Path(root), *Path(root).parents):
        found = top / ".git"
        if found.is_file():
            pointer = found.read_text(encoding="utf-8", errors="surrogateescape").strip()
            if not pointer.startswith("gitdir:"):
                return None
            found = top / pointer.removeprefix("gitdir:").strip()
        if (found / "HEAD").exists():
            common = found / "commondir"
            shared = found / common.read_text(encoding="utf-8").strip() if common.is_file() else found
            return Repository(str(top), found, shared)
    return None


class TreeSnapshot:
    """A snapshot of one tree. `whole`: files of any size are in it, and a difference can be applied, also to files that are no text.

    `without`: files that are no part of it, by device and inode.
    """

    def __init__(
        self,
        directory: Path,
        root: str,
        name: str,
        excludes: str,
        *,
        whole: bool = False,
        without: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self.root = root
        self._whole = whole
        self._without = without
        self.name = name
        """The prefix of its paths."""
        self._directory = directory
        self._excludes = excludes
        self._tree = ""
        self._large: dict[str, tuple[int, int]] = {}

    async def begin(self) -> list[str]:
        """Take the snapshot, and return the repositories inside, which are not a part of it."""
        repository = await asyncio.to_thread(repository_of, self.root)
        try:
            seen = await self._begin(repository)
        except GitFailed:
            if repository is None:
                raise
            # It is damaged, or in a shape that we do not know: the files are there all the same.
            await in_thread(shutil.rmtree, self._directory)
            seen = await self._begin(None)
        self._large = seen.large
        self._tree = (await self._git.run("write-tree", "--missing-ok")).decode().strip()
        return seen.nested

    async def _begin(self, repository: Repository | None) -> SeenTree:
        await in_thread(make_repository, self._directory, repository)
        top = self.root if repository is None else repository.top
        self._git = Git(self._directory, top, self.root, self._excludes)
        if top != self.root and await self._git.run("check-ignore", ".", fails=(1,)):
            raise GitFailed(f"{top} ignores {self.root}")
        return await self._look()

    async def changes(self, limit: int) -> tuple[bytes, list[str], list[str]]:
        """The difference to how it looks now, the files in it, and those that changed and are too large for it."""
        seen = await self._look()
        large = [name for name, facts in seen.large.items() if self._large.get(name) != facts]
        compare = (
            "diff-index",
            "--cached",
            "-M",
            "--relative",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--submodule=short",
            *(("--binary", "--full-index") if self._whole else ()),
        )
        names = await self._git.run(*compare, "--name-only", "-z", self._tree)
        files = [_text(name) for name in names.split(b"\0") if name]
        if not files:
            return b"", [], large
        prefixes = (f"--src-prefix=a/{self.name}", f"--dst-prefix=b/{self.name}")
        return await self._git.run(*compare, "--patch", *prefixes, self._tree, limit=limit), files, large

    async def _look(self) -> SeenTree:
        """Read the tree into the index. git fails on files that come and go meanwhile (a build, a database): then it is run again."""
        for left in reversed(range(TRIES)):
            try:
                return await self._look_once()
            except TooMuch:
                raise
            except GitFailed:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _look_once(self) -> SeenTree:
        listed = await self._git.run("ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard")
        staged = await self._git.run("ls-files", "-z", "--stage")
        most = TOTAL_LIMIT if self._whole else FILE_LIMIT
        found = await asyncio.to_thread(_sorted, os.fsencode(self.root), listed, staged, most, self._without)
        if found.total > TOTAL_LIMIT:
            raise GitFailed(f"{self.root} holds more than {TOTAL_LIMIT // 1024**2} MB that git does not know")
        await self._take(found.gone, found.here)
        return SeenTree(found.nested, found.large)

    async def _take(self, gone: list[bytes], here: list[bytes]) -> None:
        if gone:
            await self._git.run("update-index", "-z", "--force-remove", "--stdin", stdin=b"\0".join(gone) + b"\0")
        if here:
            # As if all were big: then all of them go into one file, and not each into one of its own.
            together = ("-c", "core.bigFileThreshold=1")
            stdin = b"\0".join(here) + b"\0"
            await self._git.run(
                *together, "update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=stdin
            )


def make_repository(directory: Path, repository: Repository | None) -> None:
    """Make a directory for `Git` that knows the files of a repository, and nothing that a repository sets."""
    (directory / "objects" / "info").mkdir(parents=True)
    (directory / "refs").mkdir()
    (directory / "info").mkdir()
    (directory / "HEAD").write_text("ref: refs/heads/antiphon\n", encoding="utf-8")
    config = "[core]\n\trepositoryformatversion = 1\n"
    if repository is not None:
        if (kept := repository.common / "config").is_file() and _SHA256.search(kept.read_bytes()):
            config += "[extensions]\n\tobjectformat = sha256\n"
        borrowed = os.path.abspath(repository.common / "objects")
        (directory / "objects" / "info" / "alternates").write_bytes(os.fsencode(borrowed) + b"\n")
        for kept in (repository.directory / "index", *repository.directory.glob("sharedindex.*")):
            if kept.is_file():
                shutil.copy2(kept, directory / kept.name)  # with its date: git compares it with the files'
        if (kept := repository.common / "info" / "exclude").is_file():
            shutil.copyfile(kept, directory / "info" / "exclude")
    (directory / "config").write_text(config, encoding="utf-8")


class _Sorted(NamedTuple):
    gone: list[bytes]
    here: list[bytes]
    nested: list[str]
    large: dict[str, tuple[int, int]]
    total: int


def _sorted(
    root: bytes, listed: bytes, staged: bytes, most: int, without: frozenset[tuple[int, int]] = frozenset()
) -> _Sorted:
    """Sort the files that differ from the index, or are not in it, by what has to be done with them. `most`: bytes of one that is read."""
    links = [line.partition(b"\t")[2] for line in staged.split(b"\0") if line.startswith(b"160000 ")]
    modules = [name for name in dict.fromkeys(links) if os.path.exists(os.path.join(root, name, b".git"))]
    found = _Sorted([], [], [os.fsdecode(name) for name in modules], {}, 0)
    linked, total = _links_in(root), 0
    for name in dict.fromkeys(each for each in listed.split(b"\0") if each):
        if name.endswith(b"/"):
            found.nested.append(os.fsdecode(name.rstrip(b"/")))
            continue
        facts = None if linked(os.path.dirname(name)) else _facts(os.path.join(root, name), without)
        if facts is None:
            found.gone.append(name)
        elif facts[0] > most:
            found.large[_text(name)] = facts
        elif facts[0] >= 0:
            found.here.append(name)
            total += facts[0]
    return found._replace(total=total)


def _facts(path: bytes, without: frozenset[tuple[int, int]]) -> tuple[int, int] | None:
    """Size and date of a file; none if it is gone; a size below zero if it is nothing to look into, as those in `without`."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return -1, 0
    if (facts.st_dev, facts.st_ino) in without:
        return -1, 0
    if os.path.isdir(path) and not os.path.islink(path):
        return (-1, 0) if os.path.exists(os.path.join(path, b".git")) else None
    if not os.path.islink(path) and not os.access(path, os.R_OK):
        return -1, 0
    return facts.st_size, facts.st_mtime_ns


def _links_in(root: bytes) -> Callable[[bytes], bool]:
    """A function that returns whether a directory in a tree is reached by a link, which git does not follow. Each is looked at once."""

    @cache
    def linked(folder: bytes) -> bool:
        return folder != b"" and (linked(os.path.dirname(folder)) or os.path.islink(os.path.join(root, folder)))

    return linked


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
