"""Attacks by what a client does not do: it sends nothing, never ends what it began, or takes more sockets than it uses.

Each shows itself by a client that is still served after the time in which it should have done its part, or beside more than its part.
"""

import select
import socket
from contextlib import ExitStack
from http.client import HTTPException, HTTPResponse
from typing import Final

import pytest
from websockets.exceptions import ConnectionClosed

from tests.gateway.inner_attacks import Attack
from tests.gateway.processes import Gateway
from tests.limits import limit

__all__ = ["SLOW"]

HEAD: Final = b"/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
GET: Final = b"GET " + HEAD + b"\r\n"


def wait_for_the_limits(gateway: Gateway) -> None:
    """Wait until a client that came now has had all the time that it gets: so had those that came before."""
    with gateway.open_socket({}) as opened, pytest.raises(ConnectionClosed):
        opened.recv(timeout=limit())


def is_answered(raw: socket.socket, request: bytes = GET) -> bool:
    """Whether the rest of a request gets its response."""
    try:
        raw.sendall(request)
        response = HTTPResponse(raw)
        response.begin()
        response.read()
    except (BrokenPipeError, ConnectionResetError, HTTPException):
        return False
    return response.status == 200


def head_that_does_not_end(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        raw.sendall(GET[:20])
        wait_for_the_limits(gateway)
        return is_answered(raw, GET[20:])


def socket_without_a_request(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        wait_for_the_limits(gateway)
        return is_answered(raw)


def empty_lines_behind_a_response(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        assert is_answered(raw)
        raw.sendall(b"\r\n")
        wait_for_the_limits(gateway)
        return is_answered(raw)


def body_behind_its_response(gateway: Gateway) -> bool:
    """Whether a body that does not end holds a socket whose request was answered long ago."""
    with gateway.raw() as raw:
        assert is_answered(raw, b"POST " + HEAD + b"Content-Length: 9\r\n\r\n1")
        raw.sendall(b"2")
        wait_for_the_limits(gateway)
        return is_answered(raw, b"3456789" + GET)


def chunks_behind_their_response(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        assert is_answered(raw, b"POST " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        raw.sendall(b"1\r\n")
        wait_for_the_limits(gateway)
        return is_answered(raw, b"x\r\n0\r\n\r\n" + GET)


def body_that_does_not_end(gateway: Gateway) -> bool:
    """Whether a body is waited for that the application does not wait for, as that of a stream of events."""
    fields = {**gateway.bearer, "Acp-Connection-Id": gateway.open_http(), "Accept": "*/*"}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with gateway.raw() as raw:
        raw.sendall(b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n" + head.encode() + b"\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 200 ")
        wait_for_the_limits(gateway)
        raw.settimeout(0.5)
        try:
            while raw.recv(65536):
                pass
        except TimeoutError:
            return True
        except ConnectionResetError:
            pass
        return False


def sockets_without_requests(gateway: Gateway) -> bool:
    """Whether one address has any number of sockets that have shown nothing. The newest is always served."""
    with ExitStack() as stack:
        opened = [stack.enter_context(gateway.raw()) for _ in range(65)]
        assert is_answered(opened[-1])
        return is_answered(opened[0])


def sockets_of_one_token(gateway: Gateway) -> bool:
    request = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {gateway.token}\r\n\r\n".encode()
    with ExitStack() as stack:
        opened = [stack.enter_context(gateway.raw()) for _ in range(5)]
        return [is_answered(each, request) for each in opened][-1]


def posts_of_one_token_at_once(gateway: Gateway) -> bool:
    """Whether any number of large posts of one token is kept until they are whole."""
    head = "POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = f"{head}Authorization: Bearer {gateway.token}\r\nContent-Length: 3000\r\n\r\n{'x' * 1500}".encode()
    with gateway.raw() as first, gateway.raw() as second:
        first.sendall(request)
        second.sendall(request)
        if select.select([first, second], [], [], 1.0)[0]:
            return False
        second.sendall(b"x" * 1500)
        return b" 400 " in second.recv(65536)[:20]  # it was read to its end, and is no message


def requests_before_their_responses(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        raw.sendall(GET * 99 + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        found = b""
        while part := raw.recv(65536):
            found += part
        return found.count(b"HTTP/1.1 200 ") == 100


def many_headers(gateway: Gateway) -> bool:
    with gateway.raw() as raw:
        return is_answered(raw, GET[:-2] + b"X: y\r\n" * 200 + b"\r\n")


SLOW: Final = [
    Attack("phase_timeout", head_that_does_not_end, "short times"),
    Attack("phase_timeout", socket_without_a_request, "short times"),
    Attack("phase_timeout", empty_lines_behind_a_response, "short times"),
    Attack("phase_timeout", body_behind_its_response, "short times"),
    Attack("phase_timeout", chunks_behind_their_response, "short times"),
    Attack("phase_timeout", body_that_does_not_end, "short times"),
    Attack("too_many", sockets_without_requests),
    Attack("has_too_many_sockets", sockets_of_one_token, "few OWNER_SOCKETS"),
    Attack("holds_too_much", posts_of_one_token_at_once, "small BODIES"),
    Attack("PIPELINED", requests_before_their_responses),
    Attack("HEADERS", many_headers),
]
