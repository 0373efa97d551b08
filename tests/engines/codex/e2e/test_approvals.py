"""Commands and changes that Codex may only do when the user says so."""

import asyncio
import os

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import Client, connected
from tests.engines.codex.model.steps import Call, command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.stand_in_lines import asked, message, notification, responses_received, stand_in_says
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Text
from tests.engines.proofs import STAND_IN

ADD = ("*** Add File: song.txt", "+la")


def touch(name: str, why: str = "May I sing?") -> Call:
    """A command that wants to leave the sandbox."""
    return command(f"touch {name}", sandbox_permissions="require_escalated", justification=why)


def kinds(request: v1.RequestPermission) -> list[str]:
    return [option.kind.value for option in request.options]


def texts(request: v1.RequestPermission) -> str:
    items = [each.content for each in request.tool_call.content or () if isinstance(each, v1.ContentItem)]
    return "\n".join(each.text for each in items if isinstance(each, v1.TextBlock))


async def asking(client: Client) -> None:
    await client.open()
    await client.session.set_mode("default")


@proves("approval.command", "approval.accept", "approval.session", "approval.decline", "approval.cancel", on=BOTH)
async def test_each_answer_about_a_command_does_what_it_names(at: Place) -> None:
    song = at.folder / "song.txt"
    async with connected(at) as client:
        # Allowed once: the next one is asked for again.
        await asking(client)
        for _ in range(2):
            at.model.answers(touch("song.txt"))
            client.decisions.append("allow_once")
            reply = await client.say("sing")
            assert reply.call("Bash")["status"] == "completed" and song.exists()
        first, second = client.asked
        assert first.tool_call.title == "touch song.txt" and first.tool_call.name == "Bash"
        assert first.tool_call.raw_input == {"command": "touch song.txt", "cwd": str(at.folder)}
        assert "May I sing?" in texts(first) and kinds(first)[0] == "allow_once" and second.tool_call.title
        assert first.tool_call.tool_call_id != second.tool_call.tool_call_id
        song.unlink()

        # Rejected: it does not run, and the turn goes on.
        at.model.answers(touch("song.txt"))
        at.model.answers(Text("then not"))
        client.decisions.append("reject")
        reply = await client.say("sing")
        assert reply.text == "then not" and reply.stop == "end_turn"
        assert reply.call("Bash")["status"] == "failed" and "declined" in str(reply.call("Bash")["content"])

        # Rejected and stopped: the turn ends.
        at.model.answers(touch("song.txt"))
        client.decisions.append("reject_and_stop")
        before = len(at.model.asked)
        reply = await client.say("sing")
        assert reply.stop == "cancelled" and reply.call("Bash")["status"] == "failed"
        assert len(at.model.asked) == before + 1 and not song.exists()
        assert (await client.say("go on")).text == "echo: go on"

        # Allowed for the session: not asked for again there, but in another session.
        client.asked.clear()
        client.decisions.append("allow_session")
        for _ in range(2):
            at.model.answers(touch("song.txt"))
            await client.say("sing")
        assert len(client.asked) == 1
        await asking(client)
        at.model.answers(touch("song.txt"))
        await client.say("sing")
        assert len(client.asked) == 2
    assert not (at.codex_home / "rules").exists()


@proves("approval.amendment", on=BOTH)
async def test_a_rule_for_always_is_kept_by_codex(at: Place) -> None:
    async with connected(at) as client:
        await asking(client)
        client.decisions.append("allow_always_prefix")
        at.model.answers(touch("one.txt"))
        await client.say("sing")
        always = next(each for each in client.asked[0].options if each.option_id == "allow_always_prefix")
        assert "touch" in always.name
    rules = (at.codex_home / "rules" / "default.rules").read_text(encoding="utf-8")
    assert "touch" in rules and "allow" in rules
    async with connected(at) as client:
        await asking(client)
        at.model.answers(touch("one.txt"))
        await client.say("sing")
        assert client.asked == []


