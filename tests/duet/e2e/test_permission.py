"""One policy for all engines: it decides first, and what it leaves open is asked once for all of them."""

import pytest

from antiphon import v1
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with
from tests.engines.claude.model.steps import Call
from tests.engines.client import connected
from tests.engines.codex.model.steps import Call as CodexCall
from tests.engines.codex.model.steps import command, patch
from tests.engines.model.steps import Text

pytestmark = pytest.mark.slow


def both_write(at: Place, claude: str, codex: str) -> None:
    """Each engine writes a file."""
    at.claude.model.answers(Call("Write", {"file_path": str(at.folder / claude), "content": "la\n"}))
    at.claude.model.answers(Text("So far Claude."))
    at.codex.model.answers(patch(f"*** Add File: {codex}", "+la"))
    at.codex.model.answers(Text("So far Codex."))


def claude_runs(line: str) -> Call:
    return Call("Bash", {"command": line, "description": "Make a file"})


def codex_runs(line: str) -> CodexCall:
    """It wants to leave the sandbox, so it has to ask."""
    return command(line, sandbox_permissions="require_escalated", justification="May I sing?")


def words_of(asked: v1.RequestPermission) -> str:
    """All that the user is shown of a question."""
    return f"{asked.tool_call.title} {asked.tool_call.content}"


@pytest.mark.parametrize("mode", ["default", pytest.param("acceptEdits", marks=pytest.mark.prove)])
async def test_an_edit_that_a_rule_denies_is_refused_on_both_and_the_user_is_not_asked(at: Place, mode: str) -> None:
    at.configure('[policy]\ndeny = ["Edit(secret.txt)"]\n')
    for name in ("secret.txt", "secret.txt"):
        both_write(at, name, name)
    async with connected(at) as client:
        await open_with(client, route="duet", mode=mode)
        reply = await client.say("write it")
        assert client.asked == []
    assert not (at.folder / "secret.txt").exists()
    assert reply.stop == "end_turn" and "So far Claude." in reply.text and "So far Codex." in reply.text
    calls = [each for each in reply.updates if isinstance(each, v1.ToolCallUpdate) and each.status == "failed"]
    assert len({each.tool_call_id for each in calls}) == 2


async def test_what_no_rule_denies_still_works_beside_it(at: Place) -> None:
    at.configure('[policy]\ndeny = ["Edit(secret.txt)"]\n')
    both_write(at, "one.txt", "two.txt")
    async with connected(at) as client:
        await open_with(client, route="duet", mode="default")
        await client.say("write them")
        assert len(client.asked) == 2
    assert (at.folder / "one.txt").exists() and (at.folder / "two.txt").exists()


async def test_a_command_that_a_rule_denies_is_refused_on_both(at: Place) -> None:
    at.configure('[policy]\ndeny = ["Bash(touch *)"]\n')
    at.claude.model.answers(claude_runs("touch one"))
    at.codex.model.answers(codex_runs("touch two"))
    async with connected(at) as client:
        await open_with(client, route="duet", mode="default")
        reply = await client.say("make files")
        assert client.asked == []
    assert reply.stop == "end_turn" and not (at.folder / "one").exists() and not (at.folder / "two").exists()


async def test_what_a_rule_asks_about_is_asked_on_both_where_the_mode_would_not(at: Place) -> None:
    at.configure('[policy]\nask = ["Edit(secret.txt)"]\n')
    at.write("secret.txt", "do\n")
    at.claude.model.answers(Call("Read", {"file_path": str(at.folder / "secret.txt")}))
    at.claude.model.answers(Call("Write", {"file_path": str(at.folder / "secret.txt"), "content": "re\n"}))
    at.codex.model.answers(patch("*** Update File: secret.txt", "@@", "-do", "+mi"))
    async with connected(at) as client:
        client.decisions += ["reject_once", "reject_once"]
        await open_with(client, route="duet", mode="acceptEdits")
        await client.say("write it")
        claude, codex = client.asked
    assert "Claude Code" in words_of(claude) and "Codex" in words_of(codex)
    assert (at.folder / "secret.txt").read_text(encoding="utf-8") == "do\n"


