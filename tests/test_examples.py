"""The examples run, and the README shows them as they are."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import antiphon
from antiphon import v1
from antiphon.client import Files, Terminals, allow_once
from examples import watch_client
from tests.limits import limit
from tests.rows import each_row

ROOT = Path(__file__).parents[1]


def test_the_example_shows_every_frame_and_message() -> None:
    done = subprocess.run(
        [sys.executable, "examples/frames.py", "one", "two"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=limit(),
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert sum(line.startswith("client → agent") for line in lines) == 3
    assert lines[-2:] == ["the agent answered: one two", "and stopped because: end_turn"]


SHOWN = {
    "README.md": ["hello.py", "ask.py", "script.py"],
    "docs/core.md": ["minimal_agent.py", "frames.py"],
    "docs/agents.md": ["notes_agent.py", "settings_agent.py", "watch_agent.py"],
    "docs/clients.md": ["client.py", "watch_client.py"],
}
"""Document → the examples that it shows whole."""


@each_row(("document", "name"), [(page, name) for page, names in SHOWN.items() for name in names])
def test_a_document_shows_the_example_as_it_is(document: str, name: str) -> None:
    code = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert f"```python\n{code}```" in (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["hello.py", "ask.py", "script.py"])
def test_a_first_program_has_at_most_twenty_lines(name: str) -> None:
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) <= 20


def example(name: str, *arguments: str, state: Path) -> str:
    """What an example prints."""
    done = subprocess.run(
        [sys.executable, f"examples/{name}", *arguments],
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "ANTIPHON_STATE_DIR": str(state)},
        timeout=limit(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", ["ask.py", "script.py"])
def test_a_first_client_prints_the_answer_of_the_demo(name: str, tmp_path: Path) -> None:
    assert "I have thought about songs." in example(name, "/think songs", state=tmp_path)


def test_hello_greets_any_client(tmp_path: Path) -> None:
    async def exchange() -> str:
        async with antiphon.connect([sys.executable, str(ROOT / "examples" / "hello.py")]) as agent:
            session = await agent.new_session(tmp_path)
            return await session.prompt("good morning").text()

    assert asyncio.run(exchange()) == "Hello! You said: good morning"


def test_the_tour_shows_text_plan_tool_diff_and_permission(tmp_path: Path) -> None:
    shown = example("tour.py", state=tmp_path)
    for part in (
        "You are in",
        "✓ Look around",
        "asks  Edit notes.txt?",
        "Edit notes.txt (completed)",
        "+ Sing the second voice",
    ):
        assert part in shown


@pytest.mark.slow
def test_the_tour_through_a_gateway_is_the_same(tmp_path: Path) -> None:
    shown = example("tour.py", "--serve", state=tmp_path)
    assert "ws://127.0.0.1:" in shown and "demo" in shown and shown.endswith("gateway  ended\n")
    for part in ("You are in", "asks  Edit notes.txt?", "+ Sing the second voice", "`ls -l` ended with 0."):
        assert part in shown


def test_the_notes_agent_notes_saves_and_loads(tmp_path: Path) -> None:
    async def exchange() -> None:
        command = [sys.executable, str(ROOT / "examples" / "notes_agent.py")]
        async with antiphon.connect(command, permission=allow_once, files=Files(write=True)) as agent:
            session = await agent.new_session(tmp_path)
            assert await session.prompt("call").text() == "Noted, that makes 1."
            assert await session.prompt("response").text() == "Noted, that makes 2."
            assert await session.prompt("/save song.txt").text() == "Saved."
            assert (tmp_path / "song.txt").read_text(encoding="utf-8") == "call\nresponse\n"
            assert [info.session_id async for info in agent.list_sessions()] == [session.id]
            again = await agent.load_session(session.id, tmp_path)
            assert again.transcript.plain().splitlines()[:3] == ["> call", "Noted, that makes 1.", "> response"]

    asyncio.run(exchange())


def test_the_settings_agent_asks_how_and_runs_it(tmp_path: Path) -> None:
    async def exchange() -> None:
        def answer(_: object) -> v1.Accepted:
            return v1.Accepted({"command": "echo fine; exit 3"})

        command = [sys.executable, str(ROOT / "examples" / "settings_agent.py")]
        async with antiphon.connect(command, permission=allow_once, elicitation=answer, terminals=Terminals()) as agent:
            session = await agent.new_session(tmp_path)
            assert await session.prompt("go").text() == "They pass."
            assert "exit 3" in await session.prompt("/setup").text()
            await session.set_config_option("verbosity", "output")
            assert await session.prompt("go").text() == "fine\nThey fail (3)."

    asyncio.run(exchange())


@pytest.mark.parametrize("versions", [(2, 1), (1,)], ids=str)
async def test_the_watching_agent_works_beside_its_answers_in_both_versions(
    versions: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with asyncio.timeout(limit()):
        await watch_client.main(tmp_path, *versions)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == ("notes.txt has changed." if versions == (1,) else "[idle]")
    if versions == (1,):
        assert "Time is up." in shown and not [line for line in shown if "background" in line]
    else:
        assert "You cancelled it." in shown
        assert [line for line in shown if line.startswith("[")][-2:] == ["[running]", "[idle]"]
        assert "[idle] tool_call call-2 in the background" in shown
    assert shown.index("call-2: completed") < shown.index("notes.txt has changed.")


def client(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "examples/client.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8", timeout=limit())


def test_the_client_and_the_tool_agent_count_lines(tmp_path: Path) -> None:
    (tmp_path / "three").write_text("1\n2\n3\n", encoding="utf-8")
    done = client(str(tmp_path / "three"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"… Count the lines of {tmp_path / 'three'}",
        "… completed",
        "3 lines",
        "(end_turn)",
    ]


def test_the_client_prints_what_went_wrong(tmp_path: Path) -> None:
    missing = client(str(tmp_path / "none"))
    assert "there is no such file" in missing.stdout and missing.returncode == 0
    absent = client("x", "--", "no-such-agent")
    assert absent.returncode == 1 and absent.stderr.splitlines()[-1].startswith("hint: ")
    dead = client("x", "--", sys.executable, "-c", "import sys; sys.exit('out of luck')")
    assert dead.returncode == 1 and "out of luck" in dead.stderr and "Traceback" not in dead.stderr


def test_every_name_of_the_root_can_be_had_and_no_other() -> None:
    import antiphon

    for name in antiphon.__all__:
        assert getattr(antiphon, name) is not None
    with pytest.raises(AttributeError):
        _ = antiphon.Nonsense  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="did you mean `TextBlock`"):
        _ = antiphon.v1.TextBlok  # type: ignore[attr-defined]
    assert "Prompt" in dir(antiphon.v1) and "Unknown" in dir(antiphon.v1)
