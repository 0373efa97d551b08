"""`antiphon sessions` as a person meets it: data on stdout, words on stderr."""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from antiphon.cli.main import main
from antiphon.gateway.data import FILE_NAME as GATEWAY_FILE
from antiphon.gateway.data import GatewayData
from antiphon.gateway.events import PROMPT, TURN, EventHeader, stored_event, user_messages
from antiphon.store.locks import SessionLock
from antiphon.store.schema import FILE_NAME
from tests.cli.histories import asked, called, ended, message_event, thought, write
from tests.cli.terminal import Terminal

Sessions = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
ONE, TWO = "0198f3a2-77c1-4b1e-9d0a-5c1f8f3f1a01", "0198f3a2-77d2-4b1e-9d0a-5c1f8f3f1a02"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in; its parent has state and config."""
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(tmp_path / "config"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def sessions(home: Path, capfd: pytest.CaptureFixture[str]) -> Sessions:
    """Runs a command: its status, its data and its words."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["sessions", *words])
        printed = capfd.readouterr()
        return status, printed.out, printed.err

    return run


def two(home: Path) -> None:
    """Two sessions here, the second used last, and one elsewhere."""
    write(ONE, str(home), [asked("Sing a song"), message_event("La la"), ended()], title="Songs")
    write("f00", "/elsewhere", [asked("Something else")])
    write(
        TWO,
        str(home),
        [
            asked("Fix the `limiter`\nplease"),
            message_event("Done"),
            ended(),
            asked("Really?"),
            message_event("Yes"),
            ended(),
        ],
        state=b'{"route":"duet","other":1}',
        engine_sessions={"codex": "2", "claude": "1"},
    )


# list


def test_the_sessions_of_this_directory_are_listed_the_last_used_first(home: Path, sessions: Sessions) -> None:
    two(home)
    write("empty", str(home), [])
    write("of the demo", str(home), [asked("x")], engine="demo")
    status, out, err = sessions()
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "ID            USED      TURNS  ROUTE  TITLE",
        "0198f3a2-77d  just now  2      duet   Fix the limiter",
        "0198f3a2-77c  just now  1      -      Songs",
    ]
    assert sessions("list")[1] == out


def behind_the_gateway(home: Path, *rows: tuple[str, str, str, int]) -> None:
    """Store sessions in the data of a gateway: the agent, its id of the session, the title, and turns."""

    async def store() -> None:
        async with GatewayData.open() as data:
            for agent, id, title, turns in rows:
                row = await data.create(agent, id, str(home))
                header = EventHeader(turn="t")
                messages = user_messages(
                    id, msgspec.Raw(b'{"prompt":[{"type":"text","text":"Paint it\\nred"}]}'), header
                )
                begun = [stored_event(TURN, header), *(stored_event(PROMPT, header, each) for each in messages)]
                if turns:
                    await data.journal.append(await data.journal.claim(row.key), begun * turns)
                data.save(msgspec.structs.replace(row, title=title, updated=time.time() if turns else 0))

    asyncio.run(store())


def test_sessions_that_only_the_gateway_has_are_listed_once_and_marked(home: Path, sessions: Sessions) -> None:
    write(ONE, str(home), [asked("Sing a song"), message_event("La la"), ended()], title="Songs")
    gemini = "7d1e77c1-aaaa-4b1e-9d0a-5c1f8f3f1a01"
    behind_the_gateway(home, ("antiphon", ONE, "Songs", 1), ("gemini", gemini, "", 2), ("codex", "unused", "x", 0))
    status, out, err = sessions()
    assert (status, err) == (
        0,
        "those with `gateway:` are stored by the gateway: see `antiphon serve sessions`\n",
    )
    assert [re.split(r"  +", line) for line in out.splitlines()[1:]] == [
        ["7d1e77c1", "just now", "2", "gateway: gemini", "Paint it"],
        ["0198f3a2", "just now", "1", "-", "Songs"],
    ]
    listed = [msgspec.json.decode(line) for line in sessions("--json")[1].splitlines()]
    assert [(each["id"], each["gateway"], each["turns"]) for each in listed] == [(gemini, "gemini", 2), (ONE, None, 1)]
    assert "gemini" not in sessions("--from", "zed")[1]
    assert sessions("--limit", "1")[2].startswith("… and 1 more")


