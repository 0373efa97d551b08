"""Faults of what a client does for its agent: files and terminals."""

from collections.abc import Iterable
from typing import Any

from antiphon.traffic.entries import Direction
from tests.conformance.client_faults.client_faults import (
    Faults,
    Message,
    Wanted,
    answers,
    as_error,
    as_result,
    asks,
    key,
    received,
    with_params,
    with_result,
)  # fmt: skip
from tests.conformance.client_memory import Back, Broken, Fault

EMPTY = {"output": "", "truncated": False}


def file(method: str, end: str, **params: object) -> Wanted:
    """A file whose path ends like this."""

    def wanted(message: Message) -> bool:
        return asks(f"fs/{method}_text_file", **params)(message) and message["params"]["path"].endswith(end)

    return wanted


def reads_folder(message: Message) -> bool:
    return asks("fs/read_text_file")(message) and not message["params"]["path"].endswith(".txt")


def writes_folder(message: Message) -> bool:
    return asks("fs/write_text_file", content="x")(message)


def longer(message: Message) -> None:
    if "line" not in message["params"]:
        message["params"]["content"] += "\n"


def one_more_line(message: Message) -> None:
    message["result"]["content"] += "\n"


def cut(message: Message) -> None:
    message["result"]["content"] = message["result"]["content"][:65536]


def runs(text: str) -> Wanted:
    """A command with this in its arguments."""
    return lambda message: (
        asks("terminal/create")(message) and any(text in one for one in message["params"].get("args", ()))
    )


def split(message: Message) -> None:
    message["params"]["args"] = " ".join(message["params"]["args"]).split()


def exit_three(change: Any) -> Any:
    """Only the answers about a command that ended with 3."""

    def changed(message: Message) -> None:
        result = message.get("result") or {}
        status = result.get("exitStatus") or {}
        if result.get("exitCode") == 3 or status.get("exitCode") == 3:
            change(message)

    return changed


def not_truncated(message: Message) -> None:
    if message.get("result", {}).get("truncated"):
        message["result"]["truncated"] = False


def half_a_letter(message: Message) -> None:
    if message.get("result", {}).get("truncated"):
        message["result"]["output"] = "\ufffdéEND"


def no_signal(message: Message) -> None:
    if message.get("result", {}).get("signal"):
        message["result"] = {"exitCode": 0}


class AnswersFirst(Fault):
    """Answers a write before it has written: while the check looks, and until it asks for something else."""

    def __init__(self) -> None:
        self.writing: Message | None = None
        self.next: Message | None = None

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if (
            direction is Direction.A2C
            and file("write", "new song.txt")(message)
            and message["params"]["content"] != "short"
        ):
            self.writing = message
            yield Back({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        elif direction is Direction.A2C and self.writing is not None:
            self.next = message
            yield self.writing
        elif direction is Direction.C2A and self.writing is not None and key(message) == key(self.writing):
            self.writing = None
            yield Back(self.next)
        else:
            yield message


class Terminals(Fault):
    """Knows which terminals run something long."""

    def __init__(self) -> None:
        self.creating: set[bytes] = set()
        self.long: list[str] = []
        self.killed = False

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if isinstance(message, dict):
            if direction is Direction.A2C and runs("exec sleep")(message):
                self.creating.add(key(message))
            elif direction is Direction.C2A and key(message) in self.creating and "result" in message:
                self.creating.discard(key(message))
                self.long.append(message["result"]["terminalId"])
            elif direction is Direction.A2C and message.get("method", "").startswith("terminal/"):
                self.killed = self.killed or message["method"] == "terminal/kill"
                if message["params"].get("terminalId") in self.long:
                    return self.asked(message)
        return iter([message])

    def asked(self, message: Message) -> Iterable[Any]:
        """Something about such a terminal."""
        raise AssertionError


def back(message: Message, **answer: object) -> Back:
    return Back({"jsonrpc": "2.0", "id": message["id"], **answer})


class DoesNotWait(Terminals):
    def asked(self, message: Message) -> Iterable[Any]:
        yield back(message, result={"exitCode": 1}) if message["method"] == "terminal/wait_for_exit" else message


class ForgetsOutput(Terminals):
    def asked(self, message: Message) -> Iterable[Any]:
        yield (
            back(message, result=EMPTY)
            if message["method"] == "terminal/output" and self.killed and len(self.long) == 1
            else message
        )


class DoesNotRelease(Terminals):
    """Forgets a terminal, and lets its command run."""

    def __init__(self) -> None:
        super().__init__()
        self.released: set[str] = set()

    def asked(self, message: Message) -> Iterable[Any]:
        terminal = message["params"]["terminalId"]
        if terminal in self.released:
            yield back(message, error={"code": -32002, "message": "there is no such terminal"})
        elif message["method"] == "terminal/release" and len(self.long) == 2:
            self.released.add(terminal)
            yield back(message, result={})
        else:
            yield message


class Remembers(Terminals):
    """Ends a command, and keeps its terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.released = False

    def asked(self, message: Message) -> Iterable[Any]:
        if message["method"] == "terminal/output" and self.released:
            yield back(message, result=EMPTY)
        else:
            self.released = message["method"] == "terminal/release" and len(self.long) == 2
            yield message


FAULTS: Faults = {
    "files.read": answers(
        lambda message: file("read", "a song.txt")(message) and "line" not in message["params"], one_more_line
    ),
    "files.part": received(file("read", "a song.txt", line=2), with_params(line=3)),
    "files.large": answers(file("read", "large.txt"), cut),
    "files.missing": answers(file("read", "nothing.txt"), as_result({"content": ""})),
    "files.folder": answers(reads_folder, as_result({"content": ""})),
    "files.write": received(
        lambda message: file("write", "new song.txt")(message) and message["params"]["content"] != "short", longer
    ),
    "files.replace": received(file("write", "new song.txt", content="short"), with_params(content="short, and more")),
    "files.unwritable": answers(writes_folder, as_result({})),
    "files.answered-last": Broken(AnswersFirst),
    "terminals.runs": answers(asks("terminal/create"), as_error),
    "terminals.exit": answers(asks("terminal/wait_for_exit"), exit_three(with_result(exitCode=0))),
    "terminals.output": answers(asks("terminal/output"), exit_three(with_result(output="out"))),
    "terminals.arguments": received(runs("two  words"), split),
    "terminals.environment": received(runs("ANTIPHON_CHECK"), with_params(env=[])),
    "terminals.folder": received(runs("pwd"), with_params(cwd=None)),
    "terminals.limit": answers(asks("terminal/output"), not_truncated),
    "terminals.boundary": answers(asks("terminal/output"), half_a_letter),
    "terminals.missing": received(
        asks("terminal/create", command="antiphon-no-such-program"), with_params(command="true")
    ),
    "terminals.unknown": answers(asks("terminal/output", terminalId="antiphon-nobody"), as_result(EMPTY)),
    "terminals.waits": Broken(DoesNotWait),
    "terminals.kill": answers(asks("terminal/kill"), as_error),
    "terminals.after-kill": Broken(ForgetsOutput),
    "terminals.signal": answers(asks("terminal/wait_for_exit"), no_signal),
    "terminals.release": Broken(DoesNotRelease),
    "terminals.forgets": Broken(Remembers),
}