async def test_what_a_rule_allows_is_not_asked_on_either(at: Place) -> None:
    at.configure('[policy]\nallow = ["Edit(songs/**)", "Bash(touch *)"]\n')
    (at.folder / "songs").mkdir()
    at.claude.model.answers(claude_runs("touch one"))
    at.codex.model.answers(codex_runs("touch two"))
    both_write(at, "songs/three", "songs/four")
    async with connected(at) as client:
        await open_with(client, route="duet", mode="default")
        reply = await client.say("write them")
        assert client.asked == []
    made = {str(path.relative_to(at.folder)) for path in at.folder.rglob("*") if path.is_file()}
    assert {"one", "two", "songs/three", "songs/four"} <= made and reply.stop == "end_turn"


@pytest.mark.parametrize("first", ["claude", pytest.param("codex", marks=pytest.mark.prove)])
async def test_an_always_for_one_engine_holds_for_the_other(at: Place, first: str) -> None:
    at.claude.model.answers(claude_runs("touch song.txt"))
    at.codex.model.answers(codex_runs("touch song.txt"))
    async with connected(at) as client:
        client.decisions.append("allow_always")
        await open_with(client, route="duet", mode="default", primary_agent=first)
        reply = await client.say("make a file")
        [asked] = client.asked
    name = {"claude": "Claude Code", "codex": "Codex"}[first]
    assert name in words_of(asked) and reply.stop == "end_turn" and (at.folder / "song.txt").exists()
    assert "allow_always" in [option.kind.value for option in asked.options]


async def test_an_always_holds_for_the_rest_of_the_session_and_its_scope_is_shown(at: Place) -> None:
    at.claude.model.answers(claude_runs("touch song.txt"))
    async with connected(at) as client:
        client.decisions.append("allow_always")
        await open_with(client, mode="default")
        await client.say("make a file")
        [always] = [option for option in client.asked[0].options if option.kind.value == "allow_always"][:1]
        assert "touch" in always.name or "session" in always.name or "always" in always.name.lower()
        (at.folder / "song.txt").unlink()
        at.claude.model.answers(claude_runs("touch song.txt"))
        await client.say("once more")
        assert len(client.asked) == 1
    assert (at.folder / "song.txt").exists()


async def test_the_engine_that_asks_is_shown_in_a_duet(at: Place) -> None:
    both_write(at, "one.txt", "two.txt")
    async with connected(at) as client:
        await open_with(client, route="duet", mode="default")
        await client.say("write them")
        claude, codex = client.asked
    assert "Claude Code" in words_of(claude) and "one.txt" in words_of(claude)
    assert "Codex" in words_of(codex) and "two.txt" in words_of(codex)
    assert client.session.id in {claude.session_id} & {codex.session_id}  # the session that the client knows


async def test_a_sub_agent_that_asks_is_shown_as_one(at: Place) -> None:
    task = {"description": "Fetch the score", "prompt": "fetch it", "subagent_type": "general-purpose"}
    at.claude.model.answers(Call("Agent", {**task, "run_in_background": False}))
    at.claude.model.agent_answers(claude_runs("touch score.txt"))
    async with connected(at) as client:
        await open_with(client, mode="default")
        await client.say("delegate")
        [asked] = [each for each in client.asked if "touch score.txt" in words_of(each)]
    shown = f"{words_of(asked)} {asked.meta} {asked.tool_call.meta}"
    assert "Fetch the score" in shown or "sub-agent" in shown.lower()


async def test_what_is_rejected_once_is_asked_again(at: Place) -> None:
    async with connected(at) as client:
        client.decisions += ["reject_once", "allow_once"]
        await open_with(client, mode="default")
        for _ in range(2):
            at.claude.model.answers(claude_runs("touch song.txt"))
            await client.say("make a file")
        assert len(client.asked) == 2
    assert (at.folder / "song.txt").exists()