@pytest.mark.parametrize("command", ["show", "export", "resume", "delete"])
def test_a_command_for_a_session_of_the_gateway_names_the_command_that_has_it(
    home: Path, sessions: Sessions, command: str
) -> None:
    behind_the_gateway(home, ("gemini", "7d1e77c1", "", 1))
    status, out, err = sessions(command, "7d1e")
    assert (status, out) == (2, "") and "session of the gateway" in err and "antiphon serve sessions" in err


def test_data_of_a_gateway_that_cannot_be_read_hide_no_other_sessions(home: Path, sessions: Sessions) -> None:
    two(home)
    directory = home.parent / "state" / "gateway"
    directory.mkdir(parents=True)
    (directory / GATEWAY_FILE).write_bytes(b"not a database" * 100)
    status, out, err = sessions()
    assert status == 0 and len(out.splitlines()) == 3 and "cannot be read" in err


def test_all_and_another_directory_are_listed_on_request(home: Path, sessions: Sessions) -> None:
    two(home)
    out = sessions("--all")[1]
    assert out.splitlines()[0].split() == ["ID", "USED", "TURNS", "ROUTE", "TITLE", "FOLDER"]
    assert len(out.splitlines()) == 4 and "/elsewhere" in out
    link = home.parent / "link"
    link.symlink_to(home)
    assert len(sessions("list", "--cwd", str(link))[1].splitlines()) == 3
    status, out, err = sessions("list", "--all", "--limit", "1")
    assert (status, len(out.splitlines()), err) == (0, 2, "… and 2 more: --limit shows more\n")
    assert sessions("list", "--cwd", "/nowhere")[0] == 2
    assert sessions("--all", "--cwd", ".")[0] == 2


def test_sessions_of_scripts_are_marked_and_left_out_on_request(home: Path, sessions: Sessions) -> None:
    made = {
        "a" * 32: "zed",
        "b" * 32: "antiphon-run",
        "c" * 32: "",
        "d" * 32: "antiphon-check",
        "e" * 32: "antiphon-chat",
    }
    for id, client in made.items():
        write(id, str(home), [asked(f"by {client}")], title=f"by {client}", client=client)

    def listed(*words: str) -> dict[str, str]:
        status, out, err = sessions(*words)
        assert (status, err) == (0, "")
        head, *lines = out.splitlines()
        place = head.index("FROM")
        return {line[0]: line[place:].split()[0] for line in lines}

    whole = {"a": "zed", "b": "script", "c": "-", "d": "script", "e": "antiphon-chat"}
    assert listed() == listed("list") == whole
    assert listed("--no-scripts") == {id: made for id, made in whole.items() if made != "script"}
    assert listed("--from", "zed") == listed("list", "--from", "ZED") == {"a": "zed"}
    assert listed("--from", "antiphon-run") == {"b": "script"}
    objects = [msgspec.json.decode(line) for line in sessions("--json", "--no-scripts")[1].splitlines()]
    assert {(each["client"], each["script"]) for each in objects} == {
        ("zed", False),
        (None, False),
        ("antiphon-chat", False),
    }
    assert sessions("--from", "nobody")[1:] == (
        "",
        "there is no such session in this directory yet; 5 made otherwise\n",
    )


def test_a_missing_session_is_reported_and_nothing_is_created(home: Path, sessions: Sessions) -> None:
    assert sessions() == (0, "", "there is no session in this directory yet\n")
    assert sessions("--all") == (0, "", "there is no session yet\n")
    assert sessions("--json") == (0, "", "there is no session in this directory yet\n")
    assert not (home.parent / "state" / FILE_NAME).exists()
    write("f00", "/elsewhere", [asked("x")])
    assert "1 elsewhere: `antiphon sessions --all` lists them" in sessions()[2]


