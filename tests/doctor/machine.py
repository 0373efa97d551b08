"""`antiphon doctor` as a user types it, in a world of its own: nothing of this machine is on its PATH or in its home."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import prepared
from tests.cli.program import ROOT, Done
from tests.limits import limit

CLAUDE = """\
#!/bin/sh
case "$*" in
"--version") echo "2.1.325 (Claude Code)" ;;
"auth status --json") echo '{"loggedIn": true, "authMethod": "claude.ai", "apiProvider": "firstParty", "email": "ada@example.org"}' ;;
*) exit 9 ;;
esac
"""
"""A Claude Code with a login."""

CODEX = """\
#!/bin/sh
case "$*" in
"--version") echo "codex-cli 0.163.0" ;;
"login status") echo "Logged in using ChatGPT" ;;
*) exit 9 ;;
esac
"""
"""A Codex with a login."""


class Machine:
    """A home, a PATH, a directory to work in; both programs are there, and well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.flags: tuple[str, ...] = ()
        self.home, self.bin, self.work = path / "home", path / "bin", path / "work"
        for folder in (self.home, self.bin, self.work):
            folder.mkdir()
        self.env = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if found := os.environ.get("PYTHONPATH"):
            self.env["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, found.split(os.pathsep)))
        self.program("claude", CLAUDE)
        self.program("codex", CODEX)
        ours = Path(sys.prefix, "bin", "antiphon")
        if ours.exists():
            (self.bin / "antiphon").symlink_to(ours)
        else:
            self.program("antiphon", "#!/bin/sh\n")

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "antiphon"

    def program(self, name: str, text: str) -> Path:
        """Put a program on the PATH."""
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def configure(self, text: str) -> Path:
        """The user's config file."""
        return self.write(self.home / ".config" / "antiphon" / "config.toml", text)

    def project(self, text: str) -> Path:
        """The project's config file."""
        return self.write(self.work / ".antiphon" / "config.toml", text)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def words(self, *words: str) -> list[str]:
        return [sys.executable, *self.flags, "-m", "antiphon", "doctor", *words]

    def bare(self) -> None:
        """From now on in a Python that has what we cannot do without, and nothing else; and without programs."""
        import msgspec

        lean = self.path / "lean"
        lean.mkdir()
        (lean / "msgspec").symlink_to(Path(msgspec.__file__).parent)
        self.env["PYTHONPATH"] = f"{ROOT / 'src'}:{lean}"
        self.flags = ("-S",)
        for name in ("claude", "codex"):
            (self.bin / name).unlink()

    def visit(self, *words: str, **env: str) -> Done:
        """Go there; the output and the status."""
        environment = {**self.env, **env}
        if self.flags or any(name.startswith("PYTHON") for name in env):
            done = subprocess.run(
                self.words(*words),
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit(),
            )
        else:
            done = prepared.run("doctor", *words, cwd=self.work, env=environment, timeout=limit())
        found = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in found.err, found.err
        return found

    def report(self, *words: str, **env: str) -> "Report":
        """The same as data."""
        done = self.visit("--json", *words, **env)
        assert done.err == ""
        report = Report(json.loads(done.out))
        assert done.status == (1 if report.data["status"] == "problem" else 0)
        return report


class Report:
    """What was reported, by the ids of the checks."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def ids(self) -> list[str]:
        return [each["id"] for each in self.data["checks"]]

    @property
    def problems(self) -> list[str]:
        return [each["id"] for each in self.data["checks"] if each["status"] == "problem"]

    def all(self, id: str) -> list[dict[str, Any]]:
        return [each for each in self.data["checks"] if each["id"] == id]

    def __getitem__(self, id: str) -> dict[str, Any]:
        (each,) = self.all(id)
        return each

    def says(self, id: str) -> tuple[str, str]:
        """The status and the sentence of a check."""
        return self[id]["status"], self[id]["sentence"]
