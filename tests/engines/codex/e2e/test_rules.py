"""Rules of the policy that Codex keeps too: it takes none, so it is made to ask, and the guard answers."""

from pathlib import Path

from antiphon import v1
from tests.engines.codex.bullets import on_versions
from tests.engines.codex.client import Client, Reply, connected
from tests.engines.codex.model.steps import command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.guarded import guarded_command
from tests.engines.model.steps import Text

GUARDED = guarded_command("codex")
MODES = ("default", "acceptEdits", "bypassPermissions")

ABOUT_EDITS = '[policy]\ndeny = ["Edit(secret/**)"]\n'
ABOUT_COMMANDS = '[policy]\ndeny = ["Bash(rm *)", "Edit(secret/**)"]\nask = ["Bash(git push *)"]\n'

ABOUT_OTHER_THINGS = '[policy]\ndeny = ["Read(secret/**)", "WebFetch"]\nallow = ["Edit"]\n'
AS_IT_IS = {"default": "on-request", "acceptEdits": "on-request", "bypassPermissions": "never"}
"""Mode → the approval policy of Codex without any rule."""

UPDATE = patch("*** Update File: secret/x", "@@", "-do", "+re")
ADD_SECRET = patch("*** Add File: secret/y", "+la")
ADD = patch("*** Add File: free.txt", "+la")


def prepared(at: Place, rules: str) -> Path:
    """A place with rules, and a file that no engine may change."""
    at.configure(rules)
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
async def test_rules_about_edits_alone_hold_in_every_mode_and_rules_about_other_things_change_nothing(
    at: Place,
) -> None:
    secret, free = prepared(at, ABOUT_EDITS), at.folder / "free.txt"
    async with connected(at, command=GUARDED) as client:
        for mode in MODES:
            for step in (UPDATE, ADD_SECRET, ADD, Text("Then only one.")):
                at.model.answers(step)
            await in_mode(client, mode)
            reply = await client.say("write")
            assert client.session.modes is not None and client.session.modes.current_mode_id == mode
            assert secret.read_text(encoding="utf-8") == "do\n"
            assert [each.name for each in secret.parent.iterdir()] == ["x"] and free.read_text(
                encoding="utf-8"
            ) == "la\n"
            assert statuses(reply) == ["failed", "failed", "completed"]
            assert (reply.text, reply.stop) == ("Then only one.", "end_turn")
            assert [asked.tool_call.name for asked in client.asked] == (["Write"] if mode == "default" else [])
            client.asked.clear()
            free.unlink()
        at.configure(ABOUT_OTHER_THINGS)
        for mode, policy in AS_IT_IS.items():
            await in_mode(client, mode)
            await client.say("hello")
            [turn] = at.contexts()[client.session.id]
            assert turn["approval_policy"] == policy


@on_versions(*BOTH)
async def test_rules_hold_also_where_the_users_own_configuration_lets_codex_do_anything(at: Place) -> None:
    at.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"')
    secret = prepared(at, ABOUT_EDITS)
    at.model.answers(UPDATE)
    at.model.answers(ADD)
    async with connected(at, command=GUARDED) as client:
        reply = await client.say("write")
        assert client.session.modes is not None and client.session.modes.current_mode_id == "bypassPermissions"
    assert secret.read_text(encoding="utf-8") == "do\n" and statuses(reply) == ["failed", "completed"]


@on_versions(*BOTH)
async def test_in_plan_codex_looks_around_unasked_and_changes_nothing(at: Place) -> None:
    secret = prepared(at, ABOUT_COMMANDS)
    at.model.answers(command("cat secret/x"))
    at.model.answers(command("rm secret/x"))
    at.model.answers(ADD)
    async with connected(at, command=GUARDED) as client:
        await in_mode(client, "plan")
        reply = await client.say("plan")
    assert client.asked == [] and secret.exists() and not (at.folder / "free.txt").exists()
    assert statuses(reply)[0] == "completed"
