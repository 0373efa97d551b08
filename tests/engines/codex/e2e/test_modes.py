"""Modes, and what each means to Codex; models, effort and summary."""

from pathlib import Path

import pytest

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import Client, connected
from tests.engines.codex.model.steps import Patch, command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Text

TABLE = {
    "default": ("on-request", "read-only"),
    "acceptEdits": ("on-request", "workspace-write"),
    "plan": ("on-request", "read-only"),
    "dontAsk": ("never", "workspace-write"),
    "bypassPermissions": ("never", "danger-full-access"),
}

ADD = patch("*** Add File: song.txt", "+la")


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


@proves("modes.default", "modes.accept-edits", on=BOTH)
async def test_changes_are_asked_for_unless_edits_are_accepted(at: Place) -> None:
    async with connected(at) as client:
        await in_mode(client, "default")
        client.decisions.append("reject")
        at.model.answers(ADD)
        await client.say("write")
        assert len(client.asked) == 1 and not (at.folder / "song.txt").exists()
        await client.session.set_mode("acceptEdits")
        at.model.answers(ADD)
        await client.say("write")
        assert len(client.asked) == 1 and (at.folder / "song.txt").exists()


@proves("modes.dont-ask", "modes.bypass", on=BOTH)
async def test_what_goes_beyond_the_workspace_fails_unless_permissions_are_bypassed(at: Place, tmp_path: Path) -> None:
    # Not in the directory for temporary files: every sandbox may write there.
    outside = Path.home() / f"antiphon-{at.mark[:16]}.txt"
    try:
        async with connected(at) as client:
            await in_mode(client, "dontAsk")
            at.model.answers(command(f"touch inside.txt; touch {outside}"))
            told = await client.say("touch")
            assert (at.folder / "inside.txt").exists() and not outside.exists()
            assert told.call("Bash")["status"] == "failed"
            await client.session.set_mode("bypassPermissions")
            at.model.answers(command(f"touch {outside}"))
            told = await client.say("touch")
            assert outside.exists() and told.call("Bash")["status"] == "completed" and client.asked == []
    finally:
        outside.unlink(missing_ok=True)


@proves("modes.configured", on=BOTH)
async def test_the_users_own_configuration_is_in_force_until_a_mode_is_chosen(at: Place) -> None:
    at.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"')
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None and client.session.modes.current_mode_id == "configured"
        await client.say("hello")
        await client.session.set_mode("acceptEdits")
        await client.say("hello")
        assert "configured" not in [each.value for each in client.option("mode").options]
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


@proves("modes.refusals", on=BOTH)
async def test_what_the_read_only_sandbox_refuses_is_told_as_a_call_that_failed(at: Place) -> None:
    at.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"')
    at.model.answers(Text("I try. "), command("touch refused.txt"), ADD)
    at.model.answers(Text("It was refused."))
    async with connected(at) as client:
        told = await client.say("write")
    refused(told.call("Bash"), told.call("Write"))
    kinds = [type(each) for each in told.updates if isinstance(each, v1.AgentMessageChunk | v1.ToolCall)]
    assert kinds.index(v1.ToolCall) < len(kinds) - 1 - kinds[::-1].index(v1.AgentMessageChunk)  # told in its place


def refused(bash: dict[str, object], write: dict[str, object]) -> None:
    assert bash["title"] == "touch refused.txt" and bash["status"] == "failed"
    assert "Read-only file system" in str(bash["content"]) and "exit code 1" in str(bash["content"])
    assert write["status"] == "failed" and "song.txt" in str(write["title"]) and "la" in str(write["content"])


@proves("modes.refusals-resumed", on=BOTH)
async def test_refusals_are_told_in_a_session_that_was_resumed(at: Place) -> None:
    at.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"')
    async with connected(at) as client:
        await client.say("hello")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        for _ in range(2):
            at.model.answers(command("touch refused.txt"), ADD)
            told = await client.say("write")
            refused(told.call("Bash"), told.call("Write"))
            assert len(told.of(v1.ToolCall)) == 2


@proves("modes.refusals")
async def test_a_script_of_which_everything_is_refused_is_told(at: Place) -> None:
    at.settings(model="gpt-5.6-sol", top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "read-only"')
    at.model.answers(Patch("text(JSON.stringify(await tools.exec_command({cmd: 'touch refused.txt'})));", "exec"))
    async with connected(at) as client:
        told = await client.say("write")
    call = told.call("Script")
    assert "touch refused.txt" in str(call["content"]) and "Read-only file system" in str(call["content"])


@proves("modes.models", "modes.legacy-models", "modes.effort", "modes.summary", on=BOTH)
async def test_model_effort_and_summary_reach_the_next_request(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        assert client.session.models is not None and client.session.models.current_model_id == "gpt-5.5"
        models = [each.value for each in client.option("model").options]
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


@proves("modes.models")
async def test_a_mode_or_model_that_is_not_on_offer_is_refused(at: Place) -> None:
    from antiphon.errors import AcpError

    async with connected(at) as client:
        await client.open()
        with pytest.raises(AcpError):
            await client.session.set_mode("a-mode-of-tomorrow")
        assert (await client.say("hello")).text == "echo: hello"
