"""Run every command where nothing but the core is installed: each one works, or names the extra to install.

`python tools/core_only.py`, with the Python of such an environment; `.ci/run` does it with the wheel.
"""

import os
import pty
import subprocess
import sys
import tempfile
from importlib.util import find_spec

from antiphon.cli.completion import tree
from antiphon.cli.main import COMMANDS

EXTRAS = (
    "claude_agent_sdk",
    "codex_cli_bin",
    "cryptography",
    "httpx",
    "hypercorn",
    "prometheus_client",
    "prompt_toolkit",
    "rich",
    "tree_sitter",
    "tree_sitter_bash",
    "uvicorn",
    "websockets",
)
LIMIT = 120

WORKS = (
    ("run", "--agent", "demo", "hello"), ("run", "--agent", "demo", "--json", "hello"), ("run", "--agent", "demo", "--allow", "Read(*)", "hello"),
    ("agents",), ("agents", "check", "demo"), ("sessions",), ("policy", "list"), ("policy", "explain", "Bash", "ls"), ("doctor", "install"),
    ("agent",), ("agent", "--engine", "demo"), ("setup",), ("check", "--only", "handshake", "demo"), ("check-client", "--list"),
    ("record", "-q", "-o", "tape.jsonl", "--", sys.executable, "-m", "antiphon", "agent", "--engine", "demo"), ("completion", "zsh"),
)  # fmt: skip
NAMES_AN_EXTRA = {
    ("chat", "demo"): "antiphon[chat]",
    ("run", "--agent", "demo", "--allow", "Bash(ls *)", "hello"): "antiphon[policy]",
    ("run", "--agent", "ws://127.0.0.1:9/acp", "hello"): "antiphon[serve]",
    ("bridge", "--listen", "0", "--", "antiphon", "agent", "--engine", "demo"): "antiphon[serve]",
    ("bridge", "--connect", "https://127.0.0.1:9/acp"): "antiphon[serve]",
    ("serve", "--port", "0", "--", "cat"): "antiphon[serve]",
    ("run", "--agent", "claude", "hello"): "antiphon[claude]",
    ("run", "--agent", "codex", "hello"): "antiphon[codex]",
}


def main() -> int:
    """Return how many commands did neither."""
    there = [name for name in EXTRAS if find_spec(name) is not None]
    if there:
        sys.stderr.write(f"this is not the core alone: {', '.join(there)}\n")
        return 1
    helps = [(*node.path[1:], "--help") for node in tree(COMMANDS).walk()]
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": "/usr/bin:/bin", "TERM": "xterm"}
        for words in (*helps, *WORKS):
            done = subprocess.run(
                [sys.executable, "-m", "antiphon", *words],
                cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False, timeout=LIMIT,
            )  # fmt: skip
            if done.returncode != 0:
                wrong += 1
                sys.stderr.write(f"antiphon {' '.join(words)} ended with {done.returncode}:\n{done.stderr}\n")
        for words, extra in NAMES_AN_EXTRA.items():
            said = in_terminal(words, home, env)
            if f"pip install '{extra}'" not in " ".join(said.split()):
                wrong += 1
                sys.stderr.write(f"antiphon {' '.join(words)} does not name {extra}:\n{said}\n")
    sys.stderr.write(
        f"{len(helps) + len(WORKS) + len(NAMES_AN_EXTRA)} commands with nothing but the core, {wrong} wrong\n"
    )
    return min(wrong, 1)


def in_terminal(words: tuple[str, ...], cwd: str, env: dict[str, str]) -> str:
    """Return what a command writes in a terminal: a chat looks for one before anything else."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "antiphon", *words], cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )  # fmt: skip
    os.close(theirs)
    said = bytearray()
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # it has ended, and no other process has the terminal
        pass
    finally:
        os.close(ours)
    program.wait(timeout=LIMIT)
    return said.decode(errors="replace")


if __name__ == "__main__":
    raise SystemExit(main())