@proves("approval.change", "approval.accept", "approval.session", "approval.decline", "approval.cancel", on=BOTH)
async def test_changes_are_asked_for_with_their_diff_and_each_answer_does_what_it_names(at: Place) -> None:
    song, edits = at.write("song.txt", "do\nre\nmi\n"), (("re", "RE"), ("RE", "re"), ("re", "RE"))
    async with connected(at) as client:
        await asking(client)
        # Rejected, and rejected and stopped.
        client.decisions += ["reject", "reject_and_stop"]
        at.model.answers(patch("*** Add File: new.txt", "+la"))
        at.model.answers(Text("then not"))
        reply = await client.say("write")
        assert reply.text == "then not" and reply.call("Write")["status"] == "failed"
        at.model.answers(patch("*** Add File: new.txt", "+la"))
        reply = await client.say("write")
        assert reply.stop == "cancelled" and reply.call("Write")["status"] == "failed"
        assert not (at.folder / "new.txt").exists()

        # Allowed once, then for the session.
        client.asked.clear()
        client.decisions += ["allow_once", "allow_session"]
        for old, new in edits:
            at.model.answers(patch("*** Update File: song.txt", "@@", " do", f"-{old}", f"+{new}", " mi"))
            await client.say("louder")
        first, _second = client.asked  # and no third: allowed for the session
    [diff] = [each for each in first.tool_call.content or () if isinstance(each, v1.Diff)]
    assert (diff.path, diff.old_text, diff.new_text) == (str(song), "do\nre\nmi\n", "do\nRE\nmi\n")
    assert first.tool_call.name == "Edit" and "song.txt" in str(first.tool_call.title)
    assert song.read_text(encoding="utf-8") == "do\nRE\nmi\n"


@proves("approval.parallel")
async def test_several_requests_at_once_each_get_their_own_answer(at: Place) -> None:
    names = ("one.txt", "two.txt", "three.txt")
    every, met = asyncio.Event(), dict[str, str]()

    async def decide(request: v1.RequestPermission) -> str:
        met[str(request.tool_call.title)] = request.tool_call.tool_call_id
        if len(met) == len(names):
            every.set()
        await asyncio.wait_for(every.wait(), 20)  # all are open at the same time
        return "reject" if "two" in str(request.tool_call.title) else "allow"

    at.model.answers(*[touch(name) for name in names])
    async with connected(at) as client:
        await asking(client)
        client.decisions += [decide] * 3
        reply = await client.say("sing")
    assert reply.stop == "end_turn" and set(met) == {f"touch {name}" for name in names}
    assert [(at.folder / name).exists() for name in names] == [True, False, True]
    ended = {each.tool_call_id: each.status for each in reply.of(v1.ToolCallUpdate) if each.status}
    assert ended[met["touch two.txt"]] is v1.ToolStatus.FAILED
    assert ended[met["touch one.txt"]] is v1.ToolStatus.COMPLETED


@proves("approval.elsewhere", on=[STAND_IN])
async def test_a_request_that_was_settled_elsewhere_is_cancelled_at_the_client(at: Place) -> None:
    pipe = at.pipe()
    item = {"type": "commandExecution", "id": "c1", "command": "touch song.txt", "status": "inProgress"}
    stand_in_says(
        at,
        notification("item/started", item=item),
        {**asked(0, "item/commandExecution/requestApproval", itemId="c1", command="touch song.txt"), "nowait": True},
        {"pipe": str(pipe)},
        notification("serverRequest/resolved", requestId=0),
        notification("item/completed", item={**item, "status": "completed", "exitCode": 0}),
        message("m1", "somebody else said yes"),
    )
    async with connected(at) as client:
        client.decisions.append(lambda _: asyncio.Event().wait())
        turn = asyncio.create_task(client.say("sing"))
        await client.until(lambda: client.asked)
        await asyncio.to_thread(pipe.write_text, "settled", encoding="utf-8")
        answer = await turn
        cancelled = [each for each in client.frames if each.get("method") == "$/cancel_request"]
    assert answer.text == "somebody else said yes" and answer.stop == "end_turn" and len(cancelled) == 1
    assert answer.call("Bash")["status"] == "completed"


