"""Two engines at once: the updates of each are in its own order, and no message is cut in two by another one."""

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


class Sent:
    """An order, and what was sent through it."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, v1.Update]] = []
        self.order = MessageOrder(self.take)

    def take(self, name: str, update: v1.Update) -> Awaitable[None]:
        self.updates.append((name, update))
        return NO_WAIT

    def send(self, name: str, update: v1.Update) -> None:
        _ = self.order.send(name, update)


def test_updates_of_another_engine_wait_until_the_message_is_over() -> None:
    sent = Sent()
    sent.send("claude", word("one "))
    sent.send("codex", word("eins "))
    sent.send("claude", word("two"))
    assert sent.updates == [("claude", word("one ")), ("claude", word("two"))]
    sent.send("claude", call("a"))
    assert sent.updates[2:] == [("claude", call("a")), ("codex", word("eins "))]


def test_a_message_ends_with_the_turn_of_its_engine() -> None:
    sent = Sent()
    sent.send("claude", word("one"))
    sent.send("codex", word("eins"))
    sent.send("codex", call("b"))
    sent.order.done("claude")
    assert sent.updates[1:] == [("codex", word("eins")), ("codex", call("b"))]
    sent.send("claude", word("free again"))
    assert sent.updates[-1] == ("claude", word("free again"))


def test_updates_of_an_engine_come_before_its_request() -> None:
    sent = Sent()
    sent.send("claude", word("one"))
    sent.send("codex", call("b"))
    sent.order.claim("codex")
    assert sent.updates == [("claude", word("one")), ("codex", call("b"))]
    sent.send("codex", word("held"))
    sent.send("claude", word(" two"))
    sent.order.done("claude")
    assert [name for name, _ in sent.updates] == ["claude", "codex", "claude", "codex"]


@given(st.lists(st.tuples(st.sampled_from(["claude", "codex", "third"]), st.booleans()), max_size=40))
def test_every_update_is_sent_once_in_its_order_and_messages_are_whole(texts: list[tuple[str, bool]]) -> None:
    sent = Sent()
    everything: dict[str, list[v1.Update]] = {"claude": [], "codex": [], "third": []}
    for number, (name, talks) in enumerate(texts):
        update = word(str(number)) if talks else call(str(number))
        everything[name].append(update)
        sent.send(name, update)
    for name in everything:
        sent.order.done(name)
    for name, updates in everything.items():
        assert [update for each, update in sent.updates if each == name] == updates
    runs = [(name, [update for _, update in group]) for name, group in groupby(sent.updates, key=lambda each: each[0])]
    for name, run in runs[:-1]:
        following = everything[name][everything[name].index(run[-1]) + 1 :]
        # An engine that was interrupted had sent something that is not a message, or was done.
        assert not isinstance(run[-1], v1.AgentMessageChunk) or not following
