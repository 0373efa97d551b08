"""The examples run, and the README shows them as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_conversation_shows_every_frame_and_what_was_said() -> None:
    done = subprocess.run(
        [sys.executable, "examples/conversation.py", "one", "two"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=30,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert sum(line.startswith("client → agent") for line in lines) == 3
    assert lines[-2:] == ["the agent said: one two", "and stopped because: end_turn"]


@pytest.mark.parametrize("name", ["minimal_agent.py", "conversation.py"])
def test_the_readme_shows_the_example_as_it_is(name: str) -> None:
    code = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert f"```python\n{code}```" in README


def client(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "examples/client.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8", timeout=30)


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


def test_the_client_says_what_went_wrong(tmp_path: Path) -> None:
    missing = client(str(tmp_path / "none"))
    assert "I cannot read it: No such file or directory" in missing.stdout and missing.returncode == 0
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
