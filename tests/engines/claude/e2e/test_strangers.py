"""A project of a stranger runs nothing and gets no key before the user trusts it; trust holds for its files as they are."""

import shutil
from pathlib import Path

from antiphon.config.environment import OWNERS
from tests.engines.claude.model.server import listening
from tests.engines.claude.place import HERMETIC, Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.driving import connected
from tests.engines.hostile import CLAUDE_WAYS, hostile, notices, ran

NOTICE = "This project is not trusted, so Claude Code works with your own settings only"


@proves("trust.stranger", "trust.command", "trust.changed", on=BOTH)
async def test_a_project_of_a_stranger_runs_nothing_until_it_is_trusted(at: Place, tmp_path: Path) -> None:
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
            told = await client.say("sing")
            assert told.text == "echo: sing" and ran(marks) == set() and strangers_model.asked == []
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
            assert "sing" in str(strangers_model.asked[-1].messages)  # what was said before is known

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


def _no_keys_of_others(at: Place) -> None:
    for pid in at.processes():
        names = {entry.partition(b"=")[0].decode() for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        assert "ANTHROPIC_API_KEY" in names and not [name for name in names if name.startswith(OWNERS["codex"])]
