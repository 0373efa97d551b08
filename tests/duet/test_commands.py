"""Our own commands: what is ours, what is meant, and what goes to the engines."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon.duet.commands import (
    OWN,
    EngineCommand,
    ExplainCommand,
    NudgeCommand,
    OwnAction,
    PlainCommand,
    ReviewCommand,
    RouteCommand,
    offered,
    parse,
    reserved,
)
from tests.rows import each_row

ENGINES = ["claude", "codex", "my_agent"]


@each_row(
    ("text", "asked"),
    [
        ("/claude", RouteCommand("claude")),
        ("/codex what is\n\nthis?", RouteCommand("codex", "what is\n\nthis?")),
        ("  /my_agent  hello  ", RouteCommand("my_agent", "hello")),
        ("/duet", RouteCommand("duet")),
        ("/duet compare", RouteCommand("duet", "compare")),
        ("/review", ReviewCommand()),
        ("/review fix", ReviewCommand(then="fix")),
        ("/review report", ReviewCommand(then="report")),
        ("/review fix the parser", ReviewCommand("fix the parser")),
        ("/clear", PlainCommand("clear")),
        ("/clear please", PlainCommand("clear")),
        ("/nudge", NudgeCommand()),
        ("/nudge on", NudgeCommand(True)),
        ("/nudge OFF", NudgeCommand(False)),
        ("/nudge perhaps", NudgeCommand(odd="perhaps")),
        ("/status", PlainCommand("status")),
        ("/version", PlainCommand("version")),
        ("/explain src/a.py:10-20", ExplainCommand("src/a.py:10-20")),
        ("/explain", ExplainCommand()),
        ("/sessions", PlainCommand("sessions")),
        ("/help", PlainCommand("help")),
        ("/claude:review src", EngineCommand("claude", "/review src")),
        ("/codex:compact", EngineCommand("codex", "/compact")),
        ("/claude:plugin:do it", EngineCommand("claude", "/plugin:do it")),
    ],
)
def test_what_is_ours_is_understood(text: str, asked: OwnAction) -> None:
    command = parse(text, ENGINES)
    assert command is not None and command.asked == asked
    assert text.strip().startswith(f"/{command.name}")


@each_row(
    "text",
    [
        "", "/", "/ claude", "claude", "say /claude", "//claude", "/compact", "/gemini hi", "/gemini:compact", "/claude:", "/:review",
        "/etc/hosts", "/Claude", "/help.md", "/review/x",
    ],
)  # fmt: skip
def test_everything_else_goes_to_the_engine(text: str) -> None:
    assert parse(text, ENGINES) is None


def test_with_one_engine_review_is_its_own() -> None:
    assert parse("/review fix", ["codex"]) is None
    assert "review" not in [command.name for command in offered({"codex": "Codex"})]


@given(st.text(), st.lists(st.sampled_from(ENGINES), unique=True))
def test_no_text_is_too_odd(text: str, engines: list[str]) -> None:
    command = parse(text, engines)
    assert command is None or text.strip().startswith("/")


def test_what_is_offered_is_understood_and_the_other_way_round() -> None:
    titles = {"claude": "Claude Code", "codex": "Codex"}
    names = [command.name for command in offered(titles)]
    assert names == ["claude", "codex", *(own.name for own in OWN)] and set(names) - set(titles) == reserved()
    assert all(parse(f"/{name}", list(titles)) is not None for name in names)
    alone = offered({"claude": "Claude Code"})
    assert {command.name for command in alone} == reserved() - {"duet", "review"}
    assert all(command.description for command in (*offered(titles), *alone))
