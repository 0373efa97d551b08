"""What the demo agent does, seen from a client: a real process, real files, real commands."""

import os
from pathlib import Path

import pytest

from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.engines.demo_client import NOTHING, demo, text_of


async def test_plain_text_gets_an_answer_about_the_workspace(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        reply = await client.say(session, "where am I?")
        assert "`workspace`, which has 1 file (1 .md)" in reply and "A place to sing" in reply


async def test_a_mode_has_the_name_in_texts_that_clients_show_for_it(workspace: Path) -> None:
    async with demo(workspace) as client:
        opened = await client.connection.request(m.NEW_SESSION, v1.NewSession(str(workspace), []))
        assert opened.modes is not None
        session, names = opened.session_id, {mode.id: mode.name for mode in opened.modes.available_modes}
        assert f"“{names['plan']}”" in await client.say(session, "/mode plan")
        assert f"“{names['default']}” (`/mode default`)" in await client.say(session, "/edit notes.txt a line")
        updates, _ = await client.prompt(session, "/mode default")
        assert [each.title for each in updates if isinstance(each, v1.ToolCall)] == [f"Switch to {names['default']}"]


async def test_help_lists_every_command_that_is_offered(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        reply = await client.say(session, "/help")
    offered = [frame["params"]["update"] for frame in client.frames if frame.get("method") == "session/update"]
    commands = next(update["availableCommands"] for update in offered if "availableCommands" in update)
    assert commands and all(f"- `/{command['name']}" in reply for command in commands)


async def test_an_edit_is_written_only_after_permission(workspace: Path) -> None:
    place = workspace / "notes.txt"
    async with demo(workspace) as client:
        session = await client.new()
        client.answer_permission = "reject"
        updates, result = await client.prompt(session, "/edit notes.txt first line")
        assert not place.exists() and result.stop_reason == v1.StopReason.END_TURN
        assert [each.status for each in updates if isinstance(each, v1.ToolCallUpdate)][-1] == v1.ToolStatus.FAILED
        client.answer_permission = "allow"
        await client.prompt(session, "/edit notes.txt first line")
        assert place.read_text(encoding="utf-8") == "first line\n"
        await client.prompt(session, "/edit notes.txt second line")
        assert place.read_text(encoding="utf-8") == "first line\nsecond line\n"
    shown = client.asked[-1].tool_call.content
    assert isinstance(shown, list)
    assert shown == [v1.Diff(str(place), "first line\nsecond line\n", "first line\n")]


async def test_a_command_runs_in_the_clients_terminal_only_after_permission(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        client.answer_permission = "reject"
        await client.prompt(session, "/run touch ran")
        assert "ran" not in os.listdir(workspace)
        client.answer_permission = "allow"
        updates, _ = await client.prompt(session, "/run touch ran; exit 3")
        assert "ended with 3" in text_of(updates)
        assert "ran" in os.listdir(workspace)
        shown = [each.content for each in updates if isinstance(each, v1.ToolCallUpdate)]
        assert any(isinstance(items, list) and isinstance(items[0], v1.TerminalItem) for items in shown)


@pytest.mark.parametrize(
    ("exit", "shown"),
    [
        (v1.WaitForExitResult(0), "ended with 0."),
        (v1.WaitForExitResult(3, None), "ended with 3."),
        (v1.WaitForExitResult(None, "SIGTERM"), "ended by SIGTERM."),
        (v1.WaitForExitResult(143, "SIGTERM"), "ended by SIGTERM."),
        (v1.WaitForExitResult(None, None), "ended, and the client does not report how."),
    ],
)
async def test_whatever_a_client_reports_of_a_commands_end_is_put_into_words(
    workspace: Path, exit: v1.WaitForExitResult, shown: str
) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        client.answer_permission, client.exit = "allow", exit
        assert shown in (reply := await client.say(session, "/run true")) and "None" not in reply


async def test_always_is_remembered_in_the_session_and_after_a_restart(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        client.answer_permission = "allow_always"
        await client.prompt(session, "/run true")
        await client.prompt(session, "/run true")
        assert len(client.asked) == 1
    async with demo(workspace) as client:
        await client.connection.request(m.RESUME_SESSION, v1.ResumeSession(session, str(workspace)))
        assert "ended with 0" in await client.say(session, "/run true")
        assert not client.asked


async def test_the_mode_that_only_looks_changes_nothing_and_asks_nothing(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        await client.connection.request(m.SET_MODE, v1.SetMode(session, "plan"))
        assert "only look" in await client.say(session, "/edit new.txt")
        assert "only look" in await client.say(session, "/run touch new.txt")
        assert not client.asked and os.listdir(workspace) == ["README.md"]


async def test_a_client_that_can_do_nothing_is_served_from_this_machine(workspace: Path) -> None:
    async with demo(workspace, NOTHING) as client:
        session = await client.new()
        reply = await client.say(session, "/all")
        assert "antiphon-demo-moved.txt` is gone" in reply and "response" in reply
    asked = {frame["method"] for frame in client.frames if "id" in frame and "method" in frame}
    assert asked == {"session/request_permission"}
    kinds = {
        frame["params"]["update"]["sessionUpdate"] for frame in client.frames if frame.get("method") == "session/update"
    }
    assert not kinds & {"notice", "compaction_update", "plan_update", "subagent_update"}


async def test_files_outside_the_workspace_are_not_moved_or_deleted(workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("stay", encoding="utf-8")
    (workspace / "door").symlink_to(tmp_path)
    async with demo(workspace) as client:
        session = await client.new()
        for command in ("/delete ../outside.txt", "/delete door/outside.txt", "/move README.md ../taken.md"):
            with pytest.raises(RequestRefused, match="outside the directories") as refused:
                await client.prompt(session, command)
            assert refused.value.code == Code.INVALID_PARAMS
    assert outside.exists() and not client.asked


@pytest.mark.parametrize(
    "command", ["/slow x", "/slow -1", "/read", "/read README.md x", "/stop never", "/set a", "/limit soon ls", "/run"]
)
async def test_a_command_with_bad_arguments_is_refused_with_its_usage(workspace: Path, command: str) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        with pytest.raises(RequestRefused) as refused:
            await client.prompt(session, command)
        assert refused.value.code == Code.INVALID_PARAMS and isinstance(refused.value.data, str)
        assert await client.say(session, "/echo still here") == "still here"


async def test_signed_out_it_wants_a_login_and_signed_in_it_works(workspace: Path) -> None:
    async with demo(workspace) as client:
        await client.connection.request(m.LOGOUT, v1.Logout())
        with pytest.raises(RequestRefused) as refused:
            await client.new()
        assert refused.value.code == Code.AUTH_REQUIRED
        await client.connection.request(m.AUTHENTICATE, v1.Authenticate("demo"))
        await client.new()


async def test_a_store_that_cannot_be_used_costs_the_history_and_not_the_session(
    workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file where a directory should be", encoding="utf-8")
    async with demo(workspace) as client:
        session = await client.new()
        assert await client.say(session, "/echo hello") == "hello"
    notices = [frame["params"]["update"] for frame in client.frames if frame.get("method") == "session/update"]
    assert any(update.get("title") == "This session is not kept" for update in notices)


async def test_a_client_that_refuses_its_files_is_quoted_and_the_turn_goes_on(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        details = {"details": "reading is switched off"}

        def refuse(_: v1.ReadTextFile) -> v1.ReadTextFileResult:
            raise RequestError(Code.INTERNAL_ERROR, "Internal error", details)

        client.connection.router.on_request(m.READ_TEXT_FILE, refuse)
        for command in ("/read README.md", "/edit README.md"):
            updates, result = await client.prompt(session, command)
            assert result.stop_reason == v1.StopReason.END_TURN
            assert "reading is switched off" in text_of(updates)
            assert [each.status for each in updates if isinstance(each, v1.ToolCallUpdate)][-1] == v1.ToolStatus.FAILED
        assert not client.asked


@pytest.mark.parametrize(
    "refusal",
    [
        RequestError(Code.METHOD_NOT_FOUND, "Method not found", "fs/read_text_file"),
        RequestError(Code.RESOURCE_NOT_FOUND, "Session not found"),
    ],
)
async def test_a_file_that_could_not_be_read_is_not_taken_for_a_new_one(workspace: Path, refusal: RequestError) -> None:
    async with demo(workspace) as client:
        session = await client.new()

        def refuse(_: v1.ReadTextFile) -> v1.ReadTextFileResult:
            raise refusal

        client.connection.router.on_request(m.READ_TEXT_FILE, refuse)
        await client.prompt(session, "/edit README.md more")
    assert (workspace / "README.md").read_text(encoding="utf-8").startswith("# A place to sing")
    assert not client.asked


async def test_always_is_for_that_command_in_that_session_and_directory_alone(workspace: Path, tmp_path: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        client.answer_permission = "allow_always"
        await client.prompt(session, "/run true")
        client.answer_permission = "reject"
        await client.prompt(session, "/run touch ran")
        forked = await client.connection.request(m.FORK_SESSION, v1.ForkSession(session, str(tmp_path)))
        await client.prompt(forked.session_id, "/run true")
        await client.connection.request(m.LOAD_SESSION, v1.LoadSession(session, str(tmp_path), []))
        await client.prompt(session, "/run true")
        assert len(client.asked) == 4 and "ran" not in os.listdir(workspace)


@pytest.mark.parametrize(
    "command", ["/read ../out.txt", "/read door/out.txt", "/edit ../out.txt x", "/edit door/out.txt x"]
)
async def test_without_a_client_to_guard_them_files_outside_are_not_touched_either(
    workspace: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "out.txt").write_text("secret", encoding="utf-8")
    (workspace / "door").symlink_to(tmp_path)
    (workspace / "link.txt").symlink_to(tmp_path / "out.txt")
    async with demo(workspace, NOTHING) as client:
        session = await client.new()
        assert "outside the directories" in await client.say(session, command)
        assert "Found in 0 lines" in await client.say(session, "/search secret")
        assert "outside the directories" in await client.say(session, f"/fetch file://{tmp_path}/out.txt")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "secret"


async def test_deleting_a_link_deletes_the_link(workspace: Path) -> None:
    (workspace / "link").symlink_to("README.md")
    async with demo(workspace) as client:
        session = await client.new()
        await client.prompt(session, "/delete link")
    assert os.listdir(workspace) == ["README.md"]
