"""The agents of others that our client is tried with, at which version, and how each is started with a home of its own.

Both use the model of `tests.thirdparty.model`, need no account, and send no telemetry.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NODE = Path(sys.executable).with_name("node")
KIMI = HERE / "node_modules" / "@moonshot-ai" / "kimi-code" / "dist" / "main.mjs"
BINARIES = HERE / "node_modules" / ".bin"
BRIDGE = (sys.executable, "-P", "-m", "antiphon", "bridge", "--")
"""Before the command of an agent of the other version."""
FAST_AGENT = ROOT / ".venv-fast-agent" / "bin" / "fast-agent-acp"

KIMI_CONFIG = """\
default_model = "fake"
telemetry = false

[models.fake]
provider = "loopback"
model = "fake-model"
max_context_size = 100000

[providers.loopback]
type = "openai"
base_url = "{address}"
api_key = "no key"
"""


class Tools(NamedTuple):
    """What an agent calls its tools, and where it starts its commands."""

    read: str
    write: str
    run: str


class Agent(NamedTuple):
    """One of them. `missing` is empty where it is installed."""

    name: str
    version: str
    command: tuple[str, ...]
    tools: Tools
    missing: str = ""

    def environment(self, home: Path, address: str) -> dict[str, str]:
        """Write its settings into the home; what its environment needs."""
        if self.name == "kimi-code":
            folder = home / ".kimi-code"
            folder.mkdir()
            (folder / "config.toml").write_text(KIMI_CONFIG.format(address=address), encoding="utf-8")
            return {"KIMI_DISABLE_TELEMETRY": "1"}
        return {"GENERIC_BASE_URL": address, "GENERIC_API_KEY": "no key", "OTEL_SDK_DISABLED": "true"}


@cache
def agents() -> dict[str, Agent]:
    """By name."""
    npm: dict[str, str] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    lock = (ROOT / "requirements" / "peers-fast-agent.txt").read_text(encoding="utf-8")
    found = re.search(r"^fast-agent-mcp==(\S+)", lock, re.MULTILINE)
    assert found
    kimi = Agent(
        "kimi-code",
        npm["@moonshot-ai/kimi-code"],
        (str(NODE), str(KIMI), "acp"),
        Tools("Read", "Write", "Bash"),
        "" if KIMI.exists() else "is not installed: npm could not install the agents of tests/thirdparty",
    )
    fast = Agent(
        "fast-agent",
        found[1],
        (str(FAST_AGENT), "--model", "generic.fake-model", "--shell"),
        Tools("read_text_file", "write_text_file", "execute"),
        "" if FAST_AGENT.exists() else "is not installed: it needs Python 3.13, and PyPI",
    )
    return {each.name: each for each in (kimi, fast)}
