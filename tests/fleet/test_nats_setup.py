"""Connections to NATS that are made: streams, keys, certificates; and each reason why one cannot be made, in one sentence with a hint."""

import asyncio
import base64
import binascii
import json
import os
import random
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import nats
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from antiphon.errors import AcpError
from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.errors import BrokerFull, BrokerRefused, BrokerUnfit
from antiphon.fleet.nats import NatsBroker, connect_broker, server_link, streams
from antiphon.fleet.nats.keys import new_seed, public_key
from antiphon.fleet.nats.login import Login, ServerAddress, connect_options, read_address, tls_context
from antiphon.fleet.nats.server_link import ServerLink
from antiphon.fleet.nats.wire import WireMessage
from tests.fleet.servers import NatsServer, nats_cluster, nats_server
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path) as server:
        yield server


@asynccontextmanager
async def connected(url: str, **how: Any) -> AsyncIterator[NatsBroker]:
    """Make a connection for the length of a block."""
    broker = await connect_broker(url, name="test", **how)
    try:
        yield broker
    finally:
        await broker.close()


async def refusal(url: str, **how: Any) -> AcpError:
    """Return the error of a connection that cannot be made."""
    with pytest.raises(AcpError) as caught:
        await connect_broker(url, name="test", **how)
    assert "\n" not in caught.value.sentence and not caught.value.sentence.endswith(".") and caught.value.hint
    return caught.value


async def config_of(broker: NatsBroker, name: str = "ACP_SESSIONS") -> dict[str, Any]:
    answer = await broker._api(f"STREAM.INFO.{name}", {})
    config: dict[str, Any] = answer["config"]
    return config


# Streams.


async def test_streams_are_made_by_many_processes_at_once(server: NatsServer) -> None:
    brokers = await asyncio.gather(*(connect_broker(server.url, name=f"number-{at}") for at in range(8)))
    for name in ("ACP_SESSIONS", "ACP_ACCESS"):
        config = await config_of(brokers[0], name)
        assert config["num_replicas"] == 1 and config["storage"] == "file" and config["discard"] == "new"
        assert config["max_age"] == 0 and config["max_msgs_per_subject"] == -1
    numbers = await asyncio.gather(*(broker.append("acp.s.a.ev", b"") for broker in brokers))
    assert sorted(numbers) == list(range(1, 9))
    await asyncio.gather(*(broker.close() for broker in brokers))


async def test_streams_of_a_cluster_have_three_copies_and_are_made_while_it_starts(tmp_path: Path) -> None:
    with nats_cluster(tmp_path) as servers:
        brokers = await asyncio.gather(*(connect_broker(each.url, name=each.name) for each in servers))
        for broker in brokers:
            assert (await config_of(broker))["num_replicas"] == 3
            assert (await config_of(broker, "ACP_ACCESS"))["num_replicas"] == 3
        await asyncio.gather(*(broker.close() for broker in brokers))


async def test_a_stream_that_differs_is_changed_and_keeps_the_limits_of_its_user(server: NatsServer) -> None:
    client = await nats.connect(server.url)
    theirs = {
        "name": "ACP_SESSIONS",
        "subjects": ["acp.s.>"],
        "storage": "file",
        "retention": "limits",
        "num_replicas": 1,
        "max_bytes": 1 << 30,
        "description": "ours",
    }
    await client.request("$JS.API.STREAM.CREATE.ACP_SESSIONS", json.dumps(theirs).encode(), timeout=limit())
    async with connected(server.url) as broker:
        config = await config_of(broker)
        assert config["max_bytes"] == 1 << 30 and config["description"] == "ours"
        assert config["allow_direct"] and config["allow_rollup_hdrs"] and config["allow_msg_ttl"]
        assert config["duplicate_window"] == 300 * 10**9 and config["republish"]["dest"] == "acp.live.>"
        found: list[int] = []
        broker.follow("acp.s.a.ev", lambda message: found.append(message.sequence))
        await broker.append("acp.s.a.ev", b"")
        await until(lambda: found == [1])
    await client.close()


