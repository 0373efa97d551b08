"""Sub-agents: their calls are sent, their messages are folded into the call that started them, which ends when they do."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.claude.translate.messages import MAX_FOLDED
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.protocol import v1
from tests.engines.claude.translate.lines import (
    answer,
    assistant_message,
    call,
    calling,
    described,
    ended,
    event,
    feed,
    result,
    system,
    text,
    thought,
    translated,
)

AGENT = assistant_message(call("a", "Agent", description="Look around", prompt="look"))
LAUNCHED = {"isAsync": True, "status": "async_launched", "agentId": "x"}
DONE = {"status": "completed", "content": [{"type": "text", "text": "All is well."}]}
OVER = system("task_notification", task_id="x", tool_use_id="a", status="completed", summary="All is well.")


def test_messages_of_a_sub_agent_are_folded_into_its_call() -> None:
    events = translated(
        AGENT, assistant_message(thought("hm"), parent="a"), assistant_message(text("I look."), parent="a")
    )
    assert not [each for each in events if isinstance(each, v1.MessageChunk)]
    assert described(events)[1:] == ["update a shows '> hm'", "update a shows '> hm\\n\\nI look.'"]


def test_what_a_sub_agent_streams_is_not_a_message() -> None:
    delta = event("content_block_delta", index=0, delta={"type": "text_delta", "text": "x"}, parent="a")
    assert translated(AGENT, delta)[1:] == []


def test_calls_of_a_sub_agent_name_their_parent() -> None:
    events = translated(
        AGENT,
        *calling("r", "Read", parent="a"),
        assistant_message(call("r", "Read", file_path="/x"), parent="a"),
        answer("r", "x", parent="a"),
    )
    about = [
        each.meta["claudeCode"]
        for each in events[1:]
        if isinstance(each, v1.ToolCall | v1.ToolCallUpdate) and each.meta
    ]
    assert about == [{"toolName": "Read", "parentToolUseId": "a"}] * 3


def test_the_report_is_shown_once_with_all_messages() -> None:
    events = translated(
        AGENT,
        assistant_message(text("I look."), parent="a"),
        assistant_message(text("All is well."), parent="a"),
        answer("a", "…", DONE),
    )
    assert described(events)[-1] == "update a completed shows 'I look.\\n\\nAll is well.' +output"
    events = translated(AGENT, assistant_message(text("I look."), parent="a"), answer("a", "…", DONE))
    assert described(events)[-1] == "update a completed shows 'I look.' shows 'All is well.' +output"


def test_a_sub_agent_in_the_background_outlives_the_turn() -> None:
    translator = ClaudeTranslator("/project")
    events = feed(
        translator, AGENT, answer("a", "Off it goes.", LAUNCHED), assistant_message(text("I wait.")), result()
    )
    assert ended(events) == [] and translator.close_open() == ()
    assert ended(feed(translator, assistant_message(call("r", "Bash", command="ls"), parent="a"), result())) == []
    assert ended(feed(translator, OVER)) == ["r failed", "a completed"]


def test_a_sub_agent_that_was_stopped_fails() -> None:
    assert ended(translated(AGENT, answer("a", "…", LAUNCHED), {**OVER, "status": "stopped"})) == ["a failed"]


def test_the_end_of_a_sub_agent_in_the_foreground_is_its_result() -> None:
    events = translated(AGENT, system("task_started", task_id="x", tool_use_id="a"), OVER, answer("a", "…", DONE))
    assert ended(events) == ["a completed"]


def test_a_task_may_be_named_without_its_call() -> None:
    started = system("task_started", task_id="x", tool_use_id="a")
    over = {key: value for key, value in OVER.items() if key != "tool_use_id"}
    assert ended(translated(AGENT, started, answer("a", "…", LAUNCHED), over)) == ["a completed"]


def test_a_process_that_is_gone_takes_its_sub_agents_along() -> None:
    translator = ClaudeTranslator("/project")
    feed(
        translator, AGENT, answer("a", "…", LAUNCHED), assistant_message(call("r", "Read", file_path="/x"), parent="a")
    )
    assert ended(translator.close_open(background=True)) == ["r failed", "a failed"]


def test_open_calls_below_a_sub_agent_end_before_it() -> None:
    events = translated(
        AGENT,
        assistant_message(call("b", "Agent", prompt="x"), parent="a"),
        assistant_message(call("r", "Bash"), parent="b"),
        answer("a", "…", DONE),
    )
    assert ended(events) == ["r failed", "b failed", "a completed"]


def test_a_launch_in_a_history_is_an_end() -> None:
    events = translated(
        AGENT, assistant_message(text("All is well."), parent="a"), answer("a", "…", LAUNCHED), replay=True
    )
    assert described(events)[-1] == "update a completed shows 'All is well.' +output"


def test_the_messages_of_a_sub_agent_are_kept_short() -> None:
    events = translated(AGENT, *(assistant_message(text("word " * 400), parent="a") for _ in range(30)))
    last = events[-1]
    assert isinstance(last, v1.ToolCallUpdate) and isinstance(last.content, list)
    (item,) = last.content
    assert isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)
    assert len(item.content.text) <= MAX_FOLDED


def test_messages_of_an_unknown_sub_agent_are_not_shown() -> None:
    assert translated(assistant_message(text("hello?"), parent="nobody")) == []


def test_a_sub_agents_plan_is_its_own() -> None:
    todos = [{"content": "A", "status": "pending"}]
    assert (
        translated(
            AGENT, assistant_message(call("p", "TodoWrite", todos=todos), parent="a"), answer("p", "ok", parent="a")
        )[1:]
        == []
    )


def test_a_sub_agent_that_claims_to_be_its_own_parent_ends_once() -> None:
    assert ended(translated(assistant_message(call("a", "Agent", prompt="x"), parent="a"), answer("a", "…", DONE))) == [
        "a completed"
    ]


FRAMES = st.lists(
    st.sampled_from(
        [
            "<tools-used-before-summary>Bash,Read</tools-used-before-summary>\n",
            "<tools-used-before-summary></tools-used-before-summary>\n\n",
            "<system>authentic event nonces: 1 2</system>\n",
        ]
    ),
    max_size=3,
).map("".join)
SPACES = st.sampled_from(["", "\n", "\n\n", " "])


@given(FRAMES, SPACES, st.booleans(), st.booleans(), st.sampled_from(["Agent", "Task", "Skill"]))
def test_a_report_is_shown_once_and_without_what_the_cli_puts_around_it(
    frame: str, space: str, apart: bool, background: bool, name: str
) -> None:
    """In one block or in two, at once or as the end of a task, with other white space than what was sent."""
    report = f"I looked.{space or ' '}All is well."
    texts = [frame, report] if apart and frame else [f"{frame}{report}"]
    done = {"status": "completed", "content": [{"type": "text", "text": each} for each in texts]}
    over = system("task_notification", task_id="x", tool_use_id="a", status="completed", summary="".join(texts))
    end = (
        [answer("a", "…", LAUNCHED), over]
        if background and name != "Skill"
        else [answer("a", [*done["content"]], done)]
    )
    events = translated(
        assistant_message(call("a", name, prompt="look")),
        assistant_message(text("I looked. All is well."), parent="a"),
        *end,
    )
    shown = str([each for each in events if isinstance(each, v1.ToolCallUpdate)][-1].content)
    assert "tools-used" not in shown and "nonces" not in shown
    assert shown.count("All is well.") == 1