@proves("approval.legacy", on=[STAND_IN])
async def test_the_requests_of_the_older_protocol_are_answered_in_its_own_words(at: Place) -> None:
    change = {"/project/song.txt": {"type": "add", "content": "la\n"}}
    run = {
        "conversationId": "$THREAD",
        "callId": "c1",
        "command": ["bash", "-lc", "touch x"],
        "cwd": "/",
        "parsedCmd": [],
    }
    write = {"conversationId": "$THREAD", "callId": "c2", "fileChanges": change}
    stand_in_says(
        at,
        *[{"id": number, "method": "execCommandApproval", "params": run} for number in range(3)],
        {"id": "last", "method": "applyPatchApproval", "params": write},
        message("m1", "asked and answered"),
    )
    async with connected(at) as client:
        client.decisions += ["allow_once", "allow_session", "reject", "reject_and_stop"]
        answer = await client.say("sing")
    assert answer.text == "asked and answered"
    first, *_, last = client.asked
    assert first.tool_call.title == "touch x" and first.tool_call.name == "Bash"
    assert [each for each in last.tool_call.content or () if isinstance(each, v1.Diff) and each.new_text == "la\n"]
    words = [each["decision"] for each in responses_received(at)]
    assert words[:2] == ["approved", "approved_for_session"] and "denied" in words[2] and words[3] == "abort"


@proves("approval.permissions", on=[STAND_IN])
async def test_a_request_for_more_permissions_is_asked_for_the_turn_or_the_session(at: Place) -> None:
    wanted = {"network": {"enabled": True}, "fileSystem": {"write": ["/songs"]}}
    ask = [
        asked(number, "item/permissions/requestApproval", itemId=f"p{number}", reason="to sing", permissions=wanted)
        for number in range(3)
    ]
    stand_in_says(at, *ask, message("m1", "done"))
    async with connected(at) as client:
        client.decisions += ["allow_turn", "allow_session", "reject"]
        await client.say("sing")
    assert "to sing" in texts(client.asked[0]) and "/songs" in texts(client.asked[0])
    assert responses_received(at) == [
        {"permissions": wanted, "scope": "turn"},
        {"permissions": wanted, "scope": "session"},
        {"permissions": {}, "scope": "turn"},
    ]


@proves("approval.change", on=[STAND_IN])
async def test_changes_that_are_not_known_are_never_allowed_for_good(at: Place) -> None:
    ask = asked(0, "item/fileChange/requestApproval", itemId="nobody-told", grantRoot="/songs")
    stand_in_says(at, ask, message("m1", "done"))
    async with connected(at) as client:
        client.decisions.append("allow_once")
        await client.say("sing")
    [request] = client.asked
    assert kinds(request) == ["allow_once", "reject_once", "reject_once"]
    assert "does not report which files" in texts(request) and texts(request).count("/songs") == 1
    assert responses_received(at) == [{"decision": "accept"}]


@proves("approval.permissions", on=[STAND_IN])
async def test_what_a_command_wants_beyond_the_sandbox_is_shown_once(at: Place) -> None:
    item = {"type": "commandExecution", "id": "c1", "command": "sing", "status": "inProgress"}
    more = {"fileSystem": {"write": ["/songs"]}}
    ask = asked(
        0,
        "item/commandExecution/requestApproval",
        itemId="c1",
        command="sing",
        additionalPermissions=more,
        reason="Why",
    )
    stand_in_says(at, notification("item/started", item=item), ask, message("m1", "done"))
    async with connected(at) as client:
        await client.say("sing")
    text = texts(client.asked[0])
    assert text.count("/songs") == 1 and text.count("than the sandbox allows") == 1 and text.count("Why") == 1


@proves("approval.change", "server.one")
async def test_a_pipe_in_the_place_of_a_file_holds_up_nothing(at: Place) -> None:
    os.mkfifo(at.folder / "song.txt")
    at.model.answers(patch(*ADD))
    async with connected(at) as client:
        await asking(client)
        client.decisions.append("reject_and_stop")
        assert (await client.say("write")).stop == "cancelled"
        await client.open()
        assert (await client.say("hello")).text == "echo: hello"
