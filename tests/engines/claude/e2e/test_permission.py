"""Tools that need permission: what is asked, and what each answer means."""

import asyncio

from antiphon import v1
from tests.engines.claude.model.steps import Call, Text
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import on_versions, proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import Can, Client, connected


def touch(name: str) -> Call:
    return Call("Bash", {"command": f"touch {name}", "description": "Make a file"})


def kinds(asked: v1.RequestPermission) -> list[str]:
    return [option.kind.value for option in asked.options]


def names(client: Client) -> set[str]:
    return {path.name for path in client.at.folder.iterdir() if not path.name.startswith(".")}


def why(form: v1.FormElicitation) -> v1.Accepted:
    [field] = form.requested_schema.properties
    return v1.Accepted({field: "call it alto instead"})


@proves("permission.asked", "permission.allow-once", "permission.reject-once", "permission.reject-message", on=BOTH)
async def test_what_is_asked_shows_what_it_would_do_and_each_answer_counts_once(at: Place) -> None:
    song = at.folder / "song.txt"
    async with connected(at, Can(forms=why)) as client:
        # Allowed once: the next one is asked for again.
        at.model.answers(touch("one"))
        at.model.answers(touch("two"))
        reply = await client.say("make two files")
        assert names(client) == {"one", "two"} and reply.stop == "end_turn"
        first, second = client.asked
        assert first.tool_call.raw_input == {"command": "touch one", "description": "Make a file"}
        assert "touch one" in str(first.tool_call.title) and first.tool_call.kind == v1.ToolKind.EXECUTE
        assert "touch two" in str(second.tool_call.title)
        assert kinds(first)[0] == "allow_once" and {"allow_always", "reject_once"} <= set(kinds(first))

        # An edit shows its diff.
        at.model.answers(Call("Write", {"file_path": str(song), "content": "la la\n"}))
        await client.say("write")
        assert v1.Diff(str(song), "la la\n") in (client.asked[-1].tool_call.content or [])
        assert song.read_text(encoding="utf-8") == "la la\n"

        # Rejected: it does not run, and the turn goes on.
        at.model.answers(touch("three"))
        at.model.answers(Text("Then I will not."))
        client.decisions.append("reject_once")
        reply = await client.say("make a file")
        assert (
            reply.text == "Then I will not." and reply.stop == "end_turn" and reply.call("Bash")["status"] == "failed"
        )
        assert "rejected" in at.model.last.result_texts[0]

        # Rejected with a message: the model gets it.
        at.model.answers(touch("four"))
        client.decisions.append("reject_with_message")
        await client.say("make a file")
        assert "call it alto instead" in at.model.last.result_texts[0]
        assert names(client) == {"one", "two", "song.txt"}


@proves("permission.always-session", "permission.rules-only", on=BOTH)
async def test_what_is_allowed_for_the_session_is_not_asked_again_and_the_mode_stays(at: Place) -> None:
    for name in ("one", "one two"):  # the rule that is suggested is for what begins like the first
        at.model.answers(touch(name))
    for name in ("three", "four"):
        at.model.answers(Call("Write", {"file_path": str(at.folder / name), "content": name}))
    at.model.answers(Call("Bash", {"command": "cp one five", "description": "Copy"}))
    async with connected(at) as client:
        client.decisions += ["allow_session", "allow_session"]
        await client.say("make files")
        assert names(client) == {"one", "two", "three", "four", "five"}
        assert [asked.tool_call.name for asked in client.asked] == ["Bash", "Write", "Bash"]
        assert client.session.modes is not None and client.session.modes.current_mode_id == "default"
        assert not client.updates_of("current_mode_update")
    assert not (at.folder / ".claude").exists()


@proves("permission.always-project", "permission.rules-only", on=BOTH)
async def test_what_is_allowed_for_the_project_is_not_asked_in_another_session(at: Place) -> None:
    async with connected(at) as client:
        client.decisions.append("allow_project")
        at.model.answers(touch("one"))
        await client.say("make a file")
        assert not (at.folder / ".claude").exists()
        await client.open()
        at.model.answers(touch("one two"))
        at.model.answers(Call("Write", {"file_path": str(at.folder / "three"), "content": "3"}))
        await client.say("make another")
        assert [asked.tool_call.name for asked in client.asked] == ["Bash", "Write"]
        assert client.session.modes is not None and client.session.modes.current_mode_id == "default"
    assert names(client) == {"one", "two", "three"}


@proves("permission.parallel")
async def test_several_requests_each_get_their_own_answer(at: Place) -> None:
    task = {"prompt": "make a file", "subagent_type": "general-purpose", "run_in_background": False}
    at.model.answers(Call("Agent", {**task, "description": "First"}), Call("Agent", {**task, "description": "Second"}))
    at.model.agent_answers(Call("Bash", {"command": "touch one", "description": "One"}))
    at.model.agent_answers(Call("Bash", {"command": "touch two", "description": "Two"}))
    both = asyncio.Event()

    async def decide(asked: v1.RequestPermission) -> bool:
        if len(client.asked) == 2:
            both.set()
        await both.wait()  # neither is answered before both are open
        return "touch one" in str(asked.tool_call.title)

    async with connected(at) as client:
        client.decisions += [decide, decide]
        await client.say("delegate twice")
        assert names(client) == {"one"}
    assert len({asked.tool_call.tool_call_id for asked in client.asked}) == 2


@on_versions(*BOTH)
async def test_a_rule_of_the_user_that_asks_stands_above_what_was_allowed_for_the_session(at: Place) -> None:
    song = at.folder / "song.txt"
    at.settings(permissions={"ask": ["Edit"]})
    at.model.answers(Call("Write", {"file_path": str(song), "content": "la\n"}))
    at.model.answers(Call("Edit", {"file_path": str(song), "old_string": "la", "new_string": "li"}))
    async with connected(at) as client:
        client.decisions.append("allow_session")
        await client.say("write, then edit")
    written, edited = client.asked
    assert "allow_always" in kinds(written) and "allow_always" not in kinds(edited)
