"""`antiphon run --json`: every line is an event of the documented schema, and the last one is the result."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli.outcome import is_retryable
from antiphon.errors import (
    AcpError,
    AuthRequired,
    ConnectionClosed,
    ProcessDied,
    RequestRefused,
    RequestTimeout,
    SpawnFailed,
)
from antiphon.runs.events import schema
from tests.cli import agents
from tests.cli.program import ROOT, Done, Place
from tests.rows import each_row

SCHEMA = json.loads((ROOT / "docs" / "run-events.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def fits(value: Any, rule: dict[str, Any]) -> bool:
    """Whether a value fits a schema, as far as ours goes. Unknown words in it fail, so that none is forgotten."""
    assert set(rule) <= {
        "$ref", "$defs", "$schema", "anyOf", "const", "default", "description", "discriminator", "enum", "items",
        "properties", "required", "title", "type",
    }  # fmt: skip
    if "$ref" in rule:
        return fits(value, SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]])
    if "anyOf" in rule:
        return any(fits(value, each) for each in rule["anyOf"])
    if "enum" in rule:
        return value in rule["enum"]
    kinds: dict[str, Any] = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None),
    }  # fmt: skip
    if "type" in rule and not (
        isinstance(value, kinds[rule["type"]]) and (rule["type"] == "boolean") == isinstance(value, bool)
    ):
        return False
    if isinstance(value, list) and "items" in rule:
        return all(fits(item, rule["items"]) for item in value)
    if isinstance(value, dict) and "properties" in rule:
        known = rule["properties"]
        return (
            set(rule.get("required", ())) <= set(value) <= set(known)
            and all(fits(part, known[key]) for key, part in value.items())
        )  # fmt: skip
    return True


def checked(done: Done) -> Done:
    events = done.events
    for event in events:
        assert fits(event, SCHEMA), event
    assert [event["type"] for event in events].count("result") == 1 and events[-1]["type"] == "result"
    assert events[-1]["exitCode"] == done.status
    return done


def test_the_schema_in_the_docs_is_that_of_the_code() -> None:
    assert schema() == SCHEMA, "write it again: python -m antiphon.runs.events > docs/run-events.schema.json"


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"type": "message"},
        {"type": "other"},
        {"type": "message", "text": 1},
        {"type": "message", "text": "", "more": 1},
    ],
)
def test_what_is_not_an_event_does_not_fit(broken: dict[str, Any]) -> None:
    assert not fits(broken, SCHEMA)


PROMPTS = (
    "Where are we?", "/think it", "/plan", "/edit notes.txt x", "/read README.md", "/run echo x", "/usage", "/notice", "/compact",
    "/image", "/audio", "/link", "/resource", "/ask", "/visit", "/permission", "/mode plan", "/set thinking on", "/title A", "/fail", "/stop refusal",
    "/search sing", "/delete README.md", "/plans", "/child", "/echo x", "/mcp", "/no-such",
)  # fmt: skip
ASKING = ("/edit notes.txt x", "/run echo x", "/permission", "/delete README.md")
"""Those that have to be permitted: what is sent then depends on the answer."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt", "on_ask"), [*((prompt, "deny") for prompt in PROMPTS), *((prompt, "allow") for prompt in ASKING)]
)
def test_every_line_fits_the_schema(prompt: str, on_ask: str, place: Place) -> None:
    done = checked(place.run(prompt, "--json", "--on-ask", on_ask))
    assert bool(done.of("permission")) == (prompt in ASKING)
    assert done.events[0]["type"] == "start" and "Traceback" not in done.err


def test_a_run_as_events(place: Place) -> None:
    done = checked(place.run("/edit notes.txt hello", "--json", "--allow", "Edit"))
    [start] = done.of("start")
    assert (start["agent"], start["opened"], start["cwd"]) == ("Antiphon demo", "new", str(place.cwd))
    calls = done.of("tool_call")
    assert calls[0]["status"] == "pending" and calls[-1]["status"] == "completed"
    assert calls[0]["input"] == {"path": str(place.cwd / "notes.txt")} and calls[-1]["content"][0]["type"] == "diff"
    assert {(event["verdict"], event["rule"]) for event in done.of("permission")} == {("allow", "Edit")}
    result = done.result
    assert result["filesChanged"] == [{"path": str(place.cwd / "notes.txt"), "change": "created"}]
    assert (result["stopReason"], result["denials"], result["text"]) == ("end_turn", [], "`notes.txt` has 1 line now.")
    assert result["sessionId"] == start["sessionId"] and done.err == ""


