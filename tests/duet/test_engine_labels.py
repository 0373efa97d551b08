"""Whose words they are: a name before each message where more than one engine answers, and ids that cannot be mistaken."""

from antiphon.duet.engine_sessions import Labels
from antiphon.protocol import v1

CHUNK = v1.AgentMessageChunk(v1.TextBlock("hello"), "m1")
LABEL = "**Claude Code**\n\n"


def labelled(labels: Labels, update: v1.Update, *, fresh: bool = True) -> list[tuple[v1.Update, bool]]:
    return list(labels.on(update, fresh=fresh))


def test_an_engine_that_answers_alone_has_no_label_and_its_updates_stay_as_they_are() -> None:
    labels = Labels("claude", "Claude Code", own_ids=False)
    assert labelled(labels, CHUNK) == [(CHUNK, False)]
    assert labelled(labels, v1.ToolCall("c", "Edit a.py")) == [(v1.ToolCall("c", "Edit a.py"), False)]


def test_each_message_begins_with_a_paragraph_that_names_the_engine_in_the_same_message() -> None:
    labels = Labels("claude", "Claude Code", own_ids=False)
    labels.visible = True
    (label, is_label), (chunk, is_not) = labelled(labels, CHUNK)
    assert (is_label, is_not) == (True, False)
    assert isinstance(label, v1.AgentMessageChunk)
    assert (label.content, label.message_id) == (v1.TextBlock(LABEL), "m1")
    assert isinstance(chunk, v1.AgentMessageChunk)
    assert (chunk.content, chunk.meta) == (CHUNK.content, {"antiphon": {"engine": "claude"}})
    assert [is_label for _, is_label in labelled(labels, CHUNK)] == [False], "the next piece of the same message"
    assert len(labelled(labels, v1.AgentMessageChunk(v1.TextBlock("x"), "m2"))) == 2, "another message"


def test_a_message_without_an_id_is_labelled_after_another_update() -> None:
    labels = Labels("codex", "Codex", own_ids=False)
    labels.visible = True
    bare = v1.AgentMessageChunk(v1.TextBlock("x"))
    assert len(labelled(labels, bare, fresh=True)) == 2
    assert len(labelled(labels, bare, fresh=False)) == 1


def test_thoughts_are_labelled_and_the_users_words_are_not() -> None:
    labels = Labels("codex", "Codex", own_ids=False)
    labels.visible = True
    assert len(labelled(labels, v1.AgentThoughtChunk(v1.TextBlock("hm"), "t"))) == 2
    assert len(labelled(labels, v1.UserMessageChunk(v1.TextBlock("hm"), "u"))) == 1


def test_titles_of_calls_name_the_engine_once() -> None:
    labels = Labels("codex", "Codex", own_ids=False)
    labels.visible = True
    call = labels.call(v1.ToolCall("c", "make test"))
    assert (call.title, call.meta) == ("Codex: make test", {"antiphon": {"engine": "codex"}})
    assert labels.call(call).title == "Codex: make test"
    assert labels.call(v1.ToolCallUpdate("c", status=v1.ToolStatus.COMPLETED)).title is v1.UNSET
    kept = labels.call(v1.ToolCallUpdate("c", meta={"other": 1, "antiphon": {"more": 2}}))
    assert kept.meta == {"other": 1, "antiphon": {"more": 2, "engine": "codex"}}


def test_ids_of_an_engine_that_counts_from_one_are_made_its_own() -> None:
    labels = Labels("gemini", "Gemini", own_ids=True)
    [(chunk, _)] = labelled(labels, CHUNK)
    assert isinstance(chunk, v1.AgentMessageChunk)
    assert chunk.message_id == "gemini:m1"
    assert labels.call(v1.ToolCallPatch("1")).tool_call_id == "gemini:1"
    assert labels.own("1") == "gemini:1"


def test_a_kind_of_update_from_tomorrow_is_shown_as_it_came() -> None:
    labels = Labels("codex", "Codex", own_ids=True)
    labels.visible = True
    odd = v1.Unknown("tomorrow", b'{"sessionUpdate":"tomorrow"}')
    assert labelled(labels, odd) == [(odd, False)]
