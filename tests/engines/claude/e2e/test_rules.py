"""Rules of the policy that Claude Code keeps too, also in the modes in which it does not ask."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon import v1
from tests.engines.claude.model.steps import Call, Text
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import on_versions
from tests.engines.claude.versions import BOTH
from tests.engines.client import Client, Reply, connected
from tests.engines.guarded import guarded_command

GUARDED = guarded_command("claude")

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
    """A place with rules, and a file that no engine may change."""
    at.configure(RULES)
    at.environment["IS_SANDBOX"] = "1"  # where also root may do without questions
    return at.write("secret/x", "do\n")


async def in_mode(client: Client, mode: str) -> None:
    await client.open()
    await client.session.set_mode(mode)


def statuses(reply: Reply) -> list[str]:
    """How each call ended, in the order in which they began."""
    ends = {each.tool_call_id: "" for each in reply.of(v1.ToolCall)}
    ends |= {each.tool_call_id: each.status.value for each in reply.of(v1.ToolCallUpdate) if each.status}
    return list(ends.values())


@on_versions(*BOTH)
async def test_a_denied_file_of_the_home_is_not_read(at: Place) -> None:
    prepared(at)
    key = at.home / "keys" / "of-a-house"
    key.parent.mkdir()
    key.write_text("brass\n", encoding="utf-8")
    at.model.answers(Call("Read", {"file_path": str(key)}))
    async with connected(at, command=GUARDED) as client:
        reply = await client.say("read")
    assert statuses(reply) == ["failed"] and "brass" not in str(at.model.last.result_texts) and client.asked == []


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


@pytest.mark.parametrize(
    "command", [pytest.param((), id="alone", marks=pytest.mark.prove), pytest.param(GUARDED, id="guarded")]
)
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