def test_a_list_for_programs_has_everything(home: Path, sessions: Sessions) -> None:
    two(home)
    with SessionLock.take(home.parent / "state", TWO, "Zed"):
        rows = [json.loads(line) for line in sessions("list", "--json")[1].splitlines()]
    assert [row["id"] for row in rows] == [TWO, ONE]
    first = rows[0]
    assert (first["title"], first["cwd"], first["route"]) == ("Fix the limiter", str(home), "duet")
    assert (first["engines"], first["turns"], first["openIn"]["who"]) == (["claude", "codex"], 2, "Zed")
    assert rows[1]["openIn"] is None


def test_a_session_that_is_open_is_marked_with_who_has_it(home: Path, sessions: Sessions) -> None:
    two(home)
    with SessionLock.take(home.parent / "state", ONE, "Zed"):
        head, free, live = sessions()[1].splitlines()
    assert head.endswith("OPEN IN") and f"process {os.getpid()}, Zed, since" in live and "Zed" not in free


def test_on_a_terminal_lines_are_as_wide_as_it_is_and_coloured(home: Path, tmp_path: Path) -> None:
    write(ONE, str(home), [asked("x")], title="A very long title 長い題名 " * 10)
    env = {"PATH": os.environ["PATH"], "ANTIPHON_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "antiphon", "sessions"]
    with Terminal(words, cwd=home, env=env) as terminal:
        status, text = terminal.finish()
        assert status == 0 and len(text.splitlines()) == 2 and text.endswith("…") and b"\x1b[36m" in terminal.raw
    with Terminal(words, cwd=home, env={**env, "NO_COLOR": "1"}) as terminal:
        assert terminal.finish()[1] == text and b"\x1b[" not in terminal.raw


# which one


def test_a_session_is_meant_by_its_id_a_beginning_of_it_or_last(home: Path, sessions: Sessions) -> None:
    two(home)
    for word in (ONE, "0198f3a2-77c"):
        assert sessions("show", word)[1].startswith("# Songs\n")
    assert sessions("show", "last")[1].startswith("# Fix the limiter\n")


def test_a_beginning_of_several_is_an_error_that_lists_them(home: Path, sessions: Sessions) -> None:
    two(home)
    status, out, err = sessions("show", "0198")
    assert (status, out) == (2, "")
    assert "`0198` is the beginning of 2 sessions:" in err and "0198f3a2-77c  Songs" in err and "0198f3a2-77d" in err
    assert err.endswith("hint: give some more letters of the one you mean\n")


def test_what_is_not_there_is_an_error_with_a_hint(home: Path, sessions: Sessions) -> None:
    for word in ("last", "abc", ""):
        status, out, err = sessions("show", word)
        assert (status, out) == (2, "") and "`antiphon sessions --all` lists" in err


# search


def test_words_are_found_in_what_people_see(home: Path, sessions: Sessions) -> None:
    analysis = "Once upon a time\nthere was a LIMITER here\nand then it ended"
    write(
        ONE,
        str(home),
        [
            asked("Tell"),
            message_event(analysis[:30]),
            message_event(analysis[30:]),
            thought("hidden thought"),
            called("make tea"),
        ],
    )
    write("f00", "/elsewhere", [asked("The limiter")])
    status, out, err = sessions("search", "limiter")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "0198f3a2  Tell  just now",
        "    Once upon a time",
        "  Claude Code: there was a LIMITER here",
        "    and then it ended",
    ]
    assert "  Claude Code: make tea" in sessions("search", "TEA", "ended")[1]
    assert len(sessions("search", "--all", "limiter")[1].split("\n\n")) == 2
    for syntax in ("sessionUpdate", "hidden thought", "agent_message_chunk"):
        status, out, err = sessions("search", syntax)
        assert (status, out, err) == (0, "", "no session has that in this directory; --all looks in every one\n")
    assert sessions("search", "limiter", "nothing")[1] == ""
    assert sessions("search", "was a limiter")[1] != ""


