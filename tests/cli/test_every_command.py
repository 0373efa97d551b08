"""Every command as a real process, whatever its streams and surroundings are: found by walking the parsers, so that a new one is included.

Two tables: what a broken, full or closed stdout, a closed stdin, a missing home and the like do to every command; and the same mistake in
every command that can be given it, which ends with the same status.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from antiphon.cli.completion import tree
from antiphon.cli.main import COMMANDS
from tests import prepared
from tests.cli.histories import asked, ended, message_event, write
from tests.cli.program import NO_ENGINES, ROOT
from tests.cli.terminal import Terminal
from tests.limits import limit

SESSION = "0198f3a2-0000-7000-8000-000000000001"
PATHS = [node.path[1:] for node in tree(COMMANDS).walk()]

SAMPLES: dict[str, tuple[str, ...]] = {
    "run": ("--agent", "demo", "hello"),
    "agents add": ("mine", "--", "cat"),
    "agents check": ("demo",),
    "agents remove": ("other",),
    "check": ("--list",),
    "check-client": ("--list",),
    "completion": ("bash",),
    "doctor": ("install", "config"),
    "fleet credentials": ("keys",),
    "fleet drain": ("worker-1",),
    "fleet up": ("--workers", "0"),
    "inspect": ("tape.jsonl",),
    "policy explain": ("Bash", "ls"),
    "policy revoke": ("--all",),
    "record": ("-q", "--", "cat"),
    "replay": ("tape.jsonl", "--speed", "max"),
    "sessions delete": ("last", "--yes"),
    "sessions export": ("last",),
    "sessions resume": ("last",),
    "sessions search": ("hello",),
    "sessions show": ("last",),
    "serve": ("unit",),
    "serve backup": ("copy.sqlite3",),
    "serve sessions delete": ("4f0c",),
    "setup": ("zed",),
    "worker": ("--fleet", "nats://127.0.0.1:1"),
}
"""What makes a command do its work; the others do it without arguments."""


HOMELESS = """
import pwd
def getpwuid(uid): raise KeyError(uid)
pwd.getpwuid = getpwuid
from antiphon.cli.main import main
raise SystemExit(main())
"""
"""The program for a user whom the system does not know, as in many containers."""


@dataclass
class Surroundings:
    """One thing that is wrong around the process."""

    shell: str = ""
    """Redirections."""
    reader_gone: bool = False
    without: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    no_cwd: bool = False
    homeless: bool = False


WRONG = {
    "nothing": Surroundings(),
    "a reader that is gone": Surroundings(reader_gone=True),
    "a full disk on stdout": Surroundings(">/dev/full"),
    "a closed stdout": Surroundings(">&-"),
    "a closed stdin": Surroundings("<&-"),
    "a closed stderr": Surroundings("2>&-"),
    "a full disk on stderr": Surroundings("2>/dev/full"),
    "no streams at all": Surroundings("<&- >&- 2>&-"),
    "no HOME": Surroundings(without=("HOME",)),
    "a HOME that is not a path": Surroundings(env={"HOME": "here"}),
    "a user without a home": Surroundings(without=("HOME", "ANTIPHON_STATE_DIR", "ANTIPHON_CONFIG_DIR"), homeless=True),
    "a home that cannot be written": Surroundings(
        without=("ANTIPHON_STATE_DIR", "ANTIPHON_CONFIG_DIR"), env={"HOME": "/proc/nowhere"}
    ),
    "a directory that is gone": Surroundings(no_cwd=True),
    "nothing but the core installed": Surroundings(env={"PYTHONPATH": str(Path(__file__).with_name("core_only"))}),
    "a stdout for ASCII alone": Surroundings(env={"PYTHONIOENCODING": "ascii"}),
}


@dataclass
class Done:
    status: int
    out: str
    err: str


class Machine:
    """A machine with a session, a recording and an agent of the user's own; nothing else is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder / "work"
        self.kept = folder / "kept"
        self.cwd.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "ANTIPHON_STATE_DIR": str(folder / "state"),
            "ANTIPHON_CONFIG_DIR": str(folder / "config"),
            "PYTHONPATH": str(ROOT),
            **NO_ENGINES,
        }
        (folder / "config").mkdir()
        (folder / "config" / "config.toml").write_text('[agents.other]\ncommand = ["cat"]\n', encoding="utf-8")
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
        line = json.dumps({"t": 0, "dir": "c2a", "msg": hello})
        (self.cwd / "tape.jsonl").write_text(f"{line}\n", encoding="utf-8")

    def restore(self) -> None:
        """Undo what the command before has done."""
        if self.kept.exists():
            for name in ("state", "config"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
                shutil.copytree(self.kept / name, self.folder / name)
            return
        for name in ("state", "config"):
            (self.folder / name).mkdir(exist_ok=True)
            shutil.copytree(self.folder / name, self.kept / name)

    def run(self, *words: str, wrong: Surroundings = WRONG["nothing"]) -> Done:
        if wrong is WRONG["nothing"]:
            self.restore()
            done = prepared.run(*words, cwd=self.cwd, env=self.env, timeout=limit())
            return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        env = {name: value for name, value in self.env.items() if name not in wrong.without} | wrong.env
        gone = self.folder / "gone"
        gone.mkdir(exist_ok=True)
        remove = f"rmdir {gone};" if wrong.no_cwd else ""
        script = f'{remove} exec "$@" {wrong.shell}'
        start = ["-c", HOMELESS] if wrong.homeless else ["-m", "antiphon"]
        self.restore()
        reading, writing = os.pipe()
        try:
            if wrong.reader_gone:
                os.close(reading)
            program = subprocess.Popen(
                ["/bin/sh", "-c", script, "sh", sys.executable, *start, *words],
                cwd=gone if wrong.no_cwd else self.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=writing if wrong.reader_gone else subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        finally:
            os.close(writing)
            if not wrong.reader_gone:
                os.close(reading)
        out, err = program.communicate(timeout=limit())
        return Done(program.returncode, (out or b"").decode(), err.decode())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path / "machine")
    monkeypatch.setenv("ANTIPHON_STATE_DIR", machine.env["ANTIPHON_STATE_DIR"])
    write(SESSION, str(machine.cwd), [asked("hello"), message_event("La la"), ended()], title="Söngs")
    yield machine
    shutil.rmtree(machine.folder, ignore_errors=True)


def of(path: tuple[str, ...]) -> tuple[str, ...]:
    return (*path, *SAMPLES.get(" ".join(path), ()))


CONTROLS = ["serve status", "serve tokens", "serve shares", "serve sessions", "serve sessions delete", "serve backup"]
"""Commands about the data of a gateway, of which there is none."""

USUALLY = {
    "chat": 1,
    "sessions resume": 1,
    "policy": 2,
    "policy trust": 1,
    "policy distrust": 2,
    "setup": 1,
    "worker": 1,
    "worker unit": 2,
    "fleet": 2,
    "fleet up": 2,
    "fleet status": 1,
    "fleet drain": 1,
    "compare": 2,
    "bridge": 2,
    **dict.fromkeys(CONTROLS, 2),
}
"""The exit status of a command where nothing is wrong around it; 0 for all others."""

PRINTS = [
    "", "run", "sessions", "sessions list", "sessions show", "sessions search", "sessions export", "agents", "agents check", "agents registry", "policy explain", "doctor", "check", "check-client", "inspect", "completion", "help", "serve", "serve unit", "fleet credentials",
]  # fmt: skip
"""Commands that write to stdout what would be lost."""

SPEAKS = ["agent", "record", "replay"]
"""Commands that use ACP on stdin and stdout, and start with neither closed."""

OTHERWISE: dict[str, dict[int, list[str]]] = {
    "a full disk on stdout": {1: PRINTS},
    "a closed stdout": {1: [*PRINTS, *SPEAKS]},
    "no streams at all": {1: [*PRINTS, *SPEAKS]},
    "a reader that is gone": {130: ["run"]},
    "a user without a home": {
        1: ["run", "sessions", "sessions list", "sessions show", "sessions search", "sessions export", "sessions delete", "agents", "agents check", "agents add", "agents remove", "agents registry", "policy explain", "policy list", "policy revoke", "policy log", "policy distrust", "doctor", "agent", "record", "serve", "serve unit", "fleet credentials", *CONTROLS],
    },
    "a home that cannot be written": {
        1: ["agents add", "agents remove"],
        2: ["sessions show", "sessions export", "sessions delete", "sessions resume", "record"],
        5: ["run"],
    },
    "a directory that is gone": {
        1: ["run", "compare", "sessions", "sessions list", "sessions show", "sessions search", "sessions export", "sessions delete", "agents", "agents check", "policy explain", "policy distrust", "serve", "serve unit", "fleet credentials"],
        2: ["inspect", "replay"],
        127: ["record"],
    },
    "a closed stdin": {1: SPEAKS},
}  # fmt: skip
"""What is wrong around a command → exit status → the commands that end with it. The others end as usual."""


def expected(path: tuple[str, ...], words: tuple[str, ...], wrong: str) -> int:
    """Return the exit status that a command has to end with."""
    name = " ".join(path)
    if words[-1:] == ("--help",):
        return 1 if wrong == "a full disk on stdout" else 0
    found = [status for status, names in OTHERWISE.get(wrong, {}).items() if name in names]
    return found[0] if found else USUALLY.get(name, 0)


SHARES = 10
"""Parts that the pairs of command and surroundings are dealt into. Each surroundings and each command is in every part: `make test` plays the
first one, `make prove` the others. A failure names its pair."""


def pairs(path: tuple[str, ...], share: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words and surroundings of a command that are in a share."""
    of_interest = [name for name, wrong in WRONG.items() if wrong.shell == ">/dev/full" or wrong.reader_gone]
    for words, names in ((of(path), list(WRONG)), ((*path, "--help"), of_interest)):
        yield from ((words, name) for at, name in enumerate(names, PATHS.index(path)) if at % SHARES == share)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, *(pytest.param(each, marks=pytest.mark.prove) for each in range(1, SHARES))])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: " ".join(path) or "antiphon")
def test_no_surroundings_make_a_command_crash_or_lose_output_in_silence(
    path: tuple[str, ...], share: int, machine: Machine
) -> None:
    for words, name in pairs(path, share):
        wrong = WRONG[name]
        done = machine.run(*words, wrong=wrong)
        where = f"{' '.join(words)} with {name}: {done}"
        assert done.status == expected(path, words, name), where
        for never in ("Traceback", "fault of antiphon", "Exception ignored", "Error:"):
            assert never not in done.err, where
        if done.status in (1, 2, 127) and "2>" not in wrong.shell:
            assert re.search(r"^error: ", done.err, re.MULTILINE) and "\nhint: " in done.err, where


@pytest.mark.slow
def test_a_full_stderr_keeps_no_command_from_its_work(machine: Machine) -> None:
    full = WRONG["a full disk on stderr"]
    machine.run("agents", "add", "mine", "--", "cat", wrong=full)
    assert "mine" in (machine.folder / "config" / "config.toml").read_text(encoding="utf-8")
    machine.run("sessions", "delete", "last", "--yes", wrong=full)
    machine.kept = machine.folder / "after"  # what was done before stays
    assert "Söngs" not in machine.run("sessions", "list").out


@pytest.mark.slow
@pytest.mark.parametrize(("words", "status"), [((), 1), (("--yes",), 0)], ids=["asks", "--yes"])
def test_setup_without_a_reader_changes_a_file_only_if_it_need_not_ask(
    words: tuple[str, ...], status: int, machine: Machine
) -> None:
    file = machine.cwd / "settings.json"
    done = machine.run("setup", "zed", "--file", str(file), *words, wrong=WRONG["a reader that is gone"])
    assert (done.status, file.exists()) == (status, status == 0), done


def test_the_shares_have_every_pair_of_command_and_surroundings_once() -> None:
    dealt = [(path, *pair) for path in PATHS for share in range(SHARES) for pair in pairs(path, share)]
    assert {(path, of(path), name) for path in PATHS for name in WRONG} <= set(dealt) and len(dealt) == len(set(dealt))
    assert {name for path in PATHS for _, name in pairs(path, 0)} == set(WRONG)


def test_the_tables_name_commands_and_surroundings_that_exist() -> None:
    named = {*SAMPLES, *USUALLY, *(name for rows in OTHERWISE.values() for names in rows.values() for name in names)}
    assert named <= {" ".join(path) for path in PATHS} and set(OTHERWISE) <= set(WRONG)


NEEDS = {
    "chat": (("chat", "demo"), "antiphon[chat]"),
    "a rule for command lines": (("run", "--agent", "demo", "--allow", "Bash(ls *)", "hi"), "antiphon[policy]"),
    "the explanation of one": (("policy", "explain", "--allow", "Bash(ls *)", "Bash", "ls x"), "antiphon[policy]"),
    "the engine claude": (("agent", "--engine", "claude", "--login"), "antiphon[claude]"),
    "the engine codex": (("agent", "--engine", "codex", "--login"), "antiphon[codex]"),
    "the agent claude": (("run", "--agent", "claude", "hi"), "antiphon[claude]"),
    "a fleet on this machine": (("fleet", "up"), "antiphon[fleet]"),
}


@pytest.mark.parametrize("what", NEEDS)
def test_with_nothing_but_the_core_the_extra_that_is_missing_is_named(what: str, machine: Machine) -> None:
    words, extra = NEEDS[what]
    wrong = WRONG["nothing but the core installed"]
    env = {name: value for name, value in machine.env.items() if not name.endswith("_EXECUTABLE")}
    env |= wrong.env | {"PATH": "/usr/bin:/bin", "TERM": "xterm"}
    with Terminal([sys.executable, "-m", "antiphon", *words], cwd=machine.cwd, env=env) as terminal:
        status, text = terminal.finish()
    assert status == 1 and "error: " in text and f"pip install '{extra}'" in " ".join(text.split()), text


BYTES = "\udcff"
"""An argument of one byte that is not UTF-8, as Python gives it."""

MISTAKES: dict[str, list[tuple[str, ...]]] = {
    "an agent that does not exist": [
        ("run", "--agent", "nosuch", "hi"), ("agent", "--engine", "nosuch"), ("agent", "--engine", "nosuch", "--login"), ("check", "nosuch"),
        ("agents", "check", "nosuch"), ("agents", "remove", "nosuch"), ("doctor", "nosuch"), ("chat", "nosuch"), ("setup", "zed", "--engine", "nosuch"),
    ],
    "a program that does not exist": [
        ("run", "--agent", "nosuch --acp", "hi"), ("run", "--agent", "./nosuch", "hi"), ("check", "--", "nosuch"), ("check-client", "--", "nosuch", "{agent}"),
        ("replay", "--as", "client", "tape.jsonl", "--", "nosuch"), ("agent", "--engine", "nosuch --acp"),
    ],
    "a file that does not exist": [
        ("run", "-f", "nosuch"), ("run", "--attach", "nosuch", "hi"), ("run", "look at @nosuch.txt"), ("run", "--mcp-config", "nosuch", "hi"),
        ("inspect", "nosuch"), ("inspect", "nosuch", "--json"), ("replay", "nosuch"), ("replay", "--as", "client", "nosuch", "--", "cat"),
        ("record", "--from", "nosuch", "-o", "x", "--redact", "all"), ("check", "--prompts", "nosuch", "demo"),
        ("check-client", "--commands", "nosuch", "--", "cat", "{agent}"), ("agents", "registry", "nosuch"),
    ],
    "a directory that does not exist": [
        ("run", "--cwd", "nosuch", "hi"), ("run", "--add-dir", "nosuch", "hi"), ("chat", "--cwd", "nosuch"), ("sessions", "--cwd", "nosuch"),
        ("policy", "trust", "nosuch"), ("policy", "distrust", "nosuch"), ("policy", "explain", "--cwd", "nosuch", "Bash", "ls"),
        ("replay", "--as", "client", "--cwd", "nosuch", "tape.jsonl", "--", "cat"), ("check", "--junit", "nosuch/x.xml", "demo"),
        ("record", "-o", "nosuch/x", "--", "true"), ("sessions", "export", SESSION, "-o", "nosuch/x"),
    ],
    "an id that does not exist": [
        ("sessions", "show", "nosuch"), ("sessions", "export", "nosuch"), ("sessions", "delete", "nosuch", "--yes"), ("sessions", "resume", "nosuch"),
        ("run", "--agent", "demo", "--resume", "nosuch", "hi"), ("policy", "revoke", "nosuch"), ("policy", "revoke", "99"), ("policy", "distrust"),
        ("check", "--only", "nosuch", "demo"), ("replay", "--conversation", "9", "tape.jsonl"),
    ],
    "a missing argument": [
        ("run",), ("check",), ("check-client",), ("record",), ("record", "--"), ("inspect",), ("replay",), ("completion",), ("policy",),
        ("policy", "explain"), ("policy", "revoke"), ("sessions", "show"), ("sessions", "search"), ("sessions", "search", " "), ("agents", "check"),
        ("agents", "add", "x"), ("check-client", "--", "cat"),
    ],
    "a value that makes no sense": [
        ("run", "--timeout", "soon", "hi"), ("check", "--timeout", "0", "demo"), ("doctor", "--timeout", "-1"), ("agents", "check", "demo", "--timeout", "1x"),
        ("replay", "tape.jsonl", "--as", "client", "--timeout", "x", "--", "cat"), ("inspect", "--slow", "x", "tape.jsonl"), ("check", "--jobs", "x", "demo"),
        ("run", "--allow", "Bash(", "hi"), ("policy", "explain", "--allow", "Bash(", "Bash", "ls"), ("policy", "log", "--limit", "x"),
        ("sessions", "--limit", "9" * 5000), ("record", "--rotate", "x", "--", "cat"), ("setup", "nosuch"), ("completion", "nosuch"), ("--color", "x", "agents"),
        ("agents", "add", "a b", "--", "cat"), ("agents", "add", "demo", "--", "cat"), ("agents", "add", "y", "--", ""),
    ],
    "a word too many": [
        ("help", "run", "x"), ("help", "policy", "list", "x"), ("help", "--zz"), ("completion", "bash", "x"), ("policy", "explain", "Bash", "ls", "x"),
        ("sessions", "--zz", "x"), ("agents", "--zz", "x"), ("policy", "--zz", "x"),
    ],
    "bytes that are not text": [
        ("run", "--agent", "demo", BYTES), ("run", "--json", "--agent", "demo", BYTES), ("run", "--agent", "demo", "--cwd", BYTES, "hi"), ("run", "--agent", "demo", "--add-dir", BYTES, "hi"),
        ("run", "--agent", "demo", "--resume", BYTES, "hi"), ("run", "--agent", "demo", "--model", BYTES, "hi"), ("run", "--agent", BYTES, "hi"), ("run", "--allow", f"Bash({BYTES})", "hi"),
        ("run", f"--{BYTES}"), ("policy", "revoke", BYTES), ("policy", "explain", "Bash", BYTES), ("sessions", "show", BYTES), ("sessions", "search", BYTES), ("agents", "add", "z", "--", BYTES),
        ("agents", "check", BYTES), ("agent", "--engine", BYTES), ("chat", BYTES), ("setup", BYTES), ("doctor", BYTES), ("help", BYTES), ("completion", BYTES), ("check", BYTES),
        ("inspect", BYTES), ("replay", BYTES), (BYTES,),
    ],
}  # fmt: skip
"""What is wrong → every command that can be given it. All of them end with 2."""


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_same_mistake_ends_with_2_in_every_command(mistake: str, machine: Machine) -> None:
    for words in MISTAKES[mistake]:
        done = machine.run(*words)
        assert (done.status, done.err.startswith("error: "), "\nhint: " in done.err) == (2, True, True), (words, done)
        assert (done.out != "") == ("--json" in words), (words, done)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "--agent", "dmeo", "hi"), "demo"),
        (("run", "--agent", "demo", "--mode", "plna", "hi"), "plan"),
        (("run", "--agent", "demo", "--model", "cannon", "hi"), "canon"),
        (("run", "--agent", "demo", "--set", "lenght=short", "hi"), "length"),
        (("agent", "--engine", "dmeo"), "demo"),
        (("agents", "check", "dmeo"), "demo"),
        (("doctor", "instal"), "install"),
        (("check", "--only", "handshak", "demo"), "handshake"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else words,
)
def test_what_has_no_list_in_the_parser_is_suggested_too(words: tuple[str, ...], meant: str, machine: Machine) -> None:
    done = machine.run(*words)
    assert done.status == 2 and f"did you mean `{meant}`?" in done.err


@pytest.mark.parametrize("words", [("doctor", "install"), ("sessions",), ("inspect", "tape.jsonl")], ids=" ".join)
def test_colours_are_written_to_a_pipe_where_they_are_forced(words: tuple[str, ...], machine: Machine) -> None:
    assert "\x1b[" not in machine.run(*words).out
    assert "\x1b[" in machine.run(*words, "--color", "always").out
    machine.env["FORCE_COLOR"] = "1"
    assert "\x1b[" in machine.run(*words).out
    machine.env["NO_COLOR"] = "1"
    assert "\x1b[" not in machine.run(*words).out


@pytest.mark.slow
def test_a_recorded_program_that_does_not_exist_ends_as_in_a_shell(machine: Machine) -> None:
    done = machine.run("record", "-q", "--", "nosuch")
    assert done.status == 127 and done.err.startswith("error: ") and "\nhint: " in done.err
