"""The clients of others that are checked: how each is started, and what else it can be made to do."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from antiphon.conformance.client_process import ClientCommands
from tests.conformance.peers.subjects import EXAMPLES, example_version
from tests.interop.environment import environment
from tests.interop.programs import MODULES, NEXT_PYTHON, NODE, all_programs

NPX = '#!/bin/sh\nexec "$ANTIPHON_CHECKED_WITH"\n'
"""The example of the TypeScript SDK starts its agent with `npx tsx`, whichever it is: this starts ours instead."""


class Client(NamedTuple):
    """One of them. `words` make it send a prompt, `more` are commands for other purposes, `typed` is what a user types."""

    title: str
    words: list[str]
    missing: str = ""
    more: str = ""
    typed: str = ""


@contextmanager
def placed(client: Client, path: Path) -> Iterator[ClientCommands]:
    """Its commands, with a home of its own."""
    if client.missing:
        pytest.skip(client.missing)
    with environment(path) as on:
        shims = path / "shims"
        shims.mkdir()
        (shims / "npx").write_text(NPX, encoding="utf-8")
        (shims / "npx").chmod(0o755)
        on.environment["PATH"] = f"{shims}:{on.environment['PATH']}"
        typed = f"[stdin]\nprompt = {json.dumps(client.typed)}\n" if client.typed else ""
        commands = path / "commands.toml"
        commands.write_text(client.more + typed, encoding="utf-8")
        yield ClientCommands.of(client.words, commands, on.environment)


def clients() -> dict[str, Client]:
    """By name."""
    who = all_programs()
    acpx = ["env", "HOME={cwd}", "ACPX_AUTH_ANTIPHON_CHECK=x", "ACPX_AUTH_TOMORROW=x", *who["acpx"].client]
    acpx += ["--agent", "{agent}", "--cwd", "{cwd}", "--approve-all", "exec", "hello"]
    more = f'cancel = {json.dumps(shlex.join(acpx))}\n[signal]\ncancel = "INT"\n'
    found = {"acpx": Client(f"acpx {who['acpx'].version}", acpx, who["acpx"].missing, more)}
    for name, python in (("python", sys.executable), ("python-next", str(NEXT_PYTHON))):
        version = who[name].version
        example = EXAMPLES / f"agent_client_protocol-{version}" / "examples" / "client.py"
        missing = who[name].missing or (
            "" if example.exists() else "the examples of the Python SDK could not be fetched"
        )
        words = [python, str(example), "{agent}"]
        found[name] = Client(f"{who[name].title} example", words, missing, typed="hello\n")
    example = MODULES / "acp-sdk-with-examples" / "dist" / "examples" / "client.js"
    missing = "" if example.exists() else "npm could not install the peers of tests/interop"
    words = ["env", "ANTIPHON_CHECKED_WITH={agent}", str(NODE), str(example)]
    found["typescript"] = Client(f"TypeScript SDK {example_version()} example", words, missing, typed="1\n" * 5)
    ours = [sys.executable, "-m", "antiphon", "run", "--agent", "{agent}", "--on-ask", "allow", "hello"]
    return {"antiphon": Client("antiphon run", ours), **found}
