"""Trees of files for the tests of snapshots: what stands in one, byte by byte, and edits at random."""

import os
import random
import shutil
import stat
from pathlib import Path
from typing import TypeAlias

from tests.duet.directories import commit, git, write

__all__ = ["Editor", "Seen", "make_project", "seen"]

Seen: TypeAlias = dict[bytes, tuple[int, bytes]]
"""Path → its mode with its kind, and its bytes or the target of a link."""

NAMES = (
    b"a",
    b"b.txt",
    b"c d",
    b"\xff\xfe",
    b"new\nline",
    "ü".encode(),
    b"-rf",
    b"e.log",
    b"sub",
    b"cache",
    b"a-b",
    b".env",
)
MODES = (0o644, 0o755, 0o600, 0o444, 0o640, 0o777, 0o4755)


def seen(root: Path) -> Seen:
    """All that stands in a directory, repositories included. Dates do not count."""
    found: Seen = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            data = b""
            if stat.S_ISLNK(facts.st_mode):
                data = os.readlink(path)
            elif stat.S_ISREG(facts.st_mode):
                data = Path(os.fsdecode(path)).read_bytes()
            found[os.path.relpath(path, os.fsencode(root))] = (facts.st_mode, data)
    return found


def make_project(root: Path) -> Path:
    """A repository with text, a binary file, ends of lines that git converts, what it ignores, and a repository inside."""
    root.mkdir()
    git(root, "init", "--quiet")
    write(root, ".gitignore", "*.log\ncache/\n.env\n")
    write(root, ".gitattributes", "*.dos text eol=crlf\n")
    (root / "lines.dos").write_bytes(b"one\r\ntwo\r\n")
    (root / "binary").write_bytes(bytes(range(256)) * 40)
    write(root, "src/app.py", "print('la')\n")
    write(root, "src/deep/er/util.py", "x = 1\n")
    write(root, "cache/kept.bin", "cached")
    write(root, ".env", "KEY=1\n").chmod(0o600)
    write(root, "run.log", "started\n")
    (root / "empty").mkdir()
    (root / "link").symlink_to("src/app.py")
    (root / "nowhere").symlink_to("/does/not/exist")
    git(root, "add", "-A")
    commit(root)
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    write(inner, "inside.txt", "inner\n")
    git(inner, "add", "-A")
    commit(inner)
    return root


class Editor:
    """Changes a tree at random, as an agent with a shell may. Never inside of a repository's own directory."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = os.fsencode(root)
        self._random = random.Random(seed)

    def edit(self, times: int) -> None:
        for _ in range(times):
            self._random.choice(
                (self._create, self._create, self._overwrite, self._overwrite, self._same_size, self._delete, self._rename,
                 self._chmod, self._link, self._directory, self._replace, self._hard_link)
            )()  # fmt: skip

    def _paths(self) -> list[bytes]:
        found = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if name != b".git"]
            found += [os.path.join(folder, name) for name in (*folders, *files) if name != b".git"]
        return sorted(found)

    def _pick(self, *, files: bool = False) -> bytes:
        paths = [path for path in self._paths() if not files or (os.path.isfile(path) and not os.path.islink(path))]
        return self._random.choice(paths) if paths else self._free()

    def _folder(self) -> bytes:
        folders = [path for path in self._paths() if os.path.isdir(path) and not os.path.islink(path)]
        return self._random.choice([self._root, *folders])

    def _free(self) -> bytes:
        path = os.path.join(self._folder(), self._random.choice(NAMES))
        return path if not os.path.lexists(path) else path + b"%d" % self._random.randrange(10**6)

    def _data(self) -> bytes:
        return self._random.choice((
            b"", b"text\n" * self._random.randrange(200), self._random.randbytes(self._random.randrange(5000)), b"a\r\nb\n",
        ))  # fmt: skip

    def _write(self, path: bytes, data: bytes, flags: int = os.O_TRUNC) -> None:
        if os.path.lexists(path):
            os.chmod(path, 0o644)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644), "wb") as file:
            file.write(data)

    def _create(self) -> None:
        path = self._free()
        self._write(path, self._data())
        os.chmod(path, self._random.choice(MODES))

    def _overwrite(self) -> None:
        self._write(self._pick(files=True), self._data(), self._random.choice((os.O_TRUNC, os.O_APPEND)))

    def _same_size(self) -> None:
        path = self._pick(files=True)
        if os.path.exists(path):
            self._write(path, self._random.randbytes(os.path.getsize(path)), 0)

    def _delete(self) -> None:
        path = self._pick()
        if b".git" in os.listdir(path) if os.path.isdir(path) and not os.path.islink(path) else False:
            return  # a repository is not brought back
        if os.path.isdir(path) and not os.path.islink(path):
            if not any(b".git" in folders for _, folders, _ in os.walk(path)):
                shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def _rename(self) -> None:
        old, new = self._pick(), self._free()
        holds_repository = any(b".git" in folders for _, folders, _ in os.walk(old))
        if os.path.lexists(old) and not new.startswith(old + b"/") and not holds_repository:
            os.rename(old, new)

    def _chmod(self) -> None:
        path = self._pick()
        if os.path.lexists(path) and not os.path.islink(path):
            os.chmod(path, self._random.choice((0o755, 0o700, 0o555) if os.path.isdir(path) else MODES))

    def _link(self) -> None:
        os.symlink(self._random.choice((b"/etc/hostname", b"..", b"nowhere", b"src")), self._free())

    def _directory(self) -> None:
        os.mkdir(self._free(), 0o755)

    def _replace(self) -> None:
        """A file, a link or a directory where another one of them was."""
        path = self._pick()
        if any(b".git" in folders for _, folders, _ in os.walk(path)):
            return
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
            self._random.choice((lambda: os.symlink(b"/tmp", path), lambda: self._write(path, b"was a directory")))()
        elif os.path.lexists(path):
            os.unlink(path)
            self._random.choice((lambda: os.symlink(b"x", path), lambda: os.mkdir(path)))()

    def _hard_link(self) -> None:
        path = self._pick(files=True)
        if os.path.exists(path):
            os.link(path, self._free())
