"""Rules of the policy that Claude Code keeps too, also in the modes in which it does not ask."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon import v1
from tests.engines.claude.model.steps import Call, Text
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import on_versions
from tests.engines.claude.versions import BOTH
from tests.engines.driving import Client, Told, connected
from tests.engines.guarded import guarded_command

GUARDED = guarded_command("claude")
MODES = ("default", "acceptEdits", "bypassPermissions")

RULES = """\
[policy]
deny = ["Edit(secret/**)", "Bash(rm *)", "Read(~/keys/**)"]
ask = ["Bash(git push *)", "Write(asked.txt)"]
"""


def bash(line: str) -> Call:
    return Call("Bash", {"command": line, "description": "Sing"})


def write(path: Path, text: str = "la\n") -> Call:
    return Call("Write", {"file_path": str(path), "content": text})


def prepared(at: Place) -> Path:
    """A place with rules, and a file that nobody may change."""
    at.configure(RULES)
    at.environment["IS_SANDBOX"] = "1"  # where also root may do without questions
    return at.write("secret/x", "do\n")


async def in_mode(client: Client, mode: str) -> None:
    await client.open()
    await client.session.set_mode(mode)


def statuses(told: Told) -> list[str]:
    """How each call ended, in the order in which they began."""
    ends = {each.tool_call_id: "" for each in told.of(v1.ToolCall)}
    ends |= {each.tool_call_id: each.status.value for each in told.of(v1.ToolCallUpdate) if each.status}
    return list(ends.values())


@pytest.mark.parametrize("mode", MODES)
@on_versions(*BOTH)
async def test_a_denied_edit_is_refused_in_every_mode_and_the_turn_goes_on(at: Place, mode: str) -> None:
    secret = prepared(at)
    (at.folder / "link").symlink_to(at.folder / "secret")
    at.model.answers(Call("Read", {"file_path": str(secret)}))
    at.model.answers(Call("Edit", {"file_path": str(secret), "old_string": "do", "new_string": "re"}))
    at.model.answers(write(at.folder / "secret" / "y"))
    at.model.answers(write(at.folder / "link" / "z"))
    at.model.answers(write(at.folder / "free.txt"))
    at.model.answers(Text("Then only one."))
    async with connected(at, command=GUARDED) as client:
        await in_mode(client, mode)
        told = await client.say("write")
    assert secret.read_text(encoding="utf-8") == "do\n" and [each.name for each in secret.parent.iterdir()] == ["x"]
    assert (at.folder / "free.txt").read_text(encoding="utf-8") == "la\n"
    assert statuses(told) == ["completed", "failed", "failed", "failed", "completed"]
    assert (told.text, told.stop) == ("Then only one.", "end_turn") and told.notices == ""
    assert [asked.tool_call.name for asked in client.asked] == (["Write"] if mode == "default" else [])


@pytest.mark.parametrize("mode", MODES)
@on_versions(*BOTH)
async def test_a_denied_command_is_refused_however_it_is_written(at: Place, mode: str) -> None:
    secret = prepared(at)
    lines = (
        "rm secret/x",
        "true && rm secret/x",
        "/bin/rm secret/x",
        "sh -c 'rm secret/x'",
        "echo secret/x | xargs rm",
    )
    for line in lines:
        at.model.answers(bash(line))
    at.model.answers(bash("touch free.txt"))
    async with connected(at, command=GUARDED) as client:
        await in_mode(client, mode)
        told = await client.say("remove")
    assert secret.exists() and (at.folder / "free.txt").exists()
    assert statuses(told) == [*["failed"] * len(lines), "completed"]
    assert {str(asked.tool_call.title) for asked in client.asked} <= {"touch free.txt"}


@pytest.mark.parametrize("mode", MODES)
@on_versions(*BOTH)
async def test_what_a_rule_asks_about_is_asked_in_every_mode(at: Place, mode: str) -> None:
    prepared(at)
    at.make_repository()
    at.model.answers(bash("git push origin"))
    at.model.answers(write(at.folder / "asked.txt"))
    async with connected(at, command=GUARDED) as client:
        await in_mode(client, mode)
        client.decisions += ["reject", "allow"]
        told = await client.say("push")
    push, file = client.asked
    assert push.tool_call.raw_input == {"command": "git push origin", "description": "Sing"}
    assert "The rule `Bash(git push *)` asks about it." in str(push.tool_call.content)
    assert "Claude Code asks." in str(push.tool_call.content) and file.tool_call.name == "Write"
    assert [option.kind.value for option in push.options] == ["allow_once", "reject_once"]
    assert statuses(told) == ["failed", "completed"] and (at.folder / "asked.txt").exists()


@on_versions(*BOTH)
async def test_a_denied_file_of_the_home_is_not_read(at: Place) -> None:
    prepared(at)
    key = at.home / "keys" / "of-a-house"
    key.parent.mkdir()
    key.write_text("brass\n", encoding="utf-8")
    at.model.answers(Call("Read", {"file_path": str(key)}))
    async with connected(at, command=GUARDED) as client:
        told = await client.say("read")
    assert statuses(told) == ["failed"] and "brass" not in str(at.model.last.result_texts) and client.asked == []


@on_versions(*BOTH)
async def test_an_always_of_ours_is_remembered_by_us_and_not_by_claude(at: Place) -> None:
    at.configure("")
    for _ in range(2):
        at.model.answers(bash("touch free.txt"))
    async with connected(at, command=GUARDED) as client:
        await client.open()
        client.decisions.append("antiphon_always_session")
        await client.say("touch")
    [asked] = client.asked
    assert "Always allow `Bash(touch free.txt)` in this session" in [option.name for option in asked.options]
    assert not (at.folder / ".claude").exists()


@on_versions(*BOTH)
async def test_a_policy_that_cannot_be_read_makes_claude_ask_also_where_it_would_not(at: Place) -> None:
    at.configure('[policy]\nallow = ["Bush("]\n')
    at.environment["IS_SANDBOX"] = "1"
    at.model.answers(write(at.folder / "free.txt"))
    async with connected(at, command=GUARDED) as client:
        await in_mode(client, "bypassPermissions")
        client.decisions.append("reject")
        await client.say("write")
    assert len(client.asked) == 1 and not (at.folder / "free.txt").exists()


@pytest.mark.parametrize("command", [(), GUARDED], ids=["alone", "guarded"])
@on_versions(*BOTH)
async def test_accepting_edits_stops_at_files_that_name_programs(at: Place, command: Sequence[str]) -> None:
    at.write("x", "do\n")
    (at.folder / "conf").mkdir()
    (at.folder / ".idea").symlink_to("conf")
    paths = [
        ".claude/settings.json",
        ".mcp.json",
        ".github/workflows/ci.yml",
        ".envrc",
        "conf/workspace.xml",
        "docs.git/hooks/pre-receive",
    ]
    lines = [
        "cp x .pre-commit-config.yaml",
        "mv x .gitlab-ci.yml",
        "mkdir -p .circleci",
        "echo la > .npmrc",
        "cp x conf/y.xml",
    ]
    for path in paths:
        at.model.answers(write(at.folder / path))
    for line in lines:
        at.model.answers(bash(line))
    at.model.answers(write(at.folder / "free.txt"))
    at.model.answers(Text("Done."))
    async with connected(at, command=command) as client:
        await in_mode(client, "acceptEdits")
        await client.say("write")
    asked = [str(each.tool_call.raw_input) for each in client.asked]
    assert [what for what in (*paths, *lines) if not any(what in each for each in asked)] == []
    assert not any("free.txt" in each for each in asked)