def test_hits_are_coloured_on_a_terminal_and_json_for_programs(home: Path, tmp_path: Path, sessions: Sessions) -> None:
    write(ONE, str(home), [asked("The limiter")], title="T")
    (match,) = (json.loads(line) for line in sessions("search", "--json", "LIMIT")[1].splitlines())
    assert match["session"]["id"] == ONE
    assert match["hits"] == [{"who": "You", "line": "The limiter", "before": "", "after": ""}]
    env = {"PATH": os.environ["PATH"], "ANTIPHON_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    with Terminal([sys.executable, "-m", "antiphon", "sessions", "search", "LIMIT"], cwd=home, env=env) as terminal:
        assert terminal.finish()[0] == 0
        assert b"The \x1b[33mlimit\x1b[0mer" in terminal.raw


# delete


def test_deleting_asks_first_and_names_what_stays(home: Path, tmp_path: Path, sessions: Sessions) -> None:
    two(home)
    status, _, err = sessions("delete", "last")
    assert (
        status == 1
        and "there is no terminal to ask in" in err
        and "hint: --yes deletes" in err
        and len(sessions()[1].splitlines()) == 3
    )
    status, out, err = sessions("delete", "--yes", ONE, TWO, "last")
    assert (status, out) == (0, "")
    assert err.startswith("deleted 2 sessions; the engines' own histories were not touched")
    left = {path.name for path in (tmp_path / "state" / "locks").iterdir()} - {"table"}
    assert sessions()[1] == "" and left == set(), "nothing of these sessions is left"


@pytest.mark.parametrize(("typed", "left"), [("y\n", 2), ("n\n", 3), ("\x04", 3)])
def test_the_answer_at_the_terminal_counts(
    home: Path, tmp_path: Path, sessions: Sessions, typed: str, left: int
) -> None:
    two(home)
    env = {"PATH": os.environ["PATH"], "ANTIPHON_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    with Terminal([sys.executable, "-m", "antiphon", "sessions", "delete", "last"], cwd=home, env=env) as terminal:
        terminal.wait_for("Delete it? (y yes, n no):")
        assert "Fix the limiter (2 turns" in terminal.text
        terminal.type(typed)
        terminal.finish()
    assert len(sessions()[1].splitlines()) == left


def test_a_session_that_is_open_is_not_deleted_and_nor_are_those_named_with_it(home: Path, sessions: Sessions) -> None:
    two(home)
    with SessionLock.take(home.parent / "state", TWO, "Zed"):
        status, _, err = sessions("delete", "--yes", ONE, TWO)
    assert status == 1 and f"session `{TWO}` is open" in err and "Zed" in err
    assert err.endswith("hint: close it there first\n")
    assert len(sessions()[1].splitlines()) == 3


# resume


def test_resuming_opens_the_chat_on_the_session(
    home: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from antiphon.cli import chat

    opened: list[list[str]] = []

    def run(words: list[str]) -> int:
        opened.append(words)
        return 0

    monkeypatch.setattr(chat, "run", run)
    two(home)
    assert sessions("resume", "0198f3a2-77c", "--model", "opus", "--allow", "Bash(git *)")[0] == 0
    start = ["--agent", "antiphon", "--cwd", str(home), "--resume", ONE]
    assert opened == [[*start, "--model", "opus", "--allow", "Bash(git *)"]]
    with SessionLock.take(home.parent / "state", ONE, "Zed"):
        status, _, err = sessions("resume", ONE)
    assert status == 1 and "is open" in err and "or fork it" in err and len(opened) == 1


def test_what_makes_no_sense_is_reported(home: Path, sessions: Sessions) -> None:
    for words in (["frobnicate"], ["show"], ["export", "last", "-o", "x.pdf"], ["list", "--limit", "many"]):
        status, out, err = sessions(*words)
        assert (status, out) == (2, "") and err.startswith("error: ")
    assert sessions("--help")[0] == 0 and sessions("resume", "--help")[0] == 0
