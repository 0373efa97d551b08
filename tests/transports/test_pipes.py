"""The pipes below a transport: how much they hold."""

import asyncio
import fcntl
import os
import sys

import pytest

from antiphon.transports.pipes import PIPE_SIZE, READ_SIZE, PipeTransport


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot resize a pipe")
async def test_a_pipe_that_is_found_full_holds_more_from_then_on() -> None:
    incoming, theirs = os.pipe()
    their_end, outgoing = os.pipe()
    transport = PipeTransport(incoming, outgoing)
    try:
        os.write(theirs, b"small\n")
        async with asyncio.timeout(10):
            assert await transport.receive() == b"small"
            assert fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ) == READ_SIZE
            os.write(theirs, b"x" * (READ_SIZE - 1) + b"\n")
            assert await transport.receive() == b"x" * (READ_SIZE - 1)
        assert fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ) == PIPE_SIZE
    finally:
        await transport.close()
        os.close(theirs)
        os.close(their_end)
