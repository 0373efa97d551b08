"""From a file to what the client gets, through the translator of the live stream; and from the real CLIs' own files."""

import uuid
from pathlib import Path

import pytest

from antiphon.engines.claude.history import History
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.protocol import v1
from tests.engines.claude.history.files import SessionFile, call, text, thinking
from tests.engines.claude.model.steps import Call, Text, Think
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import on_versions
from tests.engines.claude.versions import BOTH


def replayed_updates(root: Path, session_id: str) -> list[v1.Update]:
    events = History(root).replay(session_id, ClaudeTranslator("/song", replay=True))
    return [each for each in events if isinstance(each, v1.Update)]


def test_a_session_is_replayed_as_the_client_would_have_received_it(tmp_path: Path) -> None:
    session = SessionFile(tmp_path)
    asked = session.user("change it")
    session.assistant(thinking("hm"), message="m1")
    session.assistant(text("Sure."), message="m1")
    session.assistant(call("t1", "Edit", file_path="/song/a", old_string="two", new_string="2"), message="m1")
    patch = [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"]}]
    session.result("t1", "ok", {"filePath": "/song/a", "originalFile": "one\ntwo\nthree\n", "structuredPatch": patch})
    user, thought, printed, called, done = replayed_updates(tmp_path, session.id)
    assert user == v1.UserMessageChunk(content=v1.TextBlock(text="change it"), message_id=v1.MessageId(asked))
    assert (
        isinstance(thought, v1.AgentThoughtChunk)
        and isinstance(printed, v1.AgentMessageChunk)
        and printed.message_id == "m1"
    )
    assert isinstance(called, v1.ToolCall) and called.raw_input and called.name == "Edit"
    assert isinstance(done, v1.ToolCallUpdate) and done.status == v1.ToolStatus.COMPLETED
    assert done.content == [v1.Diff(path="/song/a", old_text="one\ntwo\nthree\n", new_text="one\n2\nthree\n")]


def test_a_call_that_never_came_back_has_failed(tmp_path: Path) -> None:
    session = SessionFile(tmp_path)
    session.user("go")
    session.assistant(call("t1", "Bash", command="sleep"))
    last = replayed_updates(tmp_path, session.id)[-1]
    assert isinstance(last, v1.ToolCallUpdate) and last.status == v1.ToolStatus.FAILED


def test_each_compaction_is_replayed_with_its_summary(tmp_path: Path) -> None:
    session = SessionFile(tmp_path)
    for turn in ("one", "two"):
        session.user(turn)
        last = session.assistant(text("yes"))
        session.say("system", after=None, logicalParentUuid=last, subtype="compact_boundary", compactMetadata={})
        session.user(f"so far {turn}", isCompactSummary=True)
    kinds = [type(each).__name__ for each in replayed_updates(tmp_path, session.id)]
    expected = ["UserMessageChunk", "AgentMessageChunk", "CompactionUpdate", "CompactionSummaryChunk"]
    assert kinds == expected * 2


def test_an_unknown_session_has_no_history(tmp_path: Path) -> None:
    assert replayed_updates(tmp_path, "nobody") == [] and replayed_updates(tmp_path, "../x") == []


@pytest.mark.slow
@on_versions(*BOTH)
def test_what_the_cli_wrote_in_a_terminal_is_listed_and_replayed(at: Place) -> None:
    id = str(uuid.uuid4())
    at.model.answers(Think("hm"), Text("I look. "), Call("Bash", {"command": "echo found"}, id="toolu_1"))
    at.model.answers(Text("There it is."))
    ran = at.run("-p", "where is it?", "--session-id", id, "--allowedTools", "Bash")
    assert ran.returncode == 0, ran.stderr
    again = at.run("-p", "and now?", "--resume", id)
    assert again.returncode == 0, again.stderr

    history = History(at.home / ".claude")
    [found] = history.list(v1.ListSessions(cwd=str(at.folder))).sessions
    assert (found.session_id, found.cwd, found.title) == (id, str(at.folder), "where is it?")

    events = replayed_updates(at.home / ".claude", id)
    asked = [each.content for each in events if isinstance(each, v1.UserMessageChunk)]
    assert asked == [v1.TextBlock(text="where is it?"), v1.TextBlock(text="and now?")]
    [done] = [each for each in events if isinstance(each, v1.ToolCallUpdate) and each.status == v1.ToolStatus.COMPLETED]
    assert done.tool_call_id == "toolu_1"
    texts = [type(each).__name__ for each in events]
    assert texts[:4] == ["UserMessageChunk", "AgentThoughtChunk", "AgentMessageChunk", "ToolCall"]

    assert history.delete(id) and history.list(v1.ListSessions()).sessions == []
