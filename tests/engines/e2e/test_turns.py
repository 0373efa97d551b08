"""What a turn shows on every engine: text, thoughts, the ids of messages, tokens, a title, and the output of a command."""

from typing import Any

from antiphon import v1
from antiphon.client.terminals import Terminals
from tests.engines.client import Can, Client, connected
from tests.engines.model.steps import Gate, Text, Think, Used, Wait
from tests.engines.places import Place
from tests.engines.subjects import proves

SING = "echo sung >> song.txt; echo aloud"


def text_of(updates: list[v1.Update], kind: type[v1.AgentMessageChunk | v1.AgentThoughtChunk]) -> str:
    chunks = [each.content for each in updates if isinstance(each, kind)]
    return "".join(each.text for each in chunks if isinstance(each, v1.TextBlock))


async def free(client: Client) -> None:
    """Open a session in which a command runs: Codex keeps it in a sandbox otherwise, Claude Code asks and is allowed to."""
    await client.open()
    if isinstance(client.at, Place) and client.at.engine == "codex":
        await client.session.set_mode("bypassPermissions")


@proves(
    "turn.text", "turn.once", "turn.thinking", "stop.end-turn", "turn.message-ids", "turn.usage", claude=["turn.cost"]
)
async def test_text_and_thoughts_stream_once_and_each_message_has_its_own_id(at: Place) -> None:
    gate = Gate()
    at.model.answers(Think("what might rhyme"), Text("a first line, "), Wait(gate), Text("and then a second"))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing")
        received: list[v1.Update] = []
        async for update in turn:
            received.append(update)
            if "first line, " in text_of(received, v1.AgentMessageChunk):
                break
        await gate.is_reached()  # it was sent before the model had finished
        gate.open()
        received += [update async for update in turn]
        assert turn.result.stop_reason is v1.StopReason.END_TURN

        at.model.answers(Text("let me look"), at.calls.command("true"))
        at.model.answers(Text("I have seen it"), Used(1000, 34, cache_read=300))
        reply = await client.say("look")
    assert text_of(received, v1.AgentMessageChunk) == "a first line, and then a second"
    assert text_of(received, v1.AgentThoughtChunk) == "what might rhyme"
    assert len([each for each in received if isinstance(each, v1.AgentMessageChunk)]) > 2
    ids = [each.message_id for each in reply.of(v1.AgentMessageChunk)]
    assert reply.text == "let me lookI have seen it"
    assert None not in ids and len(set(ids)) == 2 and ids == sorted(ids, key=ids.index)
    [*_, usage] = reply.of(v1.UsageUpdate)
    counted = reply.result.usage
    assert usage.size > 100_000 and counted is not None and counted.output_tokens >= 34
    if at.engine == "claude":
        assert usage.used >= 1300 and counted.cached_read_tokens == 300
        assert usage.cost is not None and usage.cost.amount > 0 and usage.cost.currency == "USD"
    else:
        assert usage.used == 1034


@proves("turn.command-meta", every_version=False)
async def test_a_client_that_announces_it_gets_the_output_by_the_meta_of_terminals(at: Place) -> None:
    at.model.answers(at.calls.command(f"{SING}; exit 3"))
    async with connected(at, Can(meta={"terminal_output": True})) as client:
        await free(client)
        reply = await client.say("sing")
    history, call = reply.history("Bash"), reply.call("Bash")
    metas: dict[str, Any] = {}
    for each in history:
        metas |= each.get("_meta") or {}
    id = call["toolCallId"]
    assert {each["terminal_id"] for name, each in metas.items() if name.startswith("terminal_")} == {id}
    assert metas["terminal_info"]["cwd"] == str(at.folder) and "aloud" in metas["terminal_output"]["data"]
    assert metas["terminal_exit"]["exit_code"] == 3
    assert {"type": "terminal", "terminalId": id} in [item for each in history for item in each.get("content") or []]
    assert (at.folder / "song.txt").read_text(encoding="utf-8") == "sung\n"


@proves("turn.command-mirror", every_version=False)
async def test_a_client_with_terminals_gets_one_that_prints_what_was_captured_and_runs_nothing(at: Place) -> None:
    at.model.answers(at.calls.command(SING))
    at.environment["ANTIPHON_MIRROR_TERMINALS"] = "1"
    async with connected(at, Can(terminals=Terminals())) as client:
        await free(client)
        reply = await client.say("sing")
        created = [each["params"] for each in client.frames if each.get("method") == "terminal/create"]
    assert len(created) == 1 and "song.txt" not in str(created)
    shown = [item for each in reply.history("Bash") for item in each.get("content") or []]
    assert any(item["type"] == "terminal" for item in shown)
    assert (at.folder / "song.txt").read_text(encoding="utf-8") == "sung\n"  # it ran once
