"""`acpx`, a client that others wrote, driving an engine through its own commands. It prints the raw traffic."""

import asyncio
import json
import shlex
from typing import Any, TypeAlias

import pytest

from tests.engines.model.steps import wait_limit
from tests.engines.places import Ground
from tests.interop.programs import COMPILED, all_programs

__all__ = ["Acpx", "stop_of", "text_of", "updates_of"]

Message: TypeAlias = dict[str, Any]


class Acpx:
    """It, at a place."""

    def __init__(self, at: Ground) -> None:
        who = all_programs()["acpx"]
        if who.missing:
            pytest.skip(f"{who.name} {who.missing}")
        self.at = at
        self.command = [*who.client, "--agent", shlex.join(at.agent), "--cwd", str(at.folder), "--format", "json"]
        self.command += ["--auth-policy", "skip", "--non-interactive-permissions", "deny"]

    async def start(self, *words: str, permission: str = "--approve-all") -> asyncio.subprocess.Process:
        """Begin one of its commands."""
        return await asyncio.create_subprocess_exec(
            *self.command, permission, *words, cwd=self.at.folder, env=self.at.environment | COMPILED, limit=2**26,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def run(self, *words: str, permission: str = "--approve-all", status: int = 0) -> list[Message]:
        """One of its commands to its end: what it printed."""
        started = await self.start(*words, permission=permission)
        async with asyncio.timeout(wait_limit()):
            out, err = await started.communicate()
        assert started.returncode == status, f"{words}: {out[-2000:]!r}\n{err!r}"
        return [json.loads(line) for line in out.splitlines()]


def stop_of(messages: list[Message]) -> list[str]:
    """How the turns ended."""
    return [each["result"]["stopReason"] for each in messages if "stopReason" in (each.get("result") or {})]


def updates_of(messages: list[Message], kind: str) -> list[Message]:
    """The updates of one kind."""
    found = [each["params"]["update"] for each in messages if each.get("method") == "session/update"]
    return [each for each in found if each["sessionUpdate"] == kind]


def text_of(messages: list[Message], kind: str = "agent_message_chunk") -> str:
    """What was sent."""
    return "".join(each["content"]["text"] for each in updates_of(messages, kind))
