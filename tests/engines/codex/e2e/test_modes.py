"""Modes, and what each means to Codex; models, effort and summary."""

import asyncio
import itertools
from typing import Any

import pytest

from antiphon import v1
from antiphon.errors import AcpError
from tests.engines.codex.bullets import on_versions, proves
from tests.engines.codex.client import Client, connected
from tests.engines.codex.model.steps import Patch, command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.stand_in_lines import message, notification, stand_in_says
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.proofs import STAND_IN

Json = dict[str, Any]

TABLE = {
    "default": ("on-request", "read-only"),
    "acceptEdits": ("on-request", "read-only"),
    "plan": ("on-request", "read-only"),
    "dontAsk": ("on-request", "read-only"),
    "bypassPermissions": ("never", "danger-full-access"),
}

NO_TEMPORARY_FILES = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true"
"""Else every sandbox may write where the places of the tests are."""

NEVER = 'approval_policy = "never"\nsandbox_mode = "read-only"'
"""A configuration in which Codex itself refuses what it would have to ask about."""

SHOWN = v1.ToolCall, v1.AgentMessageChunk
ADD = patch("*** Add File: song.txt", "+la")
ESCALATED = command("touch inside.txt", sandbox_permissions="require_escalated")


async def in_mode(client: Client, mode: str) -> None:
    await client.open()
    await client.session.set_mode(mode)


