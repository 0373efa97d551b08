"""What sub-agents sent and did stands in files of their own, and is sent under the calls that started them."""

from pathlib import Path

import pytest

from antiphon.engines.claude import wire
from antiphon.engines.claude.history.replay import wire_lines
from tests.engines.claude.history.files import NEW, OLD, SessionFile, call, text
from tests.engines.claude.history.test_replay import replayed_lines


@pytest.fixture(params=[NEW, OLD])
def session(tmp_path: Path, request: pytest.FixtureRequest) -> SessionFile:
    return SessionFile(tmp_path, version=request.param)


def some_work(agent: SessionFile, name: str = "s1") -> None:
    agent.user("do it")
    agent.assistant(text("I do."))
    agent.assistant(call(name, "Bash", command="echo"))
    agent.result(name, "out")
    agent.assistant(text("Did."))


WORK = ["t1> agent: I do.", "t1> call s1: Bash", "t1> result s1: out", "t1> agent: Did."]


def test_a_sub_agent_is_replayed_between_its_call_and_the_result(session: SessionFile) -> None:
    session.user("go")
    session.assistant(call("t1", "Agent", prompt="do it"))
    session.result("t1", [text("Did.")], {"status": "completed", "agentId": "a1"})
    some_work(session.agent("a1", "t1"))
    assert replayed_lines(session) == [
        "user: go",
        "call t1: Agent",
        *WORK,
        "result t1: [{'type': 'text', 'text': 'Did.'}]",
    ]


def test_without_a_description_the_result_names_the_sub_agent(session: SessionFile) -> None:
    session.user("go")
    session.assistant(call("t1", "Task", prompt="do it"))
    session.result("t1", "Did.", {"status": "completed", "agentId": "a1"})
    some_work(session.agent("a1", None))
    assert replayed_lines(session) == ["user: go", "call t1: Task", *WORK, "result t1: Did."]


def test_versions_before_kept_sub_agents_beside_the_session(session: SessionFile) -> None:
    session.user("go")
    session.assistant(call("t1", "Task", prompt="do it"))
    session.result("t1", "Did.", {"agentId": "a1"})
    some_work(session.agent("a1", None, beside=True))
    assert replayed_lines(session) == ["user: go", "call t1: Task", *WORK, "result t1: Did."]


def test_a_sub_agent_in_the_background_is_over_when_its_task_is(session: SessionFile) -> None:
    session.user("go")
    session.assistant(call("t1", "Agent", prompt="do it"))
    session.result("t1", "launched", {"status": "async_launched", "agentId": "a1"})
    session.assistant(text("Started."))
    note = (
        "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t1</tool-use-id>\n<output-file>/o</output-file>\n"
        "<status>completed</status>\n<summary>finished</summary>\n<result>Did a <b>thing</b>.</result>\n</task-notification>"
    )
    session.user(note, origin={"kind": "task-notification"})
    some_work(session.agent("a1", "t1"))
    assert replayed_lines(session)[-2:] == ["agent: Started.", "TaskNotification"]
    assert [*wire_lines(session.path)][-1] == wire.TaskNotification(
        task_id="a1", tool_use_id="t1", status="completed", summary="Did a <b>thing</b>.", output_file="/o"
    )


def test_an_update_of_a_task_may_also_come_in_the_middle_of_a_turn(session: SessionFile) -> None:
    session.user("go")
    note = "<task-notification><task-id>a1</task-id><status>failed</status></task-notification>"
    queued = {"type": "queued_command", "prompt": note, "commandMode": "task-notification"}
    session.say("attachment", attachment=queued)
    assert replayed_lines(session) == ["user: go", "TaskNotification"]


def test_sub_agents_of_sub_agents_are_replayed_under_their_own_calls(session: SessionFile) -> None:
    session.user("go")
    session.assistant(call("t1", "Agent", prompt="outer"))
    outer = session.agent("a1", "t1")
    outer.user("outer")
    outer.assistant(call("t2", "Agent", prompt="inner"))
    outer.result("t2", "ok", {"agentId": "a2"})
    inner = session.agent("a2", None)
    inner.user("inner")
    inner.assistant(text("deep"))
    assert replayed_lines(session) == [
        "user: go",
        "call t1: Agent",
        "t1> call t2: Agent",
        "t2> agent: deep",
        "t1> result t2: ok",
    ]


def test_a_sub_agent_that_names_itself_is_replayed_once(session: SessionFile) -> None:
    session.user("go")
    session.assistant(call("t1", "Agent", prompt="x"))
    loop = session.agent("a1", "t1")
    loop.assistant(call("t1", "Agent", prompt="x"))
    assert replayed_lines(session) == ["user: go", "call t1: Agent", "t1> call t1: Agent"]


@pytest.mark.parametrize("name", ["../../other", "a/b", ""])
def test_a_name_that_leads_elsewhere_is_not_followed(session: SessionFile, name: str) -> None:
    session.user("go")
    session.assistant(call("t1", "Agent", prompt="x"))
    session.result("t1", "ok", {"agentId": name})
    assert replayed_lines(session) == ["user: go", "call t1: Agent", "result t1: ok"]


def test_lines_of_sub_agents_inside_the_sessions_own_file_are_not_replayed_as_the_session(
    session: SessionFile,
) -> None:
    session.user("go")
    session.assistant(call("t1", "Task", prompt="x"))
    session.say("user", after=None, message={"role": "user", "content": "x"}, isSidechain=True)
    session.common = {"isSidechain": True}
    session.assistant(text("aside"))
    session.common = {}
    session.last = None
    assert replayed_lines(session) == ["user: go", "call t1: Task"]
