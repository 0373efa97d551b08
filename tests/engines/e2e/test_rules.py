"""Rules of the policy that every CLI keeps too, also in the modes in which it does not ask. Codex is made to ask, and the guard answers."""

from antiphon import v1
from tests.engines.client import Reply, connected
from tests.engines.guarded import guarded_command
from tests.engines.model.steps import Text
from tests.engines.places import Place
from tests.engines.subjects import on_versions

MODES = ("default", "acceptEdits", "bypassPermissions")
RULES = '[policy]\ndeny = ["Edit(secret/**)", "Bash(rm *)"]\nask = ["Bash(git push *)", "Write(asked.txt)"]\n'
REMOVALS = (
    "rm secret/x",
    "true && rm secret/x",
    "/bin/rm secret/x",
    "sh -c 'rm secret/x'",
    "echo secret/x | xargs rm",
)


def statuses(reply: Reply) -> list[str]:
    """Return how each call ended, in the order in which they began."""
    ends = {each.tool_call_id: "" for each in reply.of(v1.ToolCall)}
    ends |= {each.tool_call_id: each.status.value for each in reply.of(v1.ToolCallUpdate) if each.status}
    return list(ends.values())


@on_versions
async def test_what_is_denied_is_refused_and_what_is_asked_about_is_asked_in_every_mode(at: Place) -> None:
    at.configure(RULES)
    at.environment["IS_SANDBOX"] = "1"  # where Claude Code lets also root do without questions
    at.git("init", "--quiet")
    secret, free = at.write("secret/x", "do\n"), at.folder / "free.txt"
    (at.folder / "link").symlink_to(at.folder / "secret")
    async with connected(at, command=guarded_command(at.engine)) as client:
        await client.open()
        for mode in MODES:
            await client.session.set_mode(mode)
            # Edits.
            edits = [
                at.calls.edit_file(secret, "do", "re"),
                at.calls.add_file(at.folder / "secret" / "y", "la\n"),
                at.calls.add_file(at.folder / "link" / "z", "la\n"),
                at.calls.add_file(free, "la\n"),
            ]
            for edit in edits:
                at.model.answers(edit)
            at.model.answers(Text("Then only one."))
            reply = await client.say(f"write: {mode}")
            assert secret.read_text(encoding="utf-8") == "do\n"
            assert [each.name for each in secret.parent.iterdir()] == ["x"]
            assert free.read_text(encoding="utf-8") == "la\n"
            assert statuses(reply) == ["failed", "failed", "failed", "completed"]
            assert (reply.text, reply.stop) == ("Then only one.", "end_turn") and "denied" not in reply.notices
            assert [asked.tool_call.name for asked in client.asked] == (["Write"] if mode == "default" else [])
            client.asked.clear()
            free.unlink()

            # Commands.
            for line in (*REMOVALS, "touch free.txt"):
                at.model.answers(at.calls.command(line))
            reply = await client.say(f"remove: {mode}")
            assert secret.exists() and free.exists()
            assert statuses(reply) == [*["failed"] * len(REMOVALS), "completed"] and reply.stop == "end_turn"
            assert {str(asked.tool_call.title) for asked in client.asked} <= {"touch free.txt"}
            assert mode != "bypassPermissions" or client.asked == []
            client.asked.clear()
            free.unlink()

            # What is asked about.
            at.model.answers(at.calls.command("git push origin"))
            client.decisions.append("reject")
            reply = await client.say(f"push: {mode}")
            [push] = client.asked
            content = str(push.tool_call.content)
            assert isinstance(push.tool_call.raw_input, dict)
            assert push.tool_call.raw_input["command"] == "git push origin" and statuses(reply) == ["failed"]
            assert "The rule `Bash(git push *)` asks about it." in content and f"{at.title} asks." in content
            assert {option.kind.value for option in push.options} == {"allow_once", "reject_once"}
            client.asked.clear()

            at.model.answers(at.calls.add_file(at.folder / "asked.txt", "la\n"))
            await client.say(f"write what is asked about: {mode}")
            assert [asked.tool_call.name for asked in client.asked] == ["Write"]
            (at.folder / "asked.txt").unlink()
            client.asked.clear()
            assert client.session.modes is not None and client.session.modes.current_mode_id == mode
