"""A project that is not trusted runs nothing and gets no key before the user trusts it; trust holds for its files as they are."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from antiphon.config.environment import OWNERS
from tests.engines.claude.model.server import listening
from tests.engines.claude.place import HERMETIC, Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.client import connected
from tests.engines.hostile import CLAUDE_WAYS, hostile, notices, ran

NOTICE = "This project is not trusted, so Claude Code works with your own settings only"


@proves("trust.stranger", "trust.command", "trust.changed", on=BOTH)
async def test_a_project_runs_nothing_until_it_is_trusted(at: Place, tmp_path: Path) -> None:
    marks, below = tmp_path / "marks", at.folder / "below"
    at.git("init", "--quiet")
    below.mkdir()
    (below / "CLAUDE.md").write_text("Sing in C.", encoding="utf-8")
    at.environment |= {"OPENAI_API_KEY": "a-key-of-codex", "CODEX_HOME": str(tmp_path)}
    with listening() as strangers_model:
        for directory in (at.folder, below):
            hostile(directory, CLAUDE_WAYS, marks, strangers_model.address)
        async with connected(at) as client:
            await client.open(below)
            reply = await client.say("sing")
            assert reply.text == "echo: sing" and ran(marks) == set() and strangers_model.asked == []
            (request,) = at.model.asked
            assert request.headers["x-api-key"] == HERMETIC["ANTHROPIC_API_KEY"]
            assert "Sing in C." in request.everything  # instructions run nothing
            text = notices(client)
            assert NOTICE in text and "/trust" in text and "antiphon policy trust" in text
            assert all(
                name in text for name in (".mcp.json", "settings.json", "settings.local.json", "commands/sing.md")
            )
            assert {"trust"} <= {
                each["name"] for each in client.updates_of("available_commands_update")[-1]["availableCommands"]
            }
            _no_keys_of_others(at)

            # Trusted, it counts: in the same session, which goes on in a new process.
            assert "settings.json" in (await client.say("/trust")).text
            await client.say("again")
            assert "mcp" in ran(marks)
            assert "sing" in str(strangers_model.asked[-1].messages)  # what was sent before is known

            # Changed, it does not.
            shutil.rmtree(marks)
            hostile(at.folder, {"mcp": CLAUDE_WAYS["mcp"]}, marks, strangers_model.address)
            (at.folder / ".mcp.json").write_text(
                f'{{"mcpServers": {{"other": {{"command": "sh", "args": ["-c", "touch {marks}/other"]}}}}}}',
                encoding="utf-8",
            )
            before = len(strangers_model.asked)
            await client.say("once more")
            changed = notices(client)
            assert "changed since you trusted it" in changed and ".mcp.json" in changed
            assert "other" not in ran(marks) and len(strangers_model.asked) == before


async def test_no_way_to_the_files_of_an_untrusted_project_counts(at: Place, tmp_path: Path) -> None:
    """Through a link, from a directory besides, by a command or a skill, in a session that is loaded or resumed, by an import."""
    marks, also = tmp_path / "marks", tmp_path / "also"
    (at.folder / "conf").mkdir()
    (at.folder / ".claude").symlink_to("conf")
    also.mkdir()
    secrets = {tmp_path / "secret": "SECRET-1", at.home / "secret": "SECRET-2", at.folder.parent / "beside": "SECRET-3"}
    for path, text in secrets.items():
        path.write_text(text, encoding="utf-8")
    at.write("inner.txt", "an import of its own")
    for directory in (at.folder, also):
        wanted = f"Sing in C. @{tmp_path}/secret @~/secret @../beside @inner.txt\n"
        (directory / "CLAUDE.md").write_text(wanted, encoding="utf-8")
    at.git("init", "--quiet")
    with listening() as strangers_model:
        for directory in (at.folder, also):
            hostile(directory, CLAUDE_WAYS, marks, strangers_model.address)
        async with connected(at) as client:
            await client.open(additional_directories=[str(also)])
            for prompt in ("hi", "/sing", "/sing again"):
                assert (await client.say(prompt)).text == f"echo: {prompt}"
            id = client.session.id
            assert str(also / ".mcp.json") in notices(client) and "`.claude/settings.json`" in notices(client)
        async with connected(at) as client:
            await client.load(id)
            await client.say("loaded")
            await client.resume(id)
            await client.say("resumed")
        assert ran(marks) == set() and strangers_model.asked == []
    received = "".join(request.everything for request in at.model.asked)
    assert "an import of its own" in received and [text for text in secrets.values() if text in received] == []


WORDS = {
    ".claude/output-styles/stranger.md": "---\nname: stranger\ndescription: a style\n---\n",
    ".claude/agents/stranger.md": "---\nname: stranger\ndescription: ",
    ".claude/commands/stranger.md": "---\ndescription: ",
    ".claude/skills/stranger/SKILL.md": "---\nname: stranger\ndescription: ",
}
"""Files of a project that Claude Code puts before the model, and what comes before the words in each. Instructions (CLAUDE.md, `.claude/rules`) are read."""


async def test_no_settings_of_an_untrusted_project_reach_the_model(at: Place) -> None:
    """Styles, agents, commands and skills run nothing by themselves, but send the model what to do."""
    at.git("init", "--quiet")
    at.write(".claude/settings.json", '{"outputStyle": "stranger"}')
    for number, (path, head) in enumerate(WORDS.items()):
        at.write(path, f"{head}WORDS-OF-{number}\n" + ("---\nSing.\n" if "description: " in head[-14:] else ""))
    async with connected(at) as client:
        await client.open()
        await client.say("sing")
        before = at.model.asked[-1].everything + str(at.model.asked[-1].system)
        assert [path for number, path in enumerate(WORDS) if f"WORDS-OF-{number}" in before] == []
        assert "output-styles/stranger.md" in notices(client)
        await client.say("/trust")
        await client.say("sing")
        after = at.model.asked[-1].everything + str(at.model.asked[-1].system)
        assert "WORDS-OF-0" in after and "WORDS-OF-3" in after


@pytest.mark.parametrize(
    ("agent", "option"),
    [
        ("claude", "--json"),
        ("antiphon", "--quiet"),
        *[
            pytest.param(*each, marks=pytest.mark.prove)
            for each in (
                ("claude", "--quiet"),
                ("claude", "--verbose"),
                ("antiphon", "--json"),
                ("antiphon", "--verbose"),
            )
        ],
    ],
)
async def test_run_reports_what_was_left_out_whatever_it_prints(
    at: Place, tmp_path: Path, agent: str, option: str
) -> None:
    with listening() as strangers_model:
        hostile(at.folder, CLAUDE_WAYS, tmp_path / "marks", strangers_model.address)
        command = [sys.executable, "-m", "antiphon", "run", option, "--agent", agent, "hi"]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=at.folder, env=at.environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(120):
            out, err = await process.communicate()
        text = (out if option == "--json" else err).decode()
        times = 2 if option == "--json" else 1  # as an event when it happens, and among the warnings of the result
        assert (
            process.returncode == 0
            and text.count(NOTICE) == times
            and "antiphon policy trust" in text
            and ".mcp.json" in text
        )
        assert ran(tmp_path / "marks") == set() and strangers_model.asked == []


def _no_keys_of_others(at: Place) -> None:
    for pid in at.processes():
        names = {entry.partition(b"=")[0].decode() for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        assert "ANTHROPIC_API_KEY" in names and not [name for name in names if name.startswith(OWNERS["codex"])]
