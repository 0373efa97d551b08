"""Who reviews only looks, whatever the user's own settings of the program let it do unasked."""

import json
from pathlib import Path

import pytest

from antiphon import v1
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with
from tests.engines.claude.model.steps import Call
from tests.engines.client import Reply, connected
from tests.engines.codex.model.steps import Call as CodexCall
from tests.engines.codex.model.steps import command, patch
from tests.engines.model.steps import Text

pytestmark = pytest.mark.slow


def claude_allows(at: Place, where: str, **more: object) -> None:
    """The user, or the project, has allowed Claude Code to change things without a question."""
    folder = Path(at.environment["HOME"]) if where == "user" else at.folder
    file = folder / ".claude" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    settings = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    allow = ["Bash(touch:*)", "Write", "Edit"]
    file.write_text(json.dumps({**settings, "permissions": {"allow": allow}, **more}), encoding="utf-8")


def codex_allows(at: Place) -> None:
    """The user has allowed Codex to run a command without a question, and so without its sandbox."""
    rules = at.codex.codex_home / "rules"
    rules.mkdir()
    (rules / "default.rules").write_text('prefix_rule(pattern=["touch"], decision="allow")\n', encoding="utf-8")


def escalated(line: str) -> CodexCall:
    """It wants to leave the sandbox."""
    return command(line, sandbox_permissions="require_escalated", justification="May I sing?")


def made(at: Place) -> set[str]:
    """The files in the folder that only an engine can have made."""
    return {path.name for path in at.folder.iterdir() if path.is_file()}


def ends(reply: Reply) -> list[str]:
    """How each call ended, in the order in which they began."""
    found = {each.tool_call_id: "" for each in reply.of(v1.ToolCall)}
    found |= {each.tool_call_id: each.status.value for each in reply.of(v1.ToolCallUpdate) if each.status}
    return list(found.values())


@pytest.mark.parametrize(
    ("where", "hooks"),
    [
        ("user", True),
        pytest.param("user", False, marks=pytest.mark.prove),
        pytest.param("project", True, marks=pytest.mark.prove),
    ],
)
async def test_claude_code_changes_nothing_as_a_reviewer_though_its_settings_allow_it(
    at: Place, where: str, hooks: bool
) -> None:
    claude_allows(at, where, disableAllHooks=not hooks)
    song = at.write("song.txt", "la\n")
    at.codex.model.answers(Text("I have sung."))
    at.claude.model.answers(Call("Bash", {"command": "touch one", "description": "Sing"}))
    at.claude.model.answers(Call("Write", {"file_path": str(at.folder / "two"), "content": "la\n"}))
    at.claude.model.answers(Call("Read", {"file_path": str(song)}))
    at.claude.model.answers(Text("It is flat."))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", primary_agent="codex")
        reply = await client.say("write a song")
        assert client.asked == []
    assert made(at) == {"song.txt"} and ends(reply) == ["failed", "failed", "completed"]
    assert "It is flat." in reply.text and reply.stop == "end_turn"


async def test_claude_code_may_do_again_what_its_settings_allow_when_it_does_not_review(at: Place) -> None:
    claude_allows(at, "user")
    at.answer("It is flat.", "I have sung.")
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", primary_agent="codex")
        await client.say("write a song")
        at.claude.model.answers(Call("Bash", {"command": "touch one", "description": "Sing"}))
        await client.say("/claude write it")
        assert client.asked == []
    assert made(at) == {"one"}


async def test_codex_changes_nothing_as_a_reviewer_though_its_rules_allow_it(at: Place) -> None:
    codex_allows(at)
    at.claude.model.answers(Text("I have sung."))
    at.codex.model.answers(command("touch one"))
    at.codex.model.answers(escalated("touch two"))
    at.codex.model.answers(patch("*** Add File: three", "+la"))
    at.codex.model.answers(command("ls"))
    at.codex.model.answers(Text("It is flat."))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review")
        reply = await client.say("write a song")
        assert client.asked == []
    assert made(at) == set() and ends(reply) == ["failed", "failed", "failed", "completed"]
    assert "It is flat." in reply.text and reply.stop == "end_turn"


@pytest.mark.parametrize(
    ("mode", "rules"),
    [
        ("bypassPermissions", True),
        *[
            pytest.param(*each, marks=pytest.mark.prove)
            for each in (("acceptEdits", False), ("acceptEdits", True), ("bypassPermissions", False))
        ],
    ],
)
async def test_codex_changes_nothing_as_a_reviewer_though_its_configuration_lets_it(
    at: Place, mode: str, rules: bool
) -> None:
    if rules:
        codex_allows(at)
    at.codex.settings(
        top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"',
    )
    at.environment["IS_SANDBOX"] = "1"  # where also root may do without questions
    at.claude.model.answers(Text("I have sung."))
    at.codex.model.answers(command("touch one"))
    at.codex.model.answers(escalated("touch two"))
    at.codex.model.answers(patch("*** Add File: three", "+la"))
    at.codex.model.answers(Text("It is flat."))
    async with connected(at) as client:
        await open_with(client, mode=mode, route="review")
        reply = await client.say("write a song")
        assert client.asked == []
    assert made(at) == set() and "completed" not in ends(reply)
    assert "It is flat." in reply.text and reply.stop == "end_turn"


async def test_what_codex_was_allowed_before_it_is_not_as_a_reviewer(at: Place) -> None:
    at.codex.model.answers(escalated("touch one"))
    at.codex.model.answers(Text("There it is."))
    async with connected(at) as client:
        client.decisions.append("allow_always")
        await open_with(client, mode="default", route="codex")
        await client.say("make a file")
        assert len(client.asked) == 1 and made(at) == {"one"}
        (at.folder / "one").unlink()
        at.claude.model.answers(Text("I have sung."))
        at.codex.model.answers(escalated("touch one"))
        at.codex.model.answers(command("touch one"))
        at.codex.model.answers(Text("It is flat."))
        reply = await client.say("/review write a song")
        assert len(client.asked) == 1
    assert made(at) == set() and "It is flat." in reply.text


async def test_codex_may_write_again_when_it_does_not_review(at: Place) -> None:
    codex_allows(at)
    at.answer("I have sung.", "It is flat.")
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review")
        await client.say("write a song")
        at.codex.model.answers(patch("*** Add File: one", "+la"))
        at.codex.model.answers(command("mv one two", sandbox_permissions="require_escalated"))
        await client.say("/codex write it")
        assert client.asked == []
    assert made(at) == {"two"}
