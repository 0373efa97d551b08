"""The events of `antiphon run --output stream-json`: one JSON object per line on stdout, the last one of type `result`.

These types are the documentation: `docs/run-events.schema.json` is made from them. Fields are added and never change their
meaning; a reader ignores what it does not know. A change that breaks a reader gets a new `VERSION`.
"""

from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

__all__ = [
    "VERSION",
    "CallEvent",
    "ChangedPath",
    "ContentEvent",
    "DeniedAction",
    "EngineAnswer",
    "EngineFailure",
    "ErrorEvent",
    "Event",
    "MessageEvent",
    "NoticeEvent",
    "OtherUpdateEvent",
    "PatchReport",
    "PermissionEvent",
    "PlanEvent",
    "PlannedStep",
    "QuestionEvent",
    "ResultEvent",
    "RunFailure",
    "RunWarning",
    "SessionCost",
    "StartEvent",
    "ThoughtEvent",
    "TokenCounts",
    "UsageEvent",
    "WorktreeReport",
    "encode_event",
    "now",
    "schema",
]  # fmt: skip


VERSION: Final = 2
"""The version of the schema. Version 1 had no times, no versions, and other exit statuses for a login and a rate limit."""

JsonValue: TypeAlias = Any
"""Any JSON value: msgspec makes no schema for `object`."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


def now() -> str:
    """Return the time as events have it: UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Event(_Part, frozen=True, kw_only=True, tag_field="type"):
    time: str = msgspec.field(default_factory=now)


class StartEvent(_Event, frozen=True, kw_only=True, tag="start"):
    """The session is open, and the prompt goes out."""

    schema_version: int
    agent: str
    agent_version: str | None = None
    session_id: str
    opened: Literal["new", "resumed", "loaded"]
    cwd: str
    mode: str | None = None
    model: str | None = None


class MessageEvent(_Event, frozen=True, kw_only=True, tag="message"):
    """A piece of a message. A new `messageId` or another `engine` begins a new message.

    `label`: it is only the engine's name, which stands before its words.
    """

    text: str
    message_id: str | None = None
    engine: str | None = None
    label: bool = False


class ThoughtEvent(_Event, frozen=True, kw_only=True, tag="thought"):
    """A piece of a thought."""

    text: str
    message_id: str | None = None
    engine: str | None = None
    label: bool = False


class ContentEvent(_Event, frozen=True, kw_only=True, tag="content"):
    """Something other than text in a message or a thought: a content block of ACP."""

    place: Literal["message", "thought"]
    block: JsonValue
    message_id: str | None = None
    engine: str | None = None


class CallEvent(_Event, frozen=True, kw_only=True, tag="tool_call"):
    """The state of a call: the last event with an `id` counts. `content` and `output` come when it has ended.

    `denied`: it failed because it was not allowed.
    """

    id: str
    title: str
    kind: str
    status: str
    name: str | None = None
    paths: list[str] = []
    input: JsonValue = None
    output: JsonValue = None
    content: list[JsonValue] = []
    engine: str | None = None
    denied: bool = False


class PlannedStep(_Part, frozen=True, kw_only=True):
    """One step of a plan."""

    content: str
    status: str
    priority: str


class PlanEvent(_Event, frozen=True, kw_only=True, tag="plan"):
    """The plan; it replaces the one before."""

    steps: list[PlannedStep]
    engine: str | None = None


class SessionCost(_Part, frozen=True, kw_only=True):
    """What the session has cost so far."""

    amount: float
    currency: str


class TokenCounts(_Part, frozen=True, kw_only=True):
    """Tokens of the session, as the agent counts them at the end of a turn."""

    total: int
    input: int
    output: int
    thought: int | None = None
    cached_read: int | None = None
    cached_write: int | None = None


class UsageEvent(_Event, frozen=True, kw_only=True, tag="usage"):
    """How full the context window is, in tokens."""

    used: int
    size: int
    cost: SessionCost | None = None
    engine: str | None = None


class PermissionEvent(_Event, frozen=True, kw_only=True, tag="permission"):
    """A decision about permission. `subject` is the command, the path or the address, or else the title of the call.
    `asked`: the user decided it just now.

    A call that only reads is not reported unless it is denied. A call may be decided about twice: when it asks, and when it is done through us.
    """

    subject: str
    kind: str
    verdict: Literal["allow", "deny"]
    asked: bool
    rule: str | None = None
    why: str
    engine: str | None = None


class QuestionEvent(_Event, frozen=True, kw_only=True, tag="question"):
    """The agent asked the user something."""

    message: str
    answer: Literal["accept", "decline", "cancel"]
    engine: str | None = None


