"""Run lines by a real bash whose PATH has nothing but stubs that note their names and arguments."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.policy.corpus import PROGRAMS

NAMES = [
    *PROGRAMS, "env", "sudo", "nohup", "xargs", "sh", "bash", "tar", "rg", "sort", "deploy.sh", "time", "watch", "su", "busybox",
    "timeout", "grep", "nice", "me", "bin",
]  # fmt: skip
LIMIT = 10
BASH = shutil.which("bash")


class Bench:
    """A place to run lines in: `bin` with the stubs, and for every line a folder of its own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.bin = base / "bin"
        self.bin.mkdir()
        for name in NAMES:
            stub = self.bin / name
            # One file per process: commands of a pipeline run at the same time. The name is there even if it is killed at once.
            stub.write_text(
                '#!/bin/sh\nprintf \'%s\\0\' "${0##*/}" "$@" > "${0%/bin/*}/log/${PWD##*/}.$$.${0##*/}"\n',
                encoding="utf-8",
            )
            stub.chmod(0o755)
        (base / "log").mkdir()
        (base / "home").mkdir()

    def run_all(self, lines: Iterable[str]) -> list[tuple[str, list[tuple[str, ...]], list[str]]]:
        """For every line: the line, what was started, and the files it left."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(self._run, enumerate(lines)))

    def _run(self, numbered: tuple[int, str]) -> tuple[str, list[tuple[str, ...]], list[str]]:
        number, line = numbered
        directory = self.base / f"line-{number}"
        directory.mkdir()
        (directory / "x").write_text("canary", encoding="utf-8")
        self._bash(line, directory)
        started = [
            (log.name.split(".", 2)[2], *log.read_bytes().decode(errors="surrogateescape").split("\0")[1:-1])
            for log in sorted((self.base / "log").glob(f"{directory.name}.*"))
        ]
        left = sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))
        if (directory / "x").exists() and (directory / "x").read_text(encoding="utf-8") != "canary":
            left.append("x was written to")
        return line, started, left

    def _bash(self, line: str, directory: Path) -> None:
        assert BASH is not None
        process = subprocess.Popen(
            [BASH, "--norc", "--noprofile", "-c", line],
            cwd=directory,
            env={"PATH": str(self.bin), "HOME": str(self.base / "home")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(LIMIT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
