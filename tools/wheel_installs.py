"""Install the wheel as docs/start/install.md says, with uv, pipx and pip: use it, upgrade it, undo what it wrote, uninstall it.

`python tools/wheel_installs.py dist/antiphon-….whl`, part of `.ci/run`. The lines are those of the page, without the extras. Each tool has a home of its
own, in which nothing but the two directories that the page names may be left. Meanwhile every connection of the program is refused and
written down: there has to be none. A tool that is not here is fetched, with the usual index.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "start" / "install.md"
WHEEL: Final = re.compile(r"'?dist/antiphon-[\w.]+-py3-none-any\.whl(\[all\])?'?")
LEFT: Final = (".config/antiphon", ".local/state/antiphon")
"""What the page says is left."""
LIMIT: Final = 600

WATCH: Final = """\
import os, sys
def refuse(event, arguments):
    if "CONNECTIONS" in os.environ and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        address = arguments[1] if event != "socket.getaddrinfo" else arguments[0]
        if isinstance(address, tuple) or (event == "socket.getaddrinfo" and address):
            with open(os.environ["CONNECTIONS"], "a", encoding="utf-8") as file:
                file.write(f"{sys.argv}: {event} {address}\\n")
            raise OSError("refused by the test")
sys.addaudithook(refuse)
"""
"""A module that the Python of the installed program imports when it starts. Not by `PYTHONPATH`: programs that pipx installs ignore it."""

USED: Final = (
    ("antiphon", "--version"), ("antiphon", "run", "hello"), ("antiphon", "run", "--json", "/plan"), ("antiphon", "agents"), ("antiphon", "doctor"),
    ("antiphon", "sessions"), ("antiphon", "policy", "list"), ("antiphon", "check", "--only", "handshake", "demo"), ("antiphon", "setup", "zed", "--yes"),
)  # fmt: skip


class Installer:
    """One tool, with a home and a PATH of its own."""

    def __init__(self, name: str, folder: Path, wheel: Path) -> None:
        self.name, self.home, self.wheel = name, folder / name, wheel
        self.home.mkdir()
        self.connections = folder / f"{name}-connections"
        programs = [str(folder / "venv" / "bin"), str(self.home / ".local" / "bin")]
        kept = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_", "HTTP"))}
        self.env = {
            **kept, "HOME": str(self.home), "PATH": os.pathsep.join([*programs, os.environ["PATH"]]), "LANG": "C.UTF-8",
            "UV_CACHE_DIR": str(folder / "cache"), "PIPX_HOME": str(self.home / ".local/pipx"), "PIP_CACHE_DIR": str(folder / "pip"),
        }  # fmt: skip

    def run(self, *words: str, watched: bool = True, may_fail: bool = False) -> str:
        """Run a command and return what it printed; in watched ones no connection is possible."""
        more = {"CONNECTIONS": str(self.connections)} if watched else {}
        done = subprocess.run(
            words, env=self.env | more, cwd=self.home, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        if done.returncode and not may_fail:
            raise SystemExit(
                f"error: {self.name}: `{' '.join(words)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout + done.stderr

    def watch(self) -> None:
        """Have the Python of the installed program refuse connections."""
        script = shutil.which("antiphon", path=self.env["PATH"])
        python = Path(script or "").resolve().read_text(encoding="utf-8").splitlines()[0].removeprefix("#!").split()[0]
        where = self.run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", watched=False).strip()
        (Path(where) / "refuse_connections.py").write_text(WATCH, encoding="utf-8")
        (Path(where) / "refuse_connections.pth").write_text("import refuse_connections\n", encoding="utf-8")

    def lines(self, verb: str) -> list[list[str]]:
        """Return the lines of the page for this tool that do this."""
        found = re.findall(rf"^({self.name} .*(?<!\S){verb}(?!\S).*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        if not found:
            raise SystemExit(f"error: {PAGE} has no line for `{self.name} … {verb}`")
        return [WHEEL.sub(str(self.wheel), line.partition("  #")[0]).split() for line in found]

    def left(self) -> list[str]:
        """Return the files in the home that the page does not name, without what the tools keep for themselves."""
        names = (path.relative_to(self.home).as_posix() for path in self.home.rglob("*") if path.is_file())
        own = (
            ".local/share/uv",
            ".local/pipx",
            ".local/share/pipx",
            ".local/state/pipx",
            ".cache",
            ".config/pipx",
            ".config/uv",
            ".rustup",
        )
        return [name for name in names if not name.startswith((*LEFT, *own))]


def check(installer: Installer, install: str, upgrade: str, uninstall: str) -> None:
    """Install, use, upgrade, undo, uninstall."""
    for words in installer.lines(install):
        installer.run(*words, watched=False)
    installer.watch()
    for used in USED:
        installer.run(*used, may_fail=used[1] == "doctor")  # no engine is installed: that is a problem for it
    for words in installer.lines(upgrade):
        installer.run(*words, watched=False)
    installer.watch()
    installer.run("antiphon", "setup", "--undo", "--yes")
    installer.run("antiphon", "serve", "unit", "--undo")
    if installer.connections.exists():
        raise SystemExit(
            f"error: {installer.name}: connections were tried:\n{installer.connections.read_text(encoding='utf-8')}"
        )
    installer.env |= {"CLAUDE_CODE_EXECUTABLE": shutil.which("true") or "", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    installer.run("antiphon", "doctor", "--network", "claude", may_fail=True)
    if not installer.connections.exists():
        raise SystemExit("error: a connection of `antiphon doctor --network` was not seen, so this test sees none")
    for words in installer.lines(uninstall):
        installer.run(*words, *(["--yes"] if installer.name == "pip" else []), watched=False)
    if shutil.which("antiphon", path=installer.env["PATH"].partition(os.pathsep + os.environ["PATH"])[0]):
        raise SystemExit(f"error: {installer.name}: `antiphon` is still there")
    if left := installer.left():
        raise SystemExit(f"error: {installer.name}: left behind: {', '.join(left[:20])}")
    sys.stdout.write(f"{installer.name}: installed, used without a connection, upgraded, undone, uninstalled\n")


def main(wheel: Path) -> None:
    """Check each tool."""
    with tempfile.TemporaryDirectory(prefix="antiphon-installs-") as directory:
        folder = Path(directory)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        pip = [str(folder / "venv" / "bin" / "pip"), "--disable-pip-version-check"]
        if shutil.which("uv"):
            uv = Installer("uv", folder, wheel)
            [once] = re.findall(r"^\$ (uvx .+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
            if "I am a demo" not in uv.run(*WHEEL.sub(str(wheel), once).split(), watched=False):
                raise SystemExit("error: uvx: the demo did not answer")
            sys.stdout.write("uvx: used without installing\n")
            check(uv, "install", "upgrade", "uninstall")
        subprocess.run([*pip, "install", "--quiet", "--quiet", "pipx"], check=True)
        check(Installer("pipx", folder, wheel), "install", "upgrade", "uninstall")
        check(Installer("pip", folder, wheel), "install", "--upgrade", "uninstall")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