async def test_a_stream_that_cannot_be_used_is_named(server: NatsServer) -> None:
    client = await nats.connect(server.url)
    theirs = {"name": "ACP_SESSIONS", "subjects": ["acp.s.>"], "storage": "memory"}
    await client.request("$JS.API.STREAM.CREATE.ACP_SESSIONS", json.dumps(theirs).encode(), timeout=limit())
    error = await refusal(server.url)
    assert isinstance(error, BrokerUnfit) and "ACP_SESSIONS" in error.sentence and "storage" in error.sentence
    await client.close()


async def test_a_client_of_others_reads_what_is_stored_and_the_other_way_around(server: NatsServer) -> None:
    client = await nats.connect(server.url)
    async with connected(server.url) as broker:
        live = await client.subscribe("acp.live.*.ev")
        asked = await client.subscribe("acp.open.them", cb=_echo)
        await client.request("$JS.API.INFO", timeout=limit())  # behind its subscriptions; its `flush` may overtake them
        number = await broker.append("acp.s.a.ev", "grüße\r\n".encode(), headers={"Antiphon-Run": "1"}, name="one")
        message = await live.next_msg(timeout=limit())
        assert message.data.decode() == "grüße\r\n"
        assert message.headers is not None and message.headers["Antiphon-Run"] == "1"
        stored = await client.jetstream().get_msg("ACP_SESSIONS", number)
        assert stored.data == message.data and stored.headers is not None and stored.headers["Nats-Msg-Id"] == "one"
        ack = await client.jetstream().publish("acp.s.a.ev", b"theirs", headers={"Theirs": "2"})
        found = await broker.read("acp.s.a.ev", after=number)
        assert [(each.sequence, each.data, each.headers) for each in found] == [(ack.seq, b"theirs", {"Theirs": "2"})]
        assert await broker.request("acp.open.them", b"?", limit()) == b"?!"
        await asked.unsubscribe()
    await client.close()


async def _echo(message: Any) -> None:
    await message.respond(message.data + b"!")


async def test_events_are_kept_as_long_as_the_retention_says_and_rows_for_ever(server: NatsServer) -> None:
    async with connected(server.url, retention=1.0) as broker:
        await broker.append("acp.s.a.ev", b"event")
        await broker.append("acp.s.a.row", b"row", replaces=True)
        await broker.append("acp.s.a.own", b"own")
        async with asyncio.timeout(limit()):
            while await broker.last("acp.s.a.ev") is not None:  # noqa: ASYNC110 the broker says nothing of it
                await asyncio.sleep(0.1)
        assert [message.data for message in await broker.read("acp.s.>")] == [b"row", b"own"]


# What can be wrong.


