"""`antiphon record --connect`: the agent is on a network, the client at stdin and stdout."""

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from antiphon.transports.asgi import AcpEndpoint
from tests.recorder.test_record import RECORD, lines_in, record, sent_in
from tests.transports.serving import serve_demo, served


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["ws", "http"])
async def test_an_agent_at_an_address_is_recorded_like_one_that_is_started(profile: str, tmp_path: Path) -> None:
    path = tmp_path / "remote.jsonl"
    hello = b'{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocolVersion":1}}\n'
    async with served(AcpEndpoint(serve_demo)) as host:
        words = [*RECORD, "-o", str(path), "--connect", f"{profile}://{host}/acp"]
        tap = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        assert tap.stdin is not None and tap.stdout is not None
        tap.stdin.write(hello)
        answer = await tap.stdout.readline()
        tap.stdin.close()
        _, errors = await tap.communicate()
    assert (tap.returncode, errors.count(b"\n")) == (0, 1)
    assert lines_in(path)[0]["command"] == ["antiphon", "bridge", "--connect", f"{profile}://{host}/acp"]
    assert sent_in(path, "c2a") == [json.loads(hello)] and sent_in(path, "a2c") == [json.loads(answer)]


def test_an_address_that_is_not_reached_is_reported_with_a_hint(tmp_path: Path) -> None:
    done = record("-o", str(tmp_path / "a.jsonl"), "--connect", "ws://127.0.0.1:1/acp")
    assert done.returncode == 1 and b"was not reached" in done.stderr and b"hint: " in done.stderr
