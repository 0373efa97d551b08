"""One scenario for each recorded conversation with the real program: what it says, and what is to be told of it."""

from collections.abc import Callable

from tests.engines.codex.translate.harness import CWD, Stage

Scenario = tuple[Callable[[Stage], None], list[str]]
SCENARIOS: dict[str, Scenario] = {}

DONE = ["say m 'done'", "end u1 end_turn"]
ADDED = f"call f edit Write: Write new.txt [in_progress] diff({CWD}/new.txt: None -> 'hello\\n')"
MADE = f"update f [completed] diff({CWD}/new.txt: None -> 'hello\\n')"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
TOUCH = "call c execute Bash: touch made.txt [in_progress]"
RETRYING = "notice warning: Reconnecting... 1/1 | "


def scenario(name: str, *tale: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """The recording that it is made after, and the tale."""

    def note(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS[name] = play, list(tale)
        return play

    return note


def done(stage: Stage) -> None:
    """The model says so, and the turn is over."""
    stage.says("m", "done")
    stage.over(items=[stage.item("agentMessage", "m", text="done")])


def ask_command(stage: Stage, answer: str) -> None:
    """A command that the user is asked about."""
    stage.begin()
    stage.command("c", "touch made.txt")
    patch = stage.asked(
        "item/commandExecution/requestApproval", itemId="c", kind="command", reason="May I?", cwd=CWD,
        command="/bin/bash -lc 'touch made.txt'", commandActions=[{"type": "unknown", "command": "touch made.txt"}],
        proposedExecpolicyAmendment=["touch"], availableDecisions=["accept", "cancel"],
    )  # fmt: skip
    assert patch is not None
    assert (patch.title, patch.name, patch.status) == ("touch made.txt", "Bash", "pending")
    if answer.startswith("accept"):
        stage.allowed("c")
    stage.told("serverRequest/resolved", requestId=0)
