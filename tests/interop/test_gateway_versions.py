"""Version 2 through the gateway: the client of the official TypeScript SDK with agents of both versions, and its agent with our client."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

import antiphon
from antiphon import v1
from antiphon.client.handlers import allow_once
from tests.interop.environment import Environment, environment
from tests.interop.programs import all_programs
from tests.interop.test_network import running
from tests.interop.test_versions import AGENTS, OURS, need, played, steps_of
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.prove]

BEHIND: Final = {
    "demo": OURS,
    "version 1": all_programs()["typescript"].agent,
    "version 2": AGENTS["typescript"],
}


@contextmanager
def gateway_of(on: Environment, agent: tuple[str, ...]) -> Iterator[str]:
    """The address of `antiphon serve` with an agent behind it, without the scheme."""
    options = ["--json", "--port", "0", "--no-auth", "--root", str(on.folder)]
    with running(on, [sys.executable, "-m", "antiphon", "serve", *options, "--", *agent]) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"].removeprefix("http:") + "/acp"


@pytest.mark.parametrize(
    ("agent", "way"),
    [("demo", "ws"), ("demo", "http"), ("demo", "command"), ("version 1", "ws"), ("version 2", "http")],
)
def test_a_client_of_version_2_uses_agents_behind_the_gateway(tmp_path: Path, agent: str, way: str) -> None:
    need("typescript")
    with environment(tmp_path) as on, gateway_of(on, tuple(BEHIND[agent])) as address:
        connect = (sys.executable, "-m", "antiphon", "agent", "--connect", f"ws:{address}")
        seen = steps_of(on, "typescript", *(connect if way == "command" else (f"{way}:{address}",)))
    assert seen["initialize"]["version"] == 2
    assert seen["prompt"]["own"] and seen["prompt"]["states"][-1] == "end_turn"
    assert seen["held"] == {"different": 2, "last": "end_turn"}
    assert seen["cancel"]["states"][-1] == "cancelled"
    assert seen["resume"]["state"] == "idle" and seen["resume"]["users"] and seen["resume"]["said"]
    assert seen["list"] == {"listed": True} and seen["unknown"] == {"code": -32602}


async def test_a_client_of_version_1_uses_an_agent_of_version_2_behind_the_gateway(tmp_path: Path) -> None:
    need("typescript")
    with environment(tmp_path) as on, gateway_of(on, AGENTS["typescript"]) as address:
        async with (
            asyncio.timeout(limit()),
            antiphon.connect(f"ws:{address}", permission=allow_once, versions=(1,)) as agent,
        ):
            session = await agent.new_session(on.folder)
            assert await played(session, "hello") == ("you said hello", v1.StopReason.END_TURN)
            assert await played(session, "/tool") == ("written", v1.StopReason.END_TURN)
            with pytest.raises(antiphon.RequestRefused, match="out of ink"):
                await session.prompt("/fail")
            await session.set_mode("go")
