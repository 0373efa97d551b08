"""Two engines at once: each is heard in its own order, and no message is cut in two by somebody else's words."""

from collections.abc import Awaitable
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from antiphon.aio import NO_WAIT
from antiphon.duet.routes import MessageOrder
from antiphon.protocol import v1


def word(text: str) -> v1.Update:
    return v1.AgentMessageChunk(v1.TextBlock(text))


def call(id: str) -> v1.Update:
    return v1.ToolCall(id, id)


class Stage:
    """A floor, and what was heard on it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, v1.Update]] = []
        self.floor = MessageOrder(self.tell)

    def tell(self, name: str, update: v1.Update) -> Awaitable[None]:
        self.heard.append((name, update))
        return NO_WAIT

    def say(self, name: str, update: v1.Update) -> None:
        _ = self.floor.send(name, update)


def test_what_the_other_says_waits_until_the_message_is_over() -> None:
    stage = Stage()
    stage.send("claude", word("one "))
    stage.send("codex", word("eins "))
    stage.send("claude", word("two"))
    assert stage.heard == [("claude", word("one ")), ("claude", word("two"))]
    stage.send("claude", call("a"))
    assert stage.heard[2:] == [("claude", call("a")), ("codex", word("eins "))]


def test_a_turn_that_ends_frees_the_floor() -> None:
    stage = Stage()
    stage.send("claude", word("one"))
    stage.send("codex", word("eins"))
    stage.send("codex", call("b"))
    stage.floor.done("claude")
    assert stage.heard[1:] == [("codex", word("eins")), ("codex", call("b"))]
    stage.send("claude", word("free again"))
    assert stage.heard[-1] == ("claude", word("free again"))


def test_who_has_to_ask_the_user_is_heard_before_the_question() -> None:
    stage = Stage()
    stage.send("claude", word("one"))
    stage.send("codex", call("b"))
    stage.floor.claim("codex")
    assert stage.heard == [("claude", word("one")), ("codex", call("b"))]
    stage.send("codex", word("held"))
    stage.send("claude", word(" two"))
    stage.floor.done("claude")
    assert [name for name, _ in stage.heard] == ["claude", "codex", "claude", "codex"]


@given(st.lists(st.tuples(st.sampled_from(["claude", "codex", "third"]), st.booleans()), max_size=40))
def test_everything_is_heard_once_in_its_order_and_messages_are_whole(said: list[tuple[str, bool]]) -> None:
    stage = Stage()
    everything: dict[str, list[v1.Update]] = {"claude": [], "codex": [], "third": []}
    for number, (name, talks) in enumerate(said):
        update = word(str(number)) if talks else call(str(number))
        everything[name].append(update)
        stage.send(name, update)
    for name in everything:
        stage.floor.done(name)
    for name, updates in everything.items():
        assert [update for each, update in stage.heard if each == name] == updates
    runs = [(name, [update for _, update in group]) for name, group in groupby(stage.heard, key=lambda each: each[0])]
    for name, run in runs[:-1]:
        following = everything[name][everything[name].index(run[-1]) + 1 :]
        # Whoever was interrupted had said something that is no talk, or was done.
        assert not isinstance(run[-1], v1.AgentMessageChunk) or not following
