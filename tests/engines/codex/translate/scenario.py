"""One scenario for each recorded session with the real program: what it says, and what it has to become."""

from collections.abc import Callable

from tests.engines.codex.translate.harness import CWD, TranslatedThread

Scenario = tuple[Callable[[TranslatedThread], None], list[str]]
SCENARIOS: dict[str, Scenario] = {}

DONE = ["say m 'done'", "end u1 end_turn"]
ADDED = f"call f edit Write: Write new.txt [in_progress] diff({CWD}/new.txt: None -> 'hello\\n')"
MADE = f"update f [completed] diff({CWD}/new.txt: None -> 'hello\\n')"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
TOUCH = "call c execute Bash: touch made.txt [in_progress]"
RETRYING = "notice warning: Reconnecting... 1/1 | "


def scenario(
    name: str, *outline: str
) -> Callable[[Callable[[TranslatedThread], None]], Callable[[TranslatedThread], None]]:
    """The recording that it is made after, and the outline."""

    def note(play: Callable[[TranslatedThread], None]) -> Callable[[TranslatedThread], None]:
        SCENARIOS[name] = play, list(outline)
        return play

    return note


def done(thread: TranslatedThread) -> None:
    """The model says so, and the turn is over."""
    thread.says("m", "done")
    thread.over(items=[thread.item("agentMessage", "m", text="done")])


def ask_command(thread: TranslatedThread, answer: str) -> None:
    """A command that the user is asked about."""
    thread.begin()
    thread.command("c", "touch made.txt")
    patch = thread.asked(
        "item/commandExecution/requestApproval", itemId="c", kind="command", reason="May I?", cwd=CWD,
        command="/bin/bash -lc 'touch made.txt'", commandActions=[{"type": "unknown", "command": "touch made.txt"}],
        proposedExecpolicyAmendment=["touch"], availableDecisions=["accept", "cancel"],
    )  # fmt: skip
    assert patch is not None
    assert (patch.title, patch.name, patch.status) == ("touch made.txt", "Bash", "pending")
    if answer.startswith("accept"):
        thread.allowed("c")
    thread.notify("serverRequest/resolved", requestId=0)