async def test_what_is_more_than_a_server_gives_at_once_is_all_read(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("READ_BYTES", "LASTS_BYTES"):
        monkeypatch.setattr(f"antiphon.fleet.nats.broker.{name}", 2_500)
    subjects = [f"acp.s.k{number}.row" for number in range(7)]
    async with connected(server.url) as broker:
        for subject in subjects:
            await broker.append(subject, bytes(1_000), expects=0)
        await broker.append("acp.s.k9.row", bytes(9_000), expects=0)
        found = await broker.lasts("acp.s.*.row")
        assert [message.subject for message in found] == [*subjects, "acp.s.k9.row"]
        page = await broker.read("acp.s.*.row")
        assert 0 < len(page) < len(found)


async def test_no_server_is_reported_at_once(server: NatsServer) -> None:
    server.kill()
    error = await refusal(server.url)
    assert isinstance(error, BrokerAway) and server.url in error.sentence and "nats-server" in error.hint
    server.restart()
    async with connected(f"nats://127.0.0.1:1, {server.url}") as broker:
        assert broker.is_connected, "one of several is enough"


async def test_a_server_that_is_too_old_is_refused() -> None:
    async with pretended(b'INFO {"server_id":"x","version":"2.9.10","headers":true,"jetstream":true}\r\n') as url:
        error = await refusal(url)
        assert isinstance(error, BrokerUnfit) and "2.9.10" in error.sentence and "2.12.0" in error.sentence


async def test_what_is_no_nats_server_is_refused() -> None:
    async with pretended(b"SSH-2.0-OpenSSH_9.2p1\r\n") as url:
        error = await refusal(url)
        assert isinstance(error, BrokerUnfit) and url in error.sentence
    async with pretended(b'INFO "a text"\r\n') as url:
        assert "of itself" in (await refusal_sentence(url))


async def refusal_sentence(url: str) -> str:
    with pytest.raises(AcpError) as caught:
        await connect_broker(url, name="test")
    return caught.value.sentence


async def test_a_server_that_is_silent_is_reported_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_link, "CONNECT_LIMIT", 0.2)
    async with pretended(b"") as url:
        error = await refusal(url)
        assert isinstance(error, BrokerAway) and "in time" in error.sentence


async def test_a_server_that_ends_the_connection_is_reported() -> None:
    async with pretended(b"", close=True) as url:
        assert isinstance(await refusal(url), BrokerAway)


@asynccontextmanager
async def pretended(greeting: bytes, *, close: bool = False) -> AsyncIterator[str]:
    """Serve something that is no usable NATS server."""

    served: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.Event())
        writer.write(greeting)
        if not close:
            with suppress(OSError):
                await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        served[-1].set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for each in served:
            await each.wait()


async def test_a_server_that_stores_nothing_is_refused(tmp_path: Path) -> None:
    with nats_server(tmp_path, jetstream=False) as server:
        error = await refusal(server.url)
        assert isinstance(error, BrokerUnfit) and "JetStream" in error.sentence and "jetstream" in error.hint


async def test_a_full_broker_says_so_and_takes_messages_again_when_there_is_room(tmp_path: Path) -> None:
    with nats_server(tmp_path, store_limit="4MB") as server:
        async with connected(server.url) as broker:
            noise = random.Random(7)

            async def fill() -> None:
                for _ in range(200):
                    await broker.append("acp.s.a.ev", noise.randbytes(1 << 16))

            with pytest.raises(BrokerFull) as caught:
                await fill()
            assert "room" in caught.value.sentence and caught.value.hint and caught.value.recoverable
            await broker.remove("acp.s.a.ev")
            await broker.append("acp.s.a.ev", b"there is room")


async def test_a_cluster_without_a_majority_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "START_LIMIT", 2.0)
    with nats_cluster(tmp_path) as servers:
        for server in servers[1:]:
            server.kill()
        error = await refusal(servers[0].url)
        assert isinstance(error, BrokerAway)


# Keys and certificates.


async def test_a_server_lets_in_those_whose_key_it_knows(tmp_path: Path) -> None:
    seed = new_seed()
    good, bad, odd = (tmp_path / name for name in ("good.nk", "bad.nk", "odd.nk"))
    for path, text in ((good, seed), (bad, new_seed()), (odd, "SUABC")):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
    with nats_server(tmp_path, more=f"authorization {{ users: [ {{ nkey: {public_key(seed)} }} ] }}") as server:
        async with connected(server.url, credentials=good) as broker:
            await broker.append("acp.s.a.ev", b"")
        error = await refusal(server.url)
        assert isinstance(error, BrokerRefused) and "credentials" in error.hint
        error = await refusal(server.url, credentials=bad)
        assert isinstance(error, BrokerRefused) and str(bad) in error.sentence
        assert "SUABC" not in str(await refusal(server.url, credentials=odd))
        good.chmod(0o644)
        error = await refusal(server.url, credentials=good)
        assert "chmod 600" in error.hint and seed not in str(error)
        error = await refusal(server.url, credentials=tmp_path / "none")
        assert "none" in error.sentence