class NoticeEvent(_Event, frozen=True, kw_only=True, tag="notice"):
    """A notice of the agent, or a warning of Antiphon."""

    severity: str
    title: str
    description: str | None = None
    engine: str | None = None


class OtherUpdateEvent(_Event, frozen=True, kw_only=True, tag="update"):
    """Any other update of the session, as ACP has it."""

    update: JsonValue
    engine: str | None = None


class ChangedPath(_Part, frozen=True, kw_only=True):
    """A file that changed, as far as it was reported. Changes by commands are not known."""

    path: str
    change: Literal["created", "edited", "deleted", "moved"]


class DeniedAction(_Part, frozen=True, kw_only=True):
    """Something that the agent was not allowed to do. `unasked`: because there was no terminal to ask in."""

    subject: str
    kind: str
    why: str
    unasked: bool


class RunFailure(_Part, frozen=True, kw_only=True):
    """What went wrong, and what to do about it. `kind` is for programs: docs/command-line.md lists them.

    `retryable`: the same may succeed later, with nothing changed; after `retryAfter` seconds, where the agent or its service
    reported a time to wait.
    """

    kind: str
    message: str
    hint: str
    retryable: bool
    retry_after: float | None = None


class RunWarning(_Part, frozen=True, kw_only=True):
    """What did not stop the run and should be known: a limit without effect, a session that was not deleted."""

    message: str
    hint: str | None = None


class EngineAnswer(_Part, frozen=True, kw_only=True):
    """The last message of one engine, without its name before it."""

    engine: str
    text: str


class EngineFailure(_Part, frozen=True, kw_only=True):
    """An engine that failed while another one answered, and what to do about it."""

    engine: str
    message: str
    hint: str | None = None
    kind: str = "failed"
    retryable: bool = False
    retry_after: float | None = None


class WorktreeReport(_Part, frozen=True, kw_only=True):
    """The git worktree of a run: its path, its branch, the commit that it began at, and whether it was kept."""

    path: str
    branch: str
    base: str
    kept: bool


class PatchReport(_Part, frozen=True, kw_only=True):
    """The patch with all changes of a run. `files` are relative to the directory that the patch applies to."""

    path: str
    bytes: int
    files: list[str]


class ResultEvent(_Event, frozen=True, kw_only=True, tag="result"):
    """The end. `text` is the agent's last message, `stopReason` that of ACP, absent if there was no answer.

    Where the agent names its engines, `answers` has the last message of each, and `text` has all of them, each with its engine's name.
    `failures` are the engines that failed while others answered; the `exitCode` is then not 0.
    `denied` counts what was denied; `denials` has the first 1,000 of them.
    `warnings` are those of Antiphon, which a stream has as `notice` events, too.
    With `--output-schema`, `output` is the answer as JSON, and `attempts` how often it was asked for.
    """

    schema_version: int
    exit_code: int
    stop_reason: str | None = None
    text: str
    answers: list[EngineAnswer] = []
    failures: list[EngineFailure] = []
    agent: str | None = None
    session_id: str | None = None
    usage: UsageEvent | None = None
    tokens: TokenCounts | None = None
    output: JsonValue = None
    attempts: int | None = None
    worktree: WorktreeReport | None = None
    patch: PatchReport | None = None
    files_changed: list[ChangedPath]
    denials: list[DeniedAction]
    denied: int = 0
    warnings: list[RunWarning] = []
    seconds: float
    error: RunFailure | None = None


class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """The arguments were wrong, or something failed before anything was started. There is no `result` then."""

    schema_version: int
    exit_code: int
    error: RunFailure


Event: TypeAlias = (
    StartEvent
    | MessageEvent
    | ThoughtEvent
    | ContentEvent
    | CallEvent
    | PlanEvent
    | UsageEvent
    | PermissionEvent
    | QuestionEvent
    | NoticeEvent
    | OtherUpdateEvent
    | ResultEvent
    | ErrorEvent
)

_encoder = msgspec.json.Encoder()


def encode_event(event: Event) -> bytes:
    """Return an event as a line of JSON."""
    return _encoder.encode(event) + b"\n"


def schema() -> dict[str, JsonValue]:
    """Return the JSON schema of a line."""
    from inspect import cleandoc  # Python 3.13 does it by itself

    (found,), parts = msgspec.json.schema_components([Event], ref_template="#/$defs/{name}")
    for part in parts.values():
        if "time" in part["properties"]:
            part["required"].insert(1, "time")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `antiphon run --output stream-json`",
    }
    return {
        **head,
        **found,
        "$defs": {name: {**part, "description": cleandoc(part["description"])} for name, part in sorted(parts.items())},
    }


if __name__ == "__main__":  # how the file in the docs is written again
    import sys

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2) + b"\n")
