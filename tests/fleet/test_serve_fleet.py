"""`antiphon serve --fleet` as people start it: real gateways, workers and a real `nats-server`, clients over sockets."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import ConnectionClosed
from antiphon.transports.remote import RemoteAddress
from tests.fleet.test_worker_program import RealFleet, WorkerProcess, end, real_fleet
from tests.gateway.peers import RawClient
from tests.gateway.test_attachments import numbers
from tests.gateway.test_moves import events
from tests.gateway.test_turns import attach
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow

SDK_CLIENT = Path(__file__).parents[1] / "interop" / "peers" / "remote_client.py"


class GatewayProcess:
    """One that runs."""

    def __init__(self, process: asyncio.subprocess.Process, about: dict[str, Any]) -> None:
        self.process = process
        self.about = about

    @property
    def url(self) -> str:
        return str(self.about["url"])

    @property
    def token(self) -> str:
        return Path(self.about["token_file"]).read_text(encoding="utf-8").strip()


class ServedFleet:
    """Workers and gateways."""

    def __init__(self, fleet: RealFleet) -> None:
        self.fleet = fleet
        self.root = fleet.directory / "code"

    async def gateway(self, name: str, *more: str) -> GatewayProcess:
        """Start a gateway, and wait until it can be reached."""
        env = {**os.environ, "ANTIPHON_STATE_DIR": str(self.fleet.directory / "state")}
        data = str(self.fleet.directory / f"data-{name}")
        words = ("serve", "--fleet", self.fleet.server.url, "--port", "0", "--data", data, "--json", *more)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "antiphon", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
        )
        self.fleet._stack.push_async_callback(end, process)
        assert process.stdout is not None and process.stderr is not None
        line = await process.stdout.readline()
        assert line, (await process.stderr.read()).decode()
        return GatewayProcess(process, json.loads(line))

    async def client(self, gateway: GatewayProcess, scheme: str = "ws", *, numbers: bool = True) -> RawClient:
        """Connect a client over a WebSocket or over HTTP."""
        url = f"{gateway.url.replace('http', scheme, 1)}/acp"
        transport = await RemoteAddress(url, token=gateway.token, plaintext=True).open()
        client = Routed(transport) if transport.routed else RawClient(None, transport=transport)
        self.fleet._stack.push_async_callback(transport.close)
        await client.initialize(numbers=numbers)
        return client


class Routed(RawClient):
    """A client over a transport that is given the way of each frame."""

    def __init__(self, transport: Any) -> None:
        super().__init__(None, transport=transport)

    def send(self, frame: bytes) -> None:
        from msgspec import UNSET

        message = json.loads(frame)
        session = (message.get("params") or {}).get("sessionId")
        self.transport.route(frame, session, UNSET if "method" in message else message["id"])


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[ServedFleet]:
    async with real_fleet(directory) as fleet:
        yield ServedFleet(fleet)


async def owner(here: ServedFleet, workers: list[WorkerProcess]) -> WorkerProcess:
    """Return the worker that owns the one session."""
    name = await here.fleet.owner.find(await here.fleet.key())
    return next(each for each in workers if each.name == name)


@pytest.mark.parametrize("scheme", ["ws", pytest.param("http", marks=pytest.mark.prove)])
async def test_a_worker_that_is_killed_in_a_turn_costs_a_client_of_a_gateway_no_event(
    tmp_path: Path, scheme: str
) -> None:
    async with served(tmp_path) as here:
        workers = [await here.fleet.start(name) for name in ("one", "two")]
        client = await here.client(await here.gateway("gateway"), scheme)
        session = await client.new(here.root)
        asked = client.prompt(session, "/slow 1000")
        await until(lambda: len(client.texts) > 3)
        killed = await owner(here, workers)
        killed.signal(signal.SIGKILL)
        response = await client.response(asked)
        assert response["error"]["data"]["antiphon"] == {"interrupted": True}
        await until(lambda: events(client, "moved"))
        done = await client.response(client.prompt(session, "hello"))
        assert done["result"]["stopReason"] == "end_turn"
        stored = await here.fleet.stored(await here.fleet.key())
        assert numbers(client) == [*range(1, len(stored) + 1)]


@pytest.mark.prove
async def test_a_gateway_that_is_killed_costs_its_client_no_event(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.start("one")
        first, second = await here.gateway("first"), await here.gateway("second")
        client = await here.client(first)
        session = await client.new(here.root)
        client.prompt(session, "/slow 40")
        await until(lambda: len(client.texts) > 3)
        first.process.kill()
        await until(lambda: client.is_lost)
        again = await here.client(second)
        await attach(again, session, numbers(client)[-1])
        await until(lambda: events(again, "turn_ended"))
        assert "interrupted" not in events(again, "turn_ended")[0]
        stored = await here.fleet.stored(await here.fleet.key())
        assert numbers(client) + numbers(again) == [*range(1, len(stored) + 1)]


async def test_a_broker_that_is_started_again_costs_a_client_no_event(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.start("one")
        client = await here.client(await here.gateway("gateway"))
        session = await client.new(here.root)
        asked = client.prompt(session, "/slow 60")
        await until(lambda: len(client.texts) > 3)
        key = await here.fleet.key()
        here.fleet.server.kill()
        here.fleet.server.restart()
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        await until(lambda: here.fleet.broker.is_connected)
        stored = await here.fleet.stored(key)
        await until(lambda: numbers(client)[-1:] == [len(stored)])
        assert numbers(client) == [*range(1, len(stored) + 1)]
        assert not client.is_lost


@pytest.mark.prove
@pytest.mark.parametrize("scheme", ["ws", "http"])
@pytest.mark.parametrize("purpose", ["prompt", "cancel"])
async def test_the_official_client_works_with_a_fleet(tmp_path: Path, scheme: str, purpose: str) -> None:
    async with served(tmp_path) as here:
        await here.fleet.start("one")
        gateway = await here.gateway("gateway")
        url = f"{gateway.url.replace('http', scheme, 1)}/acp"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(SDK_CLIENT), url, gateway.token, purpose),
            cwd=here.root,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(limit()):
            _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        stored = await here.fleet.stored(await here.fleet.key())
        assert any(event.startswith(b"E") for event in stored), stored


async def test_a_gateway_that_gets_a_signal_to_end_ends_at_once_and_turns_go_on(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.start("one")
        gateway = await here.gateway("gateway")
        client = await here.client(gateway)
        session = await client.new(here.root)
        client.prompt(session, "/slow 40")
        await until(lambda: len(client.texts) > 3)
        gateway.process.terminate()
        assert await gateway.process.wait() == 0
        assert gateway.process.stderr is not None
        assert b"waiting" not in await gateway.process.stderr.read()
        again = await here.client(await here.gateway("gateway"))  # in the same directory
        await attach(again, session, numbers(client)[-1])
        await until(lambda: events(again, "turn_ended"))
        assert "interrupted" not in events(again, "turn_ended")[0]


async def asked_again(here: ServedFleet, url: str, token: str) -> RawClient:
    """Connect until the agent is there."""
    while True:
        transport = await RemoteAddress(url, token=token, plaintext=True).open()
        client = RawClient(None, transport=transport)
        here.fleet._stack.push_async_callback(transport.close)
        asked = client.begin("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        if "result" in await client.response(asked):
            return client


async def test_a_gateway_without_workers_starts_and_finds_those_that_come(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        gateway = await here.gateway("gateway")
        assert gateway.about["agents"] == [] and gateway.about["default"] == ""
        url = f"{gateway.url.replace('http', 'ws', 1)}/acp"
        transport = await RemoteAddress(url, token=gateway.token, plaintext=True).open()
        client = RawClient(None, transport=transport)
        here.fleet._stack.push_async_callback(transport.close)
        error = await client.refused("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert error["data"]["hint"]
        await here.fleet.start("one")
        page = await asked_again(here, url, gateway.token)
        found = await page.request("_antiphon/gateway/info", {})
        assert [each["name"] for each in found["agents"]] == ["demo"]
        assert await page.new(here.root)
        named = await asked_again(here, url.replace("/acp", "/agents/demo/acp"), gateway.token)
        assert len((await named.request("session/list", {}))["sessions"]) == 1
        with pytest.raises(ConnectionClosed):
            await RemoteAddress(url.replace("/acp", "/agents/other/acp"), token=gateway.token, plaintext=True).open()


async def control(here: ServedFleet, data: str, *words: str) -> tuple[int, str, str]:
    """Run a subcommand of `antiphon serve` with the data of a gateway; return its status and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "antiphon", "serve", *words, "--data", str(here.fleet.directory / data)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "ANTIPHON_STATE_DIR": str(here.fleet.directory / "state")},
    )
    out, errors = await process.communicate()
    return process.returncode or 0, out.decode().strip(), errors.decode()


@pytest.mark.prove
async def test_tokens_of_a_fleet_are_made_and_listed_while_no_gateway_runs(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        first = await here.gateway("first")
        first.process.terminate()
        await first.process.wait()
        status, _, errors = await control(here, "data-first", "tokens")
        assert status != 0 and "--fleet URL" in errors and "one of a fleet" in errors
        at = ("--fleet", here.fleet.server.url)
        status, secret, errors = await control(here, "data-first", *at, "tokens", "--create", "phone")
        assert status == 0, errors
        listed = (await control(here, "data-of-an-admin", *at, "tokens"))[1]  # on a machine that never had a gateway
        assert "phone" in listed
        second = await here.gateway("second")
        url = f"{second.url.replace('http', 'ws', 1)}/acp"
        transport = await RemoteAddress(url, token=secret, plaintext=True).open()
        await transport.close()
        number = next(line.split()[0] for line in listed.splitlines() if "phone" in line)
        second.process.terminate()
        await second.process.wait()
        assert "revoked" in (await control(here, "data-second", *at, "tokens", "--revoke", number))[1]
        assert "phone" not in (await control(here, "data-first", *at, "tokens"))[1]