async def test_a_key_of_the_fleet_gets_answers_below_its_own_name(tmp_path: Path) -> None:
    seed = new_seed()
    path = tmp_path / "alice.key"
    path.write_text(json.dumps({"name": "alice", "role": "admin", "public": public_key(seed), "seed": seed}), "utf-8")
    path.chmod(0o600)
    rights = 'subscribe: ["_INBOX.alice.>", "acp.live.>"]'
    user = f'{{ nkey: {public_key(seed)}, permissions: {{ publish: ">", {rights} }} }}'
    with nats_server(tmp_path, more=f"authorization {{ users: [ {user} ] }}") as server:
        async with connected(server.url, credentials=path) as broker:
            assert await broker.append("acp.s.a.ev", b"") == 1
            assert broker.problems == []
            broker.subscribe("acp.beat.>", lambda message: None)
            await broker.last("acp.s.a.ev")
            await until(lambda: broker.problems)
            assert "acp.beat.>" in broker.problems[0] and broker.is_connected


async def test_what_a_key_may_not_do_fails_at_once(tmp_path: Path) -> None:
    seed = new_seed()
    path = tmp_path / "key"
    path.write_text(seed, encoding="utf-8")
    path.chmod(0o600)
    admin = "{ user: admin, password: secret }"
    user = f'{{ nkey: {public_key(seed)}, permissions: {{ publish: ["$JS.API.STREAM.INFO.>", "acp.s.*.row"] }} }}'
    with nats_server(tmp_path, more=f"authorization {{ users: [ {admin}, {user} ] }}") as server:
        streams_limit = streams.START_LIMIT
        streams.START_LIMIT = 0.5  # type: ignore[misc]
        try:
            error = await refusal(server.url, credentials=path)
        finally:
            streams.START_LIMIT = streams_limit  # type: ignore[misc]
        assert isinstance(error, BrokerAway) and "may not make it" in error.sentence and "gateway" in error.hint
        async with connected(f"nats://admin:secret@127.0.0.1:{server.port}") as admin_broker:
            async with connected(server.url, credentials=path) as broker:
                assert await broker.append("acp.s.a.row", b"") == 1
                with pytest.raises(BrokerRefused) as caught:
                    await broker.append("acp.s.a.ev", b"")
                assert "acp.s.a.ev" in caught.value.sentence
                with pytest.raises(BrokerRefused):
                    await broker.remove("acp.s.a.>")
                broker.publish("acp.all", b"")
                await until(lambda: any("acp.all" in problem for problem in broker.problems))
            assert admin_broker.problems == []


async def test_a_worker_waits_until_a_gateway_has_made_the_streams(tmp_path: Path) -> None:
    seed = new_seed()
    path = tmp_path / "key"
    path.write_text(seed, encoding="utf-8")
    path.chmod(0o600)
    user = f'{{ nkey: {public_key(seed)}, permissions: {{ publish: ["$JS.API.STREAM.INFO.>", "acp.s.>"] }} }}'
    with nats_server(tmp_path, more=f"authorization {{ users: [ {{ user: g, password: p }}, {user} ] }}") as server:
        worker = asyncio.ensure_future(connect_broker(server.url, name="worker", credentials=path))
        while "$JS.API.STREAM.CREATE" not in server.log:
            assert not worker.done()
            await asyncio.sleep(0.01)
        async with connected(f"nats://g:p@127.0.0.1:{server.port}"):
            broker = await worker
            assert await broker.append("acp.s.a.ev", b"") == 1
            await broker.close()


