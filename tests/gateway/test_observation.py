"""What people who run a gateway can see of it from outside: its log, and traces of its turns. Never what was sent."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from select import select
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from antiphon.errors import ExtraMissing
from antiphon.gateway.server.traces import hub_traces, wants_traces
from antiphon.transports.tree import descendants
from tests.gateway.processes import call, running
from tests.limits import limit

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@contextmanager
def receiver() -> Iterator[tuple[str, list[Any]]]:
    """A receiver of traces over HTTP: its address, and the spans that it got."""
    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            sent = ExportTraceServiceRequest.FromString(body)
            for each in sent.resource_spans:
                for scope in each.scope_spans:
                    spans.extend((each.resource, span, body) for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", spans
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def values(attributes: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}


@pytest.mark.slow
def test_a_turn_is_a_span_under_the_trace_of_its_prompt(tmp_path: Path) -> None:
    with receiver() as (address, spans):
        env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "NO_PROXY": "127.0.0.1",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }
        with running(tmp_path, env=env) as gateway, gateway.open_socket() as opened:
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
            session = call(opened, 1, "session/new", cwd=str(tmp_path / "root"), mcpServers=[])["result"]["sessionId"]
            content = [{"type": "text", "text": "my private words"}]
            meta = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            response = call(opened, 2, "session/prompt", sessionId=session, prompt=content, _meta=meta)
    ((resource, span, body),) = spans  # what waits is sent before the gateway ends
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == ("turn", TRACE, PARENT)
    found = values(span.attributes)
    assert found["antiphon.session"] == session and found["antiphon.agent"] == "agent"
    assert found["antiphon.outcome"] == response["result"]["stopReason"]
    assert [event.name for event in span.events][:1] == ["sent"]
    assert values(resource.attributes)["service.name"] == "antiphon-gateway"
    assert b"my private words" not in body and gateway.place["token_file"].encode() not in body


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
    ],
)
def test_traces_are_sent_where_the_environment_says(environment: dict[str, str], wanted: bool) -> None:
    assert wants_traces(environment) is wanted


async def test_traces_without_the_packages_for_them_are_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ExtraMissing, match="opentelemetry") as caught:
        async with hub_traces({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}):
            pass
    assert "antiphon[traces]" in caught.value.hint


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "text"])
def test_the_log_goes_to_stderr_in_the_form_that_was_asked_for(tmp_path: Path, form: str) -> None:
    with running(tmp_path, "--log", form) as gateway:
        with gateway.open_socket() as opened:
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        token = gateway.token
        agents = (pid for pid in descendants(gateway.process.pid) if b"--engine" in command_line(pid))
        os.kill(next(agents), signal.SIGKILL)
        assert gateway.process.stderr is not None
        ready, _, _ = select([gateway.process.stderr], [], [], limit())
        assert ready
        line = gateway.process.stderr.readline()
    assert token not in line and "agent `agent` ended" in line
    if form == "json":
        entry = json.loads(line)
        assert (entry["level"], entry["process"]) == ("warning", gateway.process.pid)


@pytest.mark.slow
def test_a_socket_that_is_refused_is_no_error_of_the_server(tmp_path: Path) -> None:
    with running(tmp_path, "--log", "json") as gateway:
        assert gateway.upgrade({"Origin": "http://elsewhere.example"}) == 403
        assert gateway.upgrade({"Authorization": "Bearer wrong"}) == 401
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.stderr is not None
        entries = [json.loads(line) for line in gateway.process.stderr]
    assert [entry["message"] for entry in entries if entry["level"] != "info"] == ["a wrong secret from 127.0.0.1"]