def test_changes_of_every_kind_are_in_the_result(place: Place) -> None:
    readme = str(place.cwd / "README.md")
    assert place.run("/edit README.md x", "--json", "--on-ask", "allow").result["filesChanged"] == [
        {"path": readme, "change": "edited"}
    ]
    moved = place.run("/move README.md other.md", "--json", "--on-ask", "allow").result["filesChanged"]
    assert moved == [{"path": readme, "change": "moved"}, {"path": str(place.cwd / "other.md"), "change": "moved"}]
    assert place.run("/delete other.md", "--json", "--on-ask", "allow").result["filesChanged"] == [
        {"path": str(place.cwd / "other.md"), "change": "deleted"}
    ]


def test_denials_are_in_the_result(place: Place) -> None:
    done = checked(place.run("/run rm -rf x", "--json"))
    [denial] = done.result["denials"]
    assert (denial["subject"], denial["kind"], denial["unasked"]) == ("rm -rf x", "execute", True)
    assert done.status == 5 and done.result["filesChanged"] == []
    [denial] = place.run("/run rm -rf x", "--json", "--deny", "Bash(rm *)").result["denials"]
    assert denial["unasked"] is False and "Bash(rm *)" in denial["why"]


def test_tokens_and_cost_are_in_the_result(place: Place) -> None:
    result = place.run("/usage", "--json").result
    assert result["tokens"]["total"] == 100
    assert (result["usage"]["used"], result["usage"]["cost"]) == (100, {"amount": 0.0001, "currency": "USD"})


def test_an_error_is_in_the_result_too(place: Place) -> None:
    done = checked(place.run("x", "--json", "--agent", "lute"))
    assert done.status == 2 and done.result["error"]["message"] == "there is no agent named `lute`"
    assert done.result["error"]["hint"] and "error: there is no agent" in done.err
    done = checked(place.run("x", "--json", "--agent", place.agent(agents.WantsLogin)))
    assert "`browser`" in done.result["error"]["hint"]


@each_row(
    ("error", "retryable"),
    [
        (ConnectionClosed("gone"), True),
        (ProcessDied("agent", 1), True),
        (RequestTimeout("initialize", 5), True),
        (RequestRefused(-32001, "Request timed out"), True),
        (RequestRefused(-32001, "Unsupported protocol version 7"), False),
        (RequestRefused(-32000, "Connection closed"), True),
        (AuthRequired(-32000, "Authentication required"), False),
        (RequestRefused(-32603, "it is busy", {"kind": "overloaded"}), True),
        (RequestRefused(-32603, "no credit", {"kind": "billing"}), False),
        (RequestRefused(-32603, "odd", {"kind": ["overloaded"]}), False),
        (SpawnFailed("agent", FileNotFoundError()), False),
        (AcpError("no"), False),
        (OSError(28, "No space left on device"), False),
    ],
    ids=str,
)
def test_what_may_succeed_later_is_marked_as_retryable(error: Exception, retryable: bool) -> None:
    assert is_retryable(error) is retryable


def test_every_error_of_a_run_has_all_its_fields(place: Place) -> None:
    for agent, retryable in ((place.agent(agents.Fails), False), ("sh -c 'exit 3'", True), ("nosuch", False)):
        error = checked(place.run("x", "--json", "--agent", agent)).result["error"]
        assert {name: type(value) for name, value in error.items()} == FIELDS
        assert error["retryable"] is retryable
    done = place.run("x", "--json", "--timeout", "soon")
    assert {name: type(value) for name, value in json.loads(done.out)["error"].items()} == FIELDS


FIELDS = {"kind": str, "message": str, "hint": str, "retryable": bool}


def test_what_an_agent_draws_is_data_in_events(place: Place) -> None:
    done = checked(place.run("x", "--json", "--agent", place.agent(agents.Draws)))
    assert done.of("message")[0]["text"].startswith("red\x1b[31m") and "\x1b" not in done.out