@proves("modes.table", "modes.plan", on=BOTH)
async def test_every_mode_sends_its_approval_policy_and_its_sandbox(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None
        offered = [mode.id for mode in client.session.modes.available_modes if mode.id in TABLE]
        assert offered == list(TABLE)
        for mode in TABLE:
            await client.session.set_mode(mode)
            await client.say("hello")
    [turns] = at.contexts().values()
    assert [(turn["approval_policy"], turn["sandbox_policy"]["type"]) for turn in turns] == list(TABLE.values())
    kinds = [(turn.get("collaboration_mode") or {}).get("mode", "default") for turn in turns]
    assert kinds == ["default", "default", "plan", "default", "default"]


@proves("modes.default", "modes.accept-edits", "modes.models", on=BOTH)
async def test_changes_are_asked_for_unless_edits_are_accepted(at: Place) -> None:
    async with connected(at) as client:
        await in_mode(client, "default")
        with pytest.raises(AcpError):
            await client.session.set_mode("a-mode-of-tomorrow")
        client.decisions.append("reject")
        at.model.answers(ADD)
        await client.say("write")
        assert len(client.asked) == 1 and not (at.folder / "song.txt").exists()
        await client.session.set_mode("acceptEdits")
        at.model.answers(ADD)
        await client.say("write")
        assert len(client.asked) == 1 and (at.folder / "song.txt").exists()


@proves("modes.dont-ask", "modes.bypass", "modes.own-workspace", on=BOTH)
async def test_what_goes_beyond_edits_of_the_workspace_fails_unless_permissions_are_bypassed(at: Place) -> None:
    at.settings(tables=NO_TEMPORARY_FILES)
    outside = at.temporary / "outside.txt"
    async with connected(at) as client:
        await in_mode(client, "dontAsk")
        for step in (ADD, patch(f"*** Add File: {outside}", "+la"), command(f"touch {outside}"), ESCALATED):
            at.model.answers(step)
        reply = await client.say("touch")
        assert [path.name for path in at.folder.iterdir()] == ["song.txt"] and not outside.exists()
        ends = {each.tool_call_id: each.status.value for each in reply.of(v1.ToolCallUpdate) if each.status}
        assert list(ends.values()).count("completed") == 1 and set(ends.values()) == {"completed", "failed"}
        await client.session.set_mode("bypassPermissions")
        at.model.answers(command(f"touch {outside}"))
        reply = await client.say("touch")
        assert outside.exists() and reply.call("Bash")["status"] == "completed" and client.asked == []


@proves("modes.own-workspace", on=BOTH)
async def test_the_users_own_workspace_and_summary_count_in_every_mode(at: Place) -> None:
    songs = at.temporary / "songs"
    songs.mkdir()
    own = f'network_access = true\nwritable_roots = ["{songs}"]'
    at.settings(
        tables=f"{NO_TEMPORARY_FILES}\n{own}", top='model_provider = "choir"\nmodel_reasoning_summary = "concise"'
    )
    async with connected(at) as client:
        await in_mode(client, "acceptEdits")
        await client.say("hello")
        assert at.model.last.summary == "concise" and client.option("summary").current_value == "concise"
        at.model.answers(patch(f"*** Add File: {songs}/one.txt", "+la"))
        await client.say("write")
        assert client.asked == [] and (songs / "one.txt").exists()
    [[turn, _]] = at.contexts().values()
    assert turn["sandbox_policy"] == {"type": "read-only", "network_access": True}


@proves("modes.configured", on=BOTH)
async def test_the_users_own_configuration_is_in_force_until_a_mode_is_chosen(at: Place) -> None:
    at.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"')
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None and client.session.modes.current_mode_id == "configured"
        await client.say("hello")
        await client.session.set_mode("acceptEdits")
        await client.say("hello")
        assert "configured" not in client.choices("mode")
    [turns] = at.contexts().values()
    assert [turn["approval_policy"] for turn in turns] == ["never", "on-request"]


@proves("modes.again", on=BOTH)
async def test_a_session_that_is_resumed_shows_the_mode_that_is_in_force(at: Place) -> None:
    async with connected(at) as client:
        await in_mode(client, "acceptEdits")
        await client.say("hello")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        assert client.session.modes is not None
        resumed = client.session.modes.current_mode_id
        await client.say("hello")
        await client.session.set_mode("dontAsk")
        await client.say("hello")
    [turns] = at.contexts().values()
    rights = [(turn["approval_policy"], turn["sandbox_policy"]["type"]) for turn in turns]
    assert rights[1] == TABLE[resumed] and rights[2] == TABLE["dontAsk"]


@proves("modes.again", "modes.plan", on=BOTH)
async def test_a_thread_that_was_left_in_plan_mode_leaves_it_when_another_mode_is_chosen(at: Place) -> None:
    async with connected(at) as client:
        await in_mode(client, "plan")
        await client.say("plan")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        assert client.session.modes is not None and client.session.modes.current_mode_id == "plan"
        await client.say("plan on")
        await client.session.set_mode("acceptEdits")
        await client.say("work")
        await client.say("work on")
    [turns] = at.contexts().values()
    kinds = [(turn.get("collaboration_mode") or {}).get("mode") for turn in turns]
    assert kinds == ["plan", "plan", "default", "default"]
    assert [turn["sandbox_policy"]["type"] for turn in turns] == ["read-only"] * 4


@proves("modes.meanwhile")
async def test_a_mode_that_is_chosen_while_a_turn_runs_counts_from_the_next_on(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la "), Wait(gate), Text("la"))
    async with connected(at) as client:
        await in_mode(client, "default")
        turn = client.session.prompt("sing")
        await gate.is_reached()
        await client.session.set_mode("bypassPermissions")
        gate.open()
        await turn
        await client.say("go on")
    [turns] = at.contexts().values()
    assert [turn["sandbox_policy"]["type"] for turn in turns] == ["read-only", "danger-full-access"]


@pytest.mark.parametrize(("first", "then"), [("default", "acceptEdits"), ("acceptEdits", "default")])
@on_versions(*BOTH)
async def test_whether_an_edit_is_asked_about_is_decided_by_the_mode_of_that_moment(
    at: Place, first: str, then: str
) -> None:
    gate = Gate()
    at.model.answers(Text("la "), Wait(gate), ADD)
    async with connected(at) as client:
        await in_mode(client, first)
        turn = client.session.prompt("sing")
        await gate.is_reached()
        await client.session.set_mode(then)
        gate.open()
        await turn
    assert len(client.asked) == (then == "default") and (at.folder / "song.txt").exists()


def settings(approval: str, sandbox: str, model: str = "choir") -> Json:
    now = {"model": model, "approvalPolicy": approval, "sandboxPolicy": {"type": sandbox}}
    return notification("thread/settings/updated", threadSettings=now)


@proves("modes.meanwhile", on=[STAND_IN])
async def test_what_the_user_chose_meanwhile_is_not_undone_by_an_update_about_the_earlier_setting(at: Place) -> None:
    pipe = at.pipe()
    stand_in_says(at, message("m1", "la"), {"pipe": str(pipe)}, settings("on-request", "readOnly"))
    async with connected(at) as client:
        await in_mode(client, "default")
        turn = client.session.prompt("sing")
        await client.until(lambda: client.updates_of("agent_message_chunk"))
        await client.session.set_mode("acceptEdits")
        await asyncio.to_thread(pipe.write_text, "go", encoding="utf-8")
        await turn
        assert client.option("mode").current_value == "acceptEdits"
        assert not [each for each in client.updates_of("current_mode_update") if each["currentModeId"] == "default"]


@proves("modes.reported", on=[STAND_IN])
async def test_a_change_by_codex_itself_is_shown(at: Place) -> None:
    stand_in_says(at, settings("never", "dangerFullAccess", "another"), message("m1", "la"))
    async with connected(at) as client:
        await in_mode(client, "default")
        await client.say("sing")
        assert client.updates_of("current_mode_update")[-1]["currentModeId"] == "bypassPermissions"
        assert client.option("model").current_value == "another"


@proves("modes.forked", on=BOTH)
async def test_a_fork_has_the_mode_of_the_session_that_it_comes_from(at: Place) -> None:
    async with connected(at) as client:
        await in_mode(client, "dontAsk")
        await client.session.set_config_option("effort", "high")
        await client.say("hello")
        await client.fork(client.session.id)
        assert client.session.modes is not None and client.session.modes.current_mode_id == "dontAsk"
        assert client.option("effort").current_value == "high"
        await client.say("hello")
        fork = at.contexts()[client.session.id][-1]
    assert (fork["approval_policy"], fork["sandbox_policy"]["type"]) == TABLE["dontAsk"]
    assert at.model.last.effort == "high"


def refused(bash: dict[str, object], write: dict[str, object]) -> None:
    assert bash["title"] == "touch refused.txt" and bash["status"] == "failed"
    assert "Read-only file system" in str(bash["content"]) and "exit code 1" in str(bash["content"])
    assert write["status"] == "failed" and "song.txt" in str(write["title"]) and "la" in str(write["content"])


@proves("modes.refusals", "modes.refusals-loaded", "modes.refusals-resumed", on=BOTH)
async def test_what_the_sandbox_refuses_is_shown_in_its_place_also_when_a_session_is_loaded_or_resumed(
    at: Place,
) -> None:
    at.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"')
    at.model.answers(Text("I try. "), command("touch refused.txt"), ADD)
    at.model.answers(command("ls"))
    at.model.answers(Text("It was refused."))
    async with connected(at) as client:
        before = await client.say("write")
        id = client.session.id
    refused(before.call("Bash"), before.call("Write"))
    kinds = [type(each) for each in before.updates if isinstance(each, v1.AgentMessageChunk | v1.ToolCall)]
    assert kinds.index(v1.ToolCall) < len(kinds) - 1 - kinds[::-1].index(v1.AgentMessageChunk)  # shown in its position
    async with connected(at) as client:
        reply = await client.load(id)
        refused(reply.call("Bash"), reply.call("Write"))
        assert reply.text == before.text == "I try. It was refused."
        assert outline(reply.updates) == outline(before.updates)
        await client.resume(id)
        for _ in range(2):
            at.model.answers(command("touch refused.txt"), ADD)
            reply = await client.say("write")
            refused(reply.call("Bash"), reply.call("Write"))
            assert len(reply.of(v1.ToolCall)) == 2


def outline(updates: list[v1.Update]) -> list[str]:
    """Who says or does what in which order."""
    texts = [each.title if isinstance(each, v1.ToolCall) else "words" for each in updates if isinstance(each, SHOWN)]
    return [each for each, _ in itertools.groupby(texts)]


@proves("modes.refusals", "modes.dont-ask", on=BOTH)
async def test_a_command_that_may_not_even_ask_is_shown_as_one_that_failed(at: Place) -> None:
    at.settings(top=f'model_provider = "choir"\n{NEVER}')
    at.model.answers(command("touch song.txt", sandbox_permissions="require_escalated", justification="May I?"))
    async with connected(at) as client:
        reply = await client.say("sing")
    call = reply.call("Bash")
    assert call["title"] == "touch song.txt" and call["status"] == "failed" and call["rawOutput"]["aggregatedOutput"]
    assert client.asked == [] and not (at.folder / "song.txt").exists()


@proves("modes.refusals")
async def test_a_script_of_which_everything_is_refused_is_shown(at: Place) -> None:
    at.settings(model="gpt-5.6-sol", top=f'model_provider = "choir"\n{NEVER}')
    at.model.answers(
        script("{cmd: 'touch refused.txt', sandbox_permissions: 'require_escalated', justification: 'May I?'}")
    )
    async with connected(at) as client:
        reply = await client.say("write")
    call = reply.call("Script")
    assert call["status"] == "failed"
    assert "touch refused.txt" in str(call["content"]) and "escalated permissions" in str(call["content"])
    assert client.asked == [] and not (at.folder / "refused.txt").exists()


@proves("modes.refusals")
async def test_what_the_sandbox_refuses_to_a_script_is_shown_once(at: Place) -> None:
    at.settings(
        model="gpt-5.6-sol", top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"'
    )
    at.model.answers(script("{cmd: 'touch refused.txt'}"))
    async with connected(at) as client:
        reply = await client.say("write")
    [shown] = reply.of(v1.ToolCall)
    assert shown.name in (
        "Script",
        "Bash",
    )  # Codex itself reports a command that took more than 150 ms to fail, else we do
    call = reply.call(shown.name)
    assert "touch refused.txt" in f"{call['title']} {call['content']}" and "Read-only file system" in str(
        call["content"]
    )


def script(given: str) -> Patch:
    """A command, in the words of the newer models."""
    return Patch(f"text(JSON.stringify(await tools.exec_command({given})));", "exec")


@proves("modes.models", "modes.legacy-models", "modes.effort", "modes.summary", on=BOTH)
async def test_model_effort_and_summary_reach_the_next_request(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        assert client.session.models is not None and client.session.models.current_model_id == "gpt-5.5"
        models = client.choices("model")
        assert [each.model_id for each in client.session.models.available_models] == models and len(models) > 1
        await client.say("hello")
        assert at.model.last.model == "gpt-5.5" and at.model.last.summary == "auto"
        for effort in ("low", "high"):
            await client.session.set_config_option("effort", effort)
            await client.session.set_config_option("summary", "detailed")
            await client.say("hello")
            assert (at.model.last.effort, at.model.last.summary) == (effort, "detailed")
        other = next(model for model in models if model != "gpt-5.5")
        await client.session.set_config_option("model", other)
        await client.say("hello")
        assert at.model.last.model == other and client.session.models.current_model_id == other
        await client.session.set_model("gpt-5.5")
        await client.say("hello")
        assert at.model.last.model == "gpt-5.5" and client.option("model").current_value == "gpt-5.5"


@pytest.mark.parametrize(
    ("top", "mode", "asked"),
    [
        ("", "default", 1),
        pytest.param('sandbox_mode = "workspace-write"', "acceptEdits", 0, marks=pytest.mark.prove),
        pytest.param('sandbox_mode = "read-only"', "default", 1, marks=pytest.mark.prove),
        ("trusted", "acceptEdits", 0),
    ],
)
@on_versions(*BOTH)
async def test_only_the_users_own_configuration_lets_codex_edit_unasked(
    at: Place, top: str, mode: str, asked: int
) -> None:
    """In a project without any file of Codex's own, which it is set to trust so that it writes nothing about it into the user's file."""
    if top == "trusted":
        at.settings(tables=f'[projects."{at.folder}"]\ntrust_level = "trusted"')
    else:
        at.settings(top=f'model_provider = "choir"\n{top}')
    at.model.answers(patch("*** Add File: free.txt", "+la"))
    at.model.answers(Text("Done."))
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None and client.session.modes.current_mode_id == mode
        await client.say("write")
        assert len(client.asked) == asked
        again = await client.resume(client.session.id)
        assert again.modes is not None and again.modes.current_mode_id == mode