async def test_a_credentials_file_of_nats_is_used(tmp_path: Path) -> None:
    operator, system, account, user = (SignedKey(prefix) for prefix in (14 << 3, 0, 0, 20 << 3))
    limits = {"subs": -1, "data": -1, "payload": -1}
    stores = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "conn": -1, "leaf": -1, "imports": -1,
              "exports": -1, "wildcards": True}  # fmt: skip
    operator_jwt = operator.sign(operator.public, {"type": "operator"})
    account_jwt = operator.sign(account.public, {"type": "account", "limits": {**limits, **stores}})
    system_jwt = operator.sign(system.public, {"type": "account", "limits": {**limits, "conn": -1}})
    user_jwt = account.sign(user.public, {"type": "user", **limits})
    path = tmp_path / "user.creds"
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n",
        encoding="utf-8",
    )
    path.chmod(0o600)
    accounts = f"{account.public}: {account_jwt}\n{system.public}: {system_jwt}"
    more = f"operator: {operator_jwt}\nsystem_account: {system.public}\nresolver: MEMORY\nresolver_preload {{\n{accounts}\n}}"
    with nats_server(tmp_path, more=more) as server:
        async with connected(server.url, credentials=path) as broker:
            assert await broker.append("acp.s.a.ev", b"") == 1
        assert isinstance(await refusal(server.url), BrokerRefused)


class SignedKey:
    """A key of an operator, account or user, which signs the keys below it."""

    def __init__(self, prefix: int) -> None:
        self._raw = os.urandom(32)
        self._private = Ed25519PrivateKey.from_private_bytes(self._raw)
        self.public = _encoded(bytes([prefix]) + self._private.public_key().public_bytes_raw())
        self.seed = _encoded(bytes([(18 << 3) | (prefix >> 5), (prefix & 31) << 3]) + self._raw)

    def sign(self, subject: str, claims: dict[str, Any]) -> str:
        """Return a token that says what a key may do."""
        body = {
            "jti": "x",
            "iat": 1,
            "iss": self.public,
            "sub": subject,
            "name": "test",
            "nats": {**claims, "version": 2},
        }
        parts = [_base64(json.dumps(each).encode()) for each in ({"typ": "JWT", "alg": "ed25519-nkey"}, body)]
        return ".".join([*parts, _base64(self._private.sign(".".join(parts).encode()))])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _encoded(data: bytes) -> str:
    return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


async def test_passwords_and_tokens_in_the_address_are_used(tmp_path: Path) -> None:
    with nats_server(tmp_path, more='authorization { token: "to ken" }') as server:
        async with connected(f"nats://to%20ken@127.0.0.1:{server.port}") as broker:
            assert broker.is_connected
        error = await refusal(f"nats://wrong@127.0.0.1:{server.port}")
        assert isinstance(error, BrokerRefused) and "wrong" not in str(error)


def test_a_password_is_not_sent_to_another_machine_without_tls() -> None:
    far = ServerAddress("broker.example.org", 4222, user="me", password="secret")
    with pytest.raises(BrokerRefused) as caught:
        connect_options(Login(), far, {}, "test", encrypted=False)
    assert "secret" not in str(caught.value) and "tls://" in caught.value.hint
    assert connect_options(Login(), far, {}, "test", encrypted=True)["pass"] == "secret"
    near = far._replace(host="127.0.0.1")
    assert connect_options(Login(), near, {}, "test", encrypted=False)["user"] == "me"


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        cwd=tmp_path, check=True, capture_output=True, timeout=limit(),
    )  # fmt: skip
    return tmp_path


