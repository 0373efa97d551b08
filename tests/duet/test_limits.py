"""The joint agent as a process that the system gives little: few descriptors, a full disk."""

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import NO_ENGINES, Place
from tests.tui.terminal import ENTER, chat

pytestmark = pytest.mark.slow

DESCRIPTORS = 128


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.configure('[duet]\nengines = ["demo"]\n')
    return made


class Agent:
    """`antiphon agent` as an editor has it, and every update that it sent."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self._to, self._from = process.stdin, process.stdout
        self._ids = 0
        self.updates: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The response to a request, with its error if it has one."""
        self._ids += 1
        request = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        self._to.write(json.dumps(request).encode() + b"\n")
        self._to.flush()
        for line in self._from:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._ids and "method" not in message:
                return message
            if message.get("method") == "session/update":
                self.updates.append(message["params"]["update"])
        raise AssertionError("the agent ended")

    def new(self, cwd: Path) -> str:
        """A new session's id."""
        return str(self.ask("session/new", cwd=str(cwd), mcpServers=[])["result"]["sessionId"])

    def prompt(self, session: str, text: str) -> dict[str, Any]:
        """The response to a prompt."""
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    @property
    def texts(self) -> str:
        """All messages."""
        chunks = [each for each in self.updates if each["sessionUpdate"] == "agent_message_chunk"]
        return "".join(each["content"].get("text", "") for each in chunks)


@contextmanager
def agent(place: Place, limit: tuple[int, int] | None = None, **more: Any) -> Iterator[Agent]:
    """One, under a limit of the system: which one, and how much of it."""
    with subprocess.Popen(
        [sys.executable, "-m", "antiphon", "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=place.cwd, env={**NO_ENGINES, **place.env, "ANTIPHON_AUTO_RESUME": "false"},
        preexec_fn=None if limit is None else lambda: resource.setrlimit(limit[0], (limit[1], limit[1])),
    ) as process:  # fmt: skip
        try:
            made = Agent(process)
            made.ask("initialize", protocolVersion=1, **more)
            yield made
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def test_hundreds_of_sessions_are_open_at_once_with_few_descriptors(place: Place) -> None:
    with agent(place, (resource.RLIMIT_NOFILE, DESCRIPTORS)) as one:
        sessions = [one.new(place.cwd) for _ in range(3 * DESCRIPTORS)]
        assert len(set(sessions)) == 3 * DESCRIPTORS
        if sys.platform == "linux":
            assert len(os.listdir(f"/proc/{one.process.pid}/fd")) < 40
        for session in (sessions[0], sessions[-1]):
            assert one.prompt(session, "hi")["result"]["stopReason"] == "end_turn"
        assert "result" in one.ask("session/list")
        with agent(place, (resource.RLIMIT_NOFILE, DESCRIPTORS)) as other:  # it sees who has them
            refused = other.ask("session/load", sessionId=sessions[0], cwd=str(place.cwd), mcpServers=[])["error"]
            assert f"process {one.process.pid}" in str(refused)
        one.process.kill()
        one.process.wait()
        with agent(place, (resource.RLIMIT_NOFILE, DESCRIPTORS)) as other:
            assert "result" in other.ask("session/load", sessionId=sessions[0], cwd=str(place.cwd), mcpServers=[])


class Disk:
    """The disk of a place: full, or not, when a test says so."""

    def __init__(self, place: Place) -> None:
        self._state = place.state
        self.full = False

    def fill(self, process: "subprocess.Popen[bytes] | None") -> None:
        """From now on nothing more fits."""
        self.full = True

    def free(self, process: "subprocess.Popen[bytes]") -> None:
        """There is room again."""
        self.full = False

    def close(self) -> None:
        """Leave nothing."""


class LimitedFiles(Disk):
    """No file may grow: what a user without rights can do to a process."""

    def fill(self, process: "subprocess.Popen[bytes] | None") -> None:
        super().fill(process)
        assert process is not None
        size = (self._state / "antiphon.sqlite3").stat().st_size
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def free(self, process: "subprocess.Popen[bytes]") -> None:
        super().free(process)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class SmallDisk(Disk):
    """A disk of its own, with a file that takes what is left."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        place.state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", place.state], check=True)

    def fill(self, process: "subprocess.Popen[bytes] | None") -> None:
        super().fill(process)
        with suppress(OSError), (self._state / "filler").open("ab", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))

    def free(self, process: "subprocess.Popen[bytes]") -> None:
        super().free(process)
        (self._state / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "-l", self._state], check=True)


def _can_mount() -> bool:
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return os.geteuid() == 0 and subprocess.run(probe, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


DISKS = [LimitedFiles, SmallDisk] if _can_mount() else [LimitedFiles]
NOTICES: dict[str, Any] = {"clientCapabilities": {"session": {"notices": {}}}}


class Turns:
    """What was sent in a session, and which of it the user was shown is not saved."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.unsaved: set[str] = set()

    def say(self, one: Agent, session: str, size: int) -> None:
        """One more turn."""
        text = f"turn-{len(self.sent)} " + "x" * size
        before = len(one.updates)
        assert one.prompt(session, text)["result"]["stopReason"] == "end_turn"
        self.sent.append(text)
        for update in one.updates[before:]:
            words = json.dumps(update)
            if "This session is saved again" in words:
                assert "Nothing of it is missing" in words
                self.unsaved.clear()
            elif "This session is not being saved" in words:
                assert "antiphon.sqlite3` cannot" in words  # what is full
                self.unsaved.add(text)

    def check(self, one: Agent, session: str, cwd: Path) -> None:
        """What is loaded is what was sent, but for what the user was shown as not saved."""
        before = len(one.updates)
        assert "result" in one.ask("session/load", sessionId=session, cwd=str(cwd), mcpServers=[])
        loaded = [each["content"]["text"] for each in one.updates[before:] if each["sessionUpdate"] == "user_message_chunk"]  # fmt: skip
        assert loaded == [text for text in self.sent if text in loaded]
        assert {text for text in self.sent if text not in loaded} <= self.unsaved
        self.sent, self.unsaved = loaded, set()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system cannot change the limits of another process")
@pytest.mark.parametrize("more", [{}, NOTICES], ids=["message", "notice"])
@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.prove)])
def test_what_a_full_disk_does_not_take_is_shown_and_stored_when_there_is_space(
    place: Place, disk: type[Disk], more: dict[str, Any], seed: int
) -> None:
    rng, turns, drive = random.Random(seed), Turns(), disk(place)
    session = ""
    try:
        for _ in range(3):
            with agent(place, **more) as one:
                if session:
                    turns.check(one, session, place.cwd)
                else:
                    session = one.new(place.cwd)
                    turns.say(one, session, 0)
                for _ in range(6):
                    match rng.randrange(4):
                        case 0:
                            drive.fill(one.process)
                        case 1:
                            drive.free(one.process)
                        case _:
                            turns.say(one, session, rng.choice((10, 1000, 100_000)))
                if rng.random() < 0.5 or isinstance(
                    drive, SmallDisk
                ):  # room at the end of the process: nothing is missing
                    drive.free(one.process)
                    turns.unsaved.clear()
        with agent(place, **more) as one:
            turns.check(one, session, place.cwd)
    finally:
        drive.close()


