"""What a gateway does, for OpenTelemetry: a span for each turn, under the `traceparent` that its prompt brought along.

It is on when the environment names a receiver (`OTEL_EXPORTER_OTLP_ENDPOINT`), and set up as the specification of OpenTelemetry says. No
span has the text of a message: names, ids, times and outcomes only.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from antiphon import __version__
from antiphon.errors import ExtraMissing
from antiphon.gateway.base import HubSpan, HubTraces

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

__all__ = ["hub_traces", "wants_traces"]

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SERVICE: Final = "antiphon-gateway"


def wants_traces(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a receiver of traces, and does not turn them off."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() != "otlp":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


@asynccontextmanager
async def hub_traces(environment: Mapping[str, str]) -> "AsyncIterator[HubTraces | None]":
    """Give the traces of a hub, or None if none are wanted. At the end what waits is sent.

    Raises:
        ExtraMissing: they are wanted, and the packages of OpenTelemetry are not installed.
    """
    if not wants_traces(environment):
        yield None
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ExtraMissing(
            f"traces need the package `{error.name}`",
            hint="pip install 'antiphon[traces]', or unset OTEL_EXPORTER_OTLP_ENDPOINT",
        ) from error
    resource = Resource.create({"service.name": environment.get("OTEL_SERVICE_NAME") or _SERVICE})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield _OtelTraces(provider.get_tracer("antiphon", __version__))
    finally:
        await asyncio.to_thread(provider.shutdown)  # sends the rest, with the time limit of the exporter


class _OtelTraces:
    def __init__(self, tracer: "Tracer") -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._kind = SpanKind.SERVER
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, name: str, attributes: Mapping[str, str], parent: Mapping[str, str]) -> HubSpan:
        """Begin a span. One whose parent cannot be read begins a trace of its own."""
        context = self._propagator.extract(parent)
        return _OtelSpan(self._tracer.start_span(name, context, self._kind, dict(attributes)))


class _OtelSpan:
    def __init__(self, span: "Span") -> None:
        self._span = span

    def event(self, name: str, attributes: Mapping[str, str]) -> None:
        """Add something that happened."""
        self._span.add_event(name, dict(attributes))

    def end(self, outcome: str, *, failed: bool) -> None:
        """End the span."""
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("antiphon.outcome", outcome)
        if failed:
            self._span.set_status(Status(StatusCode.ERROR, outcome))
        self._span.end()
