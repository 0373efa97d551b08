"""A project that is not trusted runs nothing and gets no key before the user trusts it; trust holds for its files as they are."""

from pathlib import Path

import pytest

from antiphon.config.environment import OWNERS
from tests.engines.client import Client, connected
from tests.engines.codex.bullets import proves
from tests.engines.codex.model.server import serving
from tests.engines.codex.model.steps import command
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.hostile import CODEX_WAYS, hostile, notices, ran
from tests.engines.model.steps import Text

MAY_WRITE = 'model_provider = "choir"\nsandbox_mode = "workspace-write"'
"""Codex trusts a project for ever as soon as it works in it with a sandbox that may write."""


@proves("trust.stranger", "trust.command", "trust.changed", on=BOTH)
async def test_a_project_runs_nothing_until_it_is_trusted(at: Place, tmp_path: Path) -> None:
    marks, below = tmp_path / "marks", at.folder / "below"
    at.git("init", "--quiet")
    below.mkdir()
    at.settings(top=MAY_WRITE)
    written = (at.codex_home / "config.toml").read_text(encoding="utf-8")
    at.environment |= {"ANTHROPIC_API_KEY": "a-key-of-claude", "CLAUDE_CONFIG_DIR": str(tmp_path)}
    with serving() as strangers_model:
        hostile(at.folder, CODEX_WAYS, marks, strangers_model.address)
        async with connected(at) as client:
            await client.open(below)
            reply = await client.say("sing")
            assert reply.text.endswith("echo: sing") and ran(marks) == set() and strangers_model.asked == []
            assert (at.codex_home / "config.toml").read_text(encoding="utf-8") == written
            text = notices(client)
            assert (
                "so Codex works with your own settings only" in text
                and ".codex/config.toml" in text
                and "/trust" in text
            )
            _no_keys_of_others(at)

            assert ".codex/config.toml" in (await client.say("/trust")).text
            await client.say("again")
            assert "mcp" in ran(marks) and strangers_model.asked == []
            assert "sing" in str(at.model.asked[-1].body)  # what was sent before is known

            other = f'[mcp_servers.other]\ncommand = "sh"\nargs = ["-c", "touch {marks}/other"]\n'
            (at.folder / ".codex" / "config.toml").write_text(other, encoding="utf-8")
            await client.say("once more")
            changed = notices(client)
            assert "changed since you trusted it" in changed and "other" not in ran(marks)
            assert (at.codex_home / "config.toml").read_text(encoding="utf-8") == written


@pytest.mark.parametrize(
    ("by_user", "mode"),
    [
        (None, "default"),
        pytest.param("trusted", "acceptEdits", marks=pytest.mark.prove),
        pytest.param("untrusted", "configured", marks=pytest.mark.prove),
    ],
)
@proves("trust.mode")
async def test_trusting_the_settings_of_a_project_does_not_change_the_mode(
    at: Place, by_user: str | None, mode: str
) -> None:
    if by_user is not None:
        at.settings(tables=f'[projects."{at.folder}"]\ntrust_level = "{by_user}"\n')
    async with connected(at) as client:
        await client.open()
        assert _mode(client) == mode
    at.write(".codex/config.toml", 'model_verbosity = "low"\n')
    for _ in "untrusted", "trusted":
        async with connected(at) as client:
            await client.open()
            assert _mode(client) == mode
            await client.say("/trust")
            await client.say("sing")
            assert _mode(client) == mode


async def test_instructions_are_read_where_there_are_no_settings_to_trust(at: Place) -> None:
    at.git("init", "--quiet")
    at.write("AGENTS.md", "Sing in C.\n")
    async with connected(at) as client:
        await client.open()
        await client.say("sing")
        assert "Sing in C." in str(at.model.asked[-1].body) and "trusted" not in notices(client)


async def test_rules_of_an_untrusted_project_let_no_command_run(at: Place) -> None:
    at.git("init", "--quiet")
    at.settings(top=MAY_WRITE)
    at.write(".codex/rules/free.rules", 'prefix_rule(pattern=["sh"], decision="allow")\n')
    outside = at.home / "outside"
    for prompt in ("untrusted", "/trust", "trusted"):
        if prompt != "/trust":
            at.model.answers(command(f"sh -c 'touch {outside}-{prompt}'"))
            at.model.answers(Text("Done."))
        async with connected(at) as client:
            await client.open()
            await client.say(prompt)
            if prompt == "untrusted":
                assert ".codex/rules/free.rules" in notices(client)
    assert [path.name for path in at.home.glob("outside-*")] == ["outside-trusted"]


def _mode(client: Client) -> str:
    assert client.session.modes is not None
    return client.session.modes.current_mode_id


def _no_keys_of_others(at: Place) -> None:
    for pid in at.processes():
        names = {entry.partition(b"=")[0].decode() for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        assert "CHOIR_API_KEY" in names and not [name for name in names if name.startswith(OWNERS["claude"])]
