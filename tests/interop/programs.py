"""Who takes part, at which version, and how each is started. A peer that is not installed says why it is missing."""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = HERE / "peers"
MODULES = HERE / "node_modules"
NODE = Path(sys.executable).with_name("node")
COMPILED = {"NODE_COMPILE_CACHE": str(MODULES / ".compiled")}
"""Lets Node keep what it has compiled: a large program then takes a fifth less to start."""
NEXT_PYTHON = ROOT / ".venv-peers" / "bin" / "python"


class PeerProgram(NamedTuple):
    """One side's kind. `missing` is empty where it is installed."""

    name: str
    version: str
    client: tuple[str, ...]
    agent: tuple[str, ...]
    missing: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()


def _locked(lock: str, name: str) -> str:
    """The version that an environment is made with, whether it could be made or not."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(name)}==(\S+)", text, re.MULTILINE)
    assert found, f"{lock} has no {name}"
    return found[1]


def _python(python: str, program: str) -> tuple[str, ...]:
    return (python, str(PROGRAMS / f"python_{program}.py"))


def _node(*program: str) -> tuple[str, ...]:
    return (str(NODE), str(HERE.joinpath(*program)))


@cache
def all_programs() -> dict[str, PeerProgram]:
    """By the short names that the tests use."""
    this, following = sys.executable, str(NEXT_PYTHON)
    npm: dict[str, str] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    no_next = "" if NEXT_PYTHON.exists() else "is not installed: make could not install requirements/peers.txt"
    no_npm = "is not installed: npm could not install the peers of tests/interop"
    return {
        "antiphon": PeerProgram(
            "Antiphon",
            "",
            (this, str(HERE / "our_client.py")),
            (this, "-m", "antiphon", "agent", "--engine", "demo"),
        ),
        "python": PeerProgram(
            "Python SDK",
            _locked("dev.txt", "agent-client-protocol"),
            _python(this, "client"),
            _python(this, "agent"),
        ),
        "python-next": PeerProgram(
            "Python SDK",
            _locked("peers.txt", "agent-client-protocol"),
            _python(following, "client"),
            _python(following, "agent"),
            no_next,
        ),
        "typescript": PeerProgram(
            "TypeScript SDK",
            npm["@agentclientprotocol/sdk"],
            _node("peers", "typescript_client.mjs"),
            _node("peers", "typescript_agent.mjs"),
            "" if (MODULES / "@agentclientprotocol" / "sdk").exists() else no_npm,
        ),
        "acpx": PeerProgram(
            "acpx",
            npm["acpx"],
            _node("node_modules", "acpx", "dist", "cli.js"),
            (),
            "" if (MODULES / "acpx").exists() else no_npm,
        ),
    }
