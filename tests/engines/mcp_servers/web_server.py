"""Starts the little MCP server, and says how it is reached."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from antiphon.protocol import v1

LITTLE = str(Path(__file__).with_name("little.py"))


def stdio_server(name: str = "little", **env: str) -> v1.StdioServer:
    """The server as a child of the program that is given its command."""
    return v1.StdioServer(name, sys.executable, [LITTLE, "stdio"], [v1.EnvVariable(*each) for each in env.items()])


@contextmanager
def serving(way: Literal["http", "sse"]) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    with subprocess.Popen([sys.executable, LITTLE, way], stdout=subprocess.PIPE, text=True, encoding="utf-8") as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().strip()
        finally:
            child.kill()
