"""Files that name programs to run: no mode that accepts edits writes them unasked, by a patch or by a command."""

import asyncio
import shlex
from pathlib import Path

import pytest

from antiphon import v1
from antiphon.transports import tree
from tests.engines.codex.bullets import on_versions, proves
from tests.engines.codex.client import Client, connected
from tests.engines.codex.model.steps import Call, Patch, command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH, PYPI
from tests.engines.guarded import guarded_command
from tests.engines.model.steps import Text, wait_limit
from tests.engines.places import agent_command
from tests.waits import wait_until_gone

PROTECTED = (
    ".vscode/tasks.json", ".envrc", ".mcp.json", ".claude/settings.json", ".github/workflows/x.yml", ".husky/pre-commit",
    ".git/hooks/pre-commit", ".codex/config.toml", "docs/HEAD", "deep/.Envrc", "linked/tasks.json",
)  # fmt: skip
"""One of each kind: in a directory, a name alone, a repository, another case, through a link."""

PATCHES = {
    "add": lambda name: patch(f"*** Add File: {name}", "+la"),
    "move": lambda name: patch("*** Update File: plain.txt", f"*** Move to: {name}", "@@", "-do", "+re"),
}
COMMANDS = {
    "mv": "mv plain.txt {}",
    "cp": "cp plain.txt {}",
    "redirect": "printf la > {}",
    "tee": "echo la | tee {}",
    "link": "ln -f plain.txt {}",
    "python": """python3 -c "open('{}', 'w').write('la')" """,
    "script": "sh ./write.sh {}",
}

WAYS = (*PATCHES, *COMMANDS)
MODES = ("acceptEdits", "dontAsk")


def prepared(at: Place) -> Path:
    """A project in which each of these files could be written, if that were allowed."""
    at.git("init", "--quiet")
    for name in PROTECTED:
        if not name.startswith("linked/"):
            (at.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (at.folder / "linked").symlink_to(".vscode")
    (at.folder / ".git/hooks/pre-commit").unlink(missing_ok=True)
    at.write("write.sh", 'printf la > "$1"\n')
    return at.write("plain.txt", "do\n")


def tries(way: str, *names: str) -> list[Call | Patch]:
    """Return steps that try these files by one way: a command as it is, and as one that asks to run outside of the sandbox."""
    if way in PATCHES:
        return [PATCHES[way](name) for name in names]
    lines = [COMMANDS[way].format(name) for name in names]
    return [each for line in lines for each in (command(line), command(line, sandbox_permissions="require_escalated"))]


def tries_of_all() -> list[Call | Patch]:
    """Return steps with every file and every way in them: each file is tried by one."""
    return [step for number, name in enumerate(PROTECTED) for step in tries(WAYS[number % len(WAYS)], name)]


def written(at: Place) -> list[str]:
    return [name for name in PROTECTED if (at.folder / name).exists()]


async def in_mode(client: Client, mode: str) -> None:
    await client.open()
    await client.session.set_mode(mode)


async def refused(at: Place, mode: str, steps: list[Call | Patch]) -> None:
    """Play these steps and refuse all of them: no file is written, and the user is asked once for each file."""
    plain = prepared(at)
    for step in steps:
        at.model.answers(step)
    async with connected(at) as client:
        await in_mode(client, mode)
        client.decisions.extend(["reject"] * len(steps))
        reply = await client.say("write")
    assert written(at) == [] and plain.read_text(encoding="utf-8") == "do\n" and reply.stop == "end_turn"
    assert len(client.asked) == (len(PROTECTED) if mode == "acceptEdits" else 0)
    assert not (at.folder / "linked").is_dir() or (at.folder / "linked").is_symlink()


@pytest.mark.parametrize("mode", MODES)
@proves("modes.protected", on=BOTH)
async def test_a_file_that_names_programs_is_written_only_if_the_user_allows_it(at: Place, mode: str) -> None:
    await refused(at, mode, tries_of_all())


@pytest.mark.prove
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
@on_versions(PYPI)
async def test_each_file_that_names_programs_is_refused_by_each_way(at: Place, mode: str, way: str) -> None:
    await refused(at, mode, tries(way, *PROTECTED))


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param("", marks=pytest.mark.prove),
        pytest.param('deny = ["Edit(secret/**)"]', marks=pytest.mark.prove),
        'ask = ["Bash(git push *)"]',
    ],
)
@on_versions(*BOTH)
async def test_the_guard_of_a_joint_session_asks_too_whatever_the_rules_make_of_the_mode(at: Place, rules: str) -> None:
    at.configure(f"[policy]\n{rules}\n")
    plain = prepared(at)
    steps = tries_of_all()
    for step in steps:
        at.model.answers(step)
    async with connected(at, command=guarded_command("codex")) as client:
        await in_mode(client, "acceptEdits")
        client.decisions.extend(["reject_once"] * len(steps))
        await client.say("write")
    assert written(at) == [] and plain.exists() and len(client.asked) >= len(PROTECTED)