async def test_a_connection_with_tls_is_made_with_the_right_certificate_only(certificates: Path) -> None:
    tls = f'tls {{ cert_file: "{certificates}/cert.pem", key_file: "{certificates}/key.pem" }}'
    trusted = tls_context(certificates / "cert.pem")
    with nats_server(certificates, more=tls) as server:
        for scheme in ("tls", "nats"):
            async with connected(f"{scheme}://localhost:{server.port}", tls=trusted) as broker:
                assert await broker.append("acp.s.a.ev", bytes(1 << 20)) > 0
                last = await broker.last("acp.s.a.ev")
                assert last is not None and last.data == bytes(1 << 20)
                since = broker.connected_since
                server.kill()
                await until(lambda: not broker.is_connected)
                server.restart()
                await until(lambda: broker.is_connected)
                assert since is not None and broker.connected_since is not None and broker.connected_since > since
        error = await refusal(f"tls://localhost:{server.port}")
        assert isinstance(error, BrokerRefused) and "certificate" in error.sentence
        error = await refusal(f"tls://127.0.0.1:{server.port}", tls=trusted)
        assert isinstance(error, BrokerRefused), "another name"
        error = await refusal(f"nats://localhost:{server.port}")
        assert isinstance(error, BrokerRefused), "the server asks for TLS, so it is checked"


async def test_a_server_asks_for_a_certificate_of_clients(certificates: Path) -> None:
    files = (
        f'cert_file: "{certificates}/cert.pem", key_file: "{certificates}/key.pem", ca_file: "{certificates}/cert.pem"'
    )
    with nats_server(certificates, more=f"tls {{ {files}, verify: true }}") as server:
        url = f"tls://localhost:{server.port}"
        shown = tls_context(certificates / "cert.pem", certificates / "cert.pem", certificates / "key.pem")
        async with connected(url, tls=shown) as broker:
            assert broker.is_connected
        assert isinstance(await refusal(url, tls=tls_context(certificates / "cert.pem")), BrokerRefused | BrokerAway)
    with pytest.raises(AcpError):
        tls_context(certificates / "none.pem")


async def test_an_address_with_tls_is_never_used_without(server: NatsServer) -> None:
    error = await refusal(f"tls://127.0.0.1:{server.port}")
    assert isinstance(error, BrokerRefused) and "no TLS" in error.sentence
    error = await refusal(server.url, tls=ssl.create_default_context())
    assert isinstance(error, BrokerRefused)


async def test_what_comes_before_tls_is_not_believed(certificates: Path) -> None:
    """Send what one on the way could add to the greeting of a server: a message, that we are let in, another server."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    info = {"version": "2.15.1", "jetstream": True, "tls_required": True, "connect_urls": ["other.example:4222"]}
    greeting = f"INFO {json.dumps(info)}\r\n".encode()
    added = {
        "a message": b"MSG acp.open.a.b 1 5\r\nhello\r\n",
        "the beginning of one": b"MSG acp.open.a.b 1 9\r\n",
        "a welcome": b"PONG\r\n",
        "a welcome and a message": b"PONG\r\nMSG acp.open.a.b 1 5\r\nhello\r\n",
    }
    taken: list[WireMessage] = []
    for what, more in added.items():
        async with injected(greeting + more, context) as (port, sent):
            link = ServerLink(
                [read_address(f"tls://localhost:{port}")], Login(), "test", tls_context(certificates / "cert.pem")
            )
            link.subscribe("acp.open.a.b", taken.append)
            with suppress(AcpError):
                await link.open()
            assert (taken, link._discovered) == ([], []), what
            assert link.since is None or sent[0].startswith(b"CONNECT"), what
            await link.close()


@asynccontextmanager
async def injected(greeting: bytes, context: ssl.SSLContext) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Serve a greeting as plain text, and what lets a client in over TLS. Gives the port, and what came encrypted."""
    sent: list[bytes] = []
    served: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.Event())
        with suppress(OSError):
            writer.write(greeting)
            await writer.start_tls(context)
            sent.append(await reader.readline())
            writer.write(b"PONG\r\n")
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        served[-1].set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], sent
    finally:
        server.close()
        for each in served:
            await each.wait()


@pytest.mark.parametrize("address", ["http://x", "nats://", "nats://x:port", "", "ws://x:80"])
async def test_what_is_no_address_is_refused(address: str) -> None:
    error = await refusal(address)
    assert "nats://HOST" in error.hint