SHOWN = [[], ["--quiet"], ["--json"]]


@pytest.mark.parametrize("more", SHOWN, ids=["plain", "quiet", "json"])
@pytest.mark.parametrize("name", ["antiphon", "demo"])
@pytest.mark.parametrize("before", [True, pytest.param(False, marks=pytest.mark.prove)], ids=["used", "new"])
def test_every_form_of_run_reports_that_the_disk_is_full_and_which(
    place: Place, name: str, more: list[str], before: bool
) -> None:
    disk = DISKS[-1](place)
    try:
        if before:
            assert place.run("hi", "--agent", "antiphon").status == 0

        def fill() -> None:
            if isinstance(disk, SmallDisk):
                disk.fill(None)
            else:
                size = (place.state / "antiphon.sqlite3").stat().st_size if before else 0
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        done = subprocess.run(
            place.words("hi", "--agent", name, *more), env={**place.env, **NO_ENGINES}, cwd=place.cwd, capture_output=True,
            encoding="utf-8", check=False, timeout=60, preexec_fn=fill,
        )  # fmt: skip
    finally:
        disk.close()
    text = done.stdout if more == ["--json"] else done.stderr
    lines = [line for line in text.splitlines() if "antiphon.sqlite3` cannot" in line]
    assert lines
    assert "Traceback" not in done.stderr
    if before or name == "demo":  # it works all the same, and says that nothing of it stays
        wanted = "This session is not being saved" if name == "antiphon" else "This session is not kept"
        assert any(wanted in line for line in lines), text
        assert all("hint: " not in line for line in lines)  # what to do stands in the same sentence
    else:
        assert done.returncode == 1


@pytest.mark.parametrize("size", [0, 4096])
def test_nothing_of_a_full_disk_is_a_traceback_in_run(place: Place, size: int) -> None:
    place.run("hi", "--agent", "antiphon")
    done = subprocess.run(
        place.words("hi", "--agent", "antiphon"), env={**place.env, **NO_ENGINES}, cwd=place.cwd, capture_output=True, encoding="utf-8",
        check=False, timeout=60, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "Logging error" not in done.stderr
    assert "antiphon.sqlite3` cannot" in done.stderr


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system cannot change the limits of another process")
def test_the_chat_shows_what_cannot_be_stored_and_that_it_is_stored_again(place: Place) -> None:
    with chat(place.cwd.parent, "antiphon", columns=200, HOME=str(place.cwd.parent)) as terminal:

        def comes(text: str) -> None:
            terminal.until(lambda: text in terminal.all, f"{text!r} is not there")

        comes("   /help")
        terminal.press(f"hi{ENTER}")
        comes("I am a demo")
        limit(terminal.pid, (place.state / "antiphon.sqlite3").stat().st_size)
        terminal.press(f"/big 100{ENTER}")
        comes("This session is not being saved")
        comes("antiphon.sqlite3")
        limit(terminal.pid, resource.RLIM_INFINITY)
        terminal.press(f"again{ENTER}")
        comes("This session is saved again")
        assert "Traceback" not in terminal.all


def limit(pid: int, size: int) -> None:
    """Let no file of a process, and of what it started, grow beyond a size."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text(encoding="utf-8").split():
            limit(int(child), size)