@pytest.mark.parametrize("agent", [agent_command("codex"), guarded_command("codex")], ids=["alone", "guarded"])
@proves("modes.accept-edits", on=BOTH)
async def test_ordinary_edits_are_not_asked_about_and_what_only_reads_runs(at: Place, agent: tuple[str, ...]) -> None:
    """Also in a directory that is new, which Codex's own read-only sandbox would not make."""
    at.write("old.txt", "do\n")
    outside = {"sandbox_permissions": "require_escalated"}
    for step in (
        patch("*** Add File: free.txt", "+la"),
        patch("*** Add File: new/deep/one.txt", "+la", "*** Add File: new/two.txt", "+la"),
        patch("*** Update File: free.txt", "@@", "-la", "+lo"),
        patch("*** Update File: old.txt", "*** Move to: moved/there.txt", "@@", "-do", "+re"),
        patch("*** Delete File: new/two.txt"),
        command("mkdir made", **outside),
        command("mv free.txt made/free.txt", **outside),
        command("rm new/deep/one.txt", **outside),
        command("cat made/free.txt"),
        Text("Done."),
    ):
        at.model.answers(step)
    async with connected(at, command=agent) as client:
        await in_mode(client, "acceptEdits")
        reply = await client.say("work")
    assert client.asked == [] and reply.text == "Done."
    ends = {each.tool_call_id: each.status for each in reply.of(v1.ToolCallUpdate) if each.status}
    assert len(ends) == 9 and set(ends.values()) == {v1.ToolStatus.COMPLETED}
    found = {str(path.relative_to(at.folder)): path.read_text(encoding="utf-8") for path in at.folder.rglob("*.txt")}
    assert found == {"made/free.txt": "lo\n", "moved/there.txt": "re\n"}


@on_versions(*BOTH)
async def test_a_file_that_names_programs_is_written_when_the_user_allows_it(at: Place) -> None:
    at.model.answers(patch("*** Add File: .vscode/tasks.json", "+la"))
    at.model.answers(
        command(shlex.join(["cp", ".vscode/tasks.json", ".envrc"]), sandbox_permissions="require_escalated")
    )
    async with connected(at) as client:
        await in_mode(client, "acceptEdits")
        await client.say("write")
    assert [asked.tool_call.name for asked in client.asked] == ["Write", "Bash"]
    assert [(at.folder / name).read_text(encoding="utf-8") for name in (".vscode/tasks.json", ".envrc")] == ["la\n"] * 2


@pytest.mark.parametrize("mode", [pytest.param("default", marks=pytest.mark.prove), "acceptEdits"])
@on_versions(*BOTH)
async def test_what_is_refused_leaves_no_directory_behind(at: Place, mode: str) -> None:
    async with connected(at) as client:
        await in_mode(client, mode)
        client.decisions.append("reject")
        at.model.answers(patch("*** Add File: .vscode/tasks.json", "+la"))
        await client.say("write")
        # Allowed, and it fails by itself: there is nothing to update.
        at.model.answers(patch("*** Update File: none/at/all.txt", "@@", "-la", "+lo"))
        await client.say("write")
    assert list(at.folder.iterdir()) == []


@on_versions(*BOTH)
async def test_a_review_that_is_the_first_turn_of_a_mode_has_its_rights(at: Place) -> None:
    """Codex's own configuration lets it write the workspace, and a review is started without any settings."""
    at.settings(top='model_provider = "choir"\nsandbox_mode = "workspace-write"')
    at.git("init", "--quiet")
    at.model.answers(command("printf la > .envrc"))
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None and client.session.modes.current_mode_id == "acceptEdits"
        await client.say("/review")
    assert not (at.folder / ".envrc").exists()


@pytest.mark.parametrize(
    "mode",
    [pytest.param("default", marks=pytest.mark.prove), "acceptEdits", pytest.param("dontAsk", marks=pytest.mark.prove)],
)
@on_versions(*BOTH)
async def test_a_command_that_is_killed_with_all_of_codex_leaves_no_empty_directories(at: Place, mode: str) -> None:
    """A sandbox that may write makes `.git`, `.codex`, `.agents` and `.aws` in each root, and only its own process removes them."""
    at.model.answers(command("sleep 60", yield_time_ms=300))
    async with connected(at) as client:
        await in_mode(client, mode)
        await client.say("wait")
        tree.kill_tree(0, at.mark)
        assert await asyncio.to_thread(wait_until_gone, at.mark, wait_limit())
    names = (".git", ".codex", ".agents", ".aws")
    assert [name for name in names for root in (at.folder, at.temporary) if (root / name).exists()] == []
