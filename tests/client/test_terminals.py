"""Terminals for the agent: real commands, each of one session, and none left over."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.client.terminals import Terminals
from antiphon.errors import Code, RequestError
from antiphon.local.files import Roots
from antiphon.protocol import v1
from tests.transports.children import alive, gone


@pytest.fixture
async def terminals() -> AsyncIterator[Terminals]:
    opened = Terminals(output_limit=10_000, max_open=4)
    yield opened
    await opened.close()


async def run(
    terminals: Terminals, root: Path, command: str, *args: str, session: str = "s", **more: str | int | None
) -> str:
    env = [v1.EnvVariable("WORD", "given")]
    cwd, limit = more.get("cwd"), more.get("limit")
    assert not isinstance(cwd, int) and not isinstance(limit, str)
    request = v1.CreateTerminal(session, command, list(args), env, cwd, limit)
    return (await terminals.create(Roots([root]), request)).terminal_id


async def finished(terminals: Terminals, terminal: str, session: str = "s") -> tuple[int | str | None, str, bool]:
    """Its code or signal, its output, and whether that is all."""
    async with asyncio.timeout(20):
        end = await terminals.wait_for_exit(v1.WaitForExit(session, terminal))
    now = await terminals.output(v1.TerminalOutput(session, terminal))
    assert now.exit_status == v1.ExitStatus(end.exit_code, end.signal)
    return end.exit_code if end.signal is None else end.signal, now.output, now.truncated


async def first_line(terminals: Terminals, terminal: str, session: str = "s") -> v1.TerminalOutputResult:
    """Its output as soon as it has written a line."""
    async with asyncio.timeout(20):
        while True:
            now = await terminals.output(v1.TerminalOutput(session, terminal))
            if "\n" in now.output:
                return now
            await asyncio.sleep(0)


async def test_a_command_runs_in_the_first_root_with_the_given_variables_on_top_of_ours(
    terminals: Terminals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "hidden")
    monkeypatch.setenv("OURS", "too")
    terminal = await run(terminals, tmp_path, "/bin/sh", "-c", 'pwd; echo $WORD; test -n "$PATH"; exit 3')
    assert await finished(terminals, terminal) == (3, f"{tmp_path}\ngiven\n", False) or os.environ.get("PATH") is None


async def test_arguments_stay_what_they_are(terminals: Terminals, tmp_path: Path) -> None:
    terminal = await run(terminals, tmp_path, "printf", "%s|", "a b", "$HOME", "*; ls")
    assert await finished(terminals, terminal) == (0, "a b|$HOME|*; ls|", False)


@pytest.mark.parametrize(
    ("line", "code", "output"),
    [
        ("echo one && echo two", 0, "one\ntwo\n"), ("printf a | tr a b", 0, "b"), ("exit 4", 4, ""), ("echo $WORD", 0, "given\n"),
        ("(true)", 0, ""), ("X=1;test$X", 127, None), ("true " + "x" * 5000, 0, ""), ("echo /etc/x/../y", 0, "/etc/x/../y\n"),
    ],
)  # fmt: skip
async def test_a_whole_line_without_arguments_is_run_by_the_shell(
    terminals: Terminals, tmp_path: Path, line: str, code: int, output: str | None
) -> None:
    ended, written, _ = await finished(terminals, await run(terminals, tmp_path, line))
    assert ended == code and output in (written, None)


async def test_what_reads_as_a_line_is_run_as_one_whatever_programs_there_are(
    terminals: Terminals, tmp_path: Path
) -> None:
    tool = tmp_path / "my tool; exit 9"
    tool.write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    tool.chmod(0o755)
    assert (await finished(terminals, await run(terminals, tmp_path, str(tool))))[0] == 9


@pytest.mark.parametrize(
    "words", [("no-such-program",), ("no such program", "with arguments"), ("nul\0",), ("echo x\0",)]
)
async def test_what_cannot_be_started_is_refused_with_a_reason(
    terminals: Terminals, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with pytest.raises(RequestError, match="cannot start") as caught:
        await run(terminals, tmp_path, *words)
    assert caught.value.code == Code.INVALID_PARAMS and len(terminals) == 0


async def test_a_directory_inside_the_roots_is_used(terminals: Terminals, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    terminal = await run(terminals, tmp_path, "pwd", cwd=f"{tmp_path}/sub")
    assert await finished(terminals, terminal) == (0, f"{tmp_path}/sub\n", False)


@pytest.mark.parametrize(
    ("cwd", "words"), [("/", "outside"), ("sub", "relative"), ("{0}/..", "outside"), ("{0}/no", "no directory")]
)
async def test_another_directory_is_refused(terminals: Terminals, tmp_path: Path, cwd: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        await run(terminals, tmp_path, "true", cwd=cwd.format(tmp_path))
    assert caught.value.code == Code.INVALID_PARAMS


async def test_without_roots_a_command_has_no_directory_to_run_in(terminals: Terminals) -> None:
    with pytest.raises(RequestError, match="no directory to run a command in") as caught:
        await terminals.create([], v1.CreateTerminal("s", "true"))
    assert caught.value.code == Code.INVALID_PARAMS


@pytest.mark.parametrize(("asked", "kept"), [(5, 5), (0, 0), (None, 10_000), (10**9, 10_000)])
async def test_output_is_kept_as_asked_but_not_beyond_our_own_limit(
    terminals: Terminals, tmp_path: Path, asked: int | None, kept: int
) -> None:
    terminal = await run(terminals, tmp_path, "head -c 20000 /dev/zero | tr '\\0' x", limit=asked)
    assert await finished(terminals, terminal) == (0, "x" * kept, True)


async def test_output_is_shown_while_the_command_runs(terminals: Terminals, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    terminal = await run(terminals, tmp_path, "echo early; read line < gate; echo late")
    assert await first_line(terminals, terminal) == v1.TerminalOutputResult("early\n", False, None)
    await asyncio.to_thread((tmp_path / "gate").write_text, "go\n", encoding="utf-8")
    assert await finished(terminals, terminal) == (0, "early\nlate\n", False)


async def test_a_killed_command_keeps_its_terminal_and_output(terminals: Terminals, tmp_path: Path) -> None:
    terminal = await run(terminals, tmp_path, "sleep", "300")
    waiting = asyncio.ensure_future(finished(terminals, terminal))
    assert await terminals.kill(v1.KillTerminal("s", terminal)) == v1.KillTerminalResult()
    assert await waiting == ("SIGTERM", "", False)
    await terminals.kill(v1.KillTerminal("s", terminal))
    assert await finished(terminals, terminal) == ("SIGTERM", "", False)


async def test_a_released_terminal_is_gone_and_requests_that_wait_for_it_fail(
    terminals: Terminals, tmp_path: Path
) -> None:
    terminal = await run(terminals, tmp_path, "sleep", "300")
    waiting = asyncio.ensure_future(terminals.wait_for_exit(v1.WaitForExit("s", terminal)))
    await asyncio.sleep(0)
    assert await terminals.release(v1.ReleaseTerminal("s", terminal)) == v1.ReleaseTerminalResult()
    async with asyncio.timeout(5):
        assert await waiting == v1.WaitForExitResult(None, "SIGTERM")
    await refused_everywhere(terminals, "s", terminal)


async def refused_everywhere(terminals: Terminals, session: str, terminal: str) -> None:
    for asking in (
        terminals.output(v1.TerminalOutput(session, terminal)),
        terminals.wait_for_exit(v1.WaitForExit(session, terminal)),
        terminals.kill(v1.KillTerminal(session, terminal)),
        terminals.release(v1.ReleaseTerminal(session, terminal)),
    ):
        with pytest.raises(RequestError) as caught:
            await asking
        assert caught.value.code == Code.RESOURCE_NOT_FOUND
        assert caught.value.message.startswith("Resource not found: ") and f"`{terminal}`" in caught.value.message


async def test_an_unknown_terminal_is_resource_not_found(terminals: Terminals) -> None:
    await refused_everywhere(terminals, "s", "call_77")


async def test_a_terminal_of_one_session_is_unknown_to_another(terminals: Terminals, tmp_path: Path) -> None:
    terminal = await run(terminals, tmp_path, "echo", "mine", session="one")
    await refused_everywhere(terminals, "two", terminal)
    assert await finished(terminals, terminal, "one") == (0, "mine\n", False)


async def test_ids_are_never_the_same(terminals: Terminals, tmp_path: Path) -> None:
    ids = set()
    for _ in range(8):
        ids.add(terminal := await run(terminals, tmp_path, "true"))
        await terminals.release(v1.ReleaseTerminal("s", terminal))
    assert len(ids) == 8


async def test_too_many_open_terminals_are_refused_until_one_is_released(terminals: Terminals, tmp_path: Path) -> None:
    several = [await run(terminals, tmp_path, "true") for _ in range(4)]
    with pytest.raises(RequestError, match=r"4 terminals are open .*\nhint: release"):
        await run(terminals, tmp_path, "true")
    await terminals.release(v1.ReleaseTerminal("s", several[0]))
    await run(terminals, tmp_path, "true")


async def test_the_end_of_a_session_ends_its_terminals_alone(terminals: Terminals, tmp_path: Path) -> None:
    pids = {}
    for session in ("one", "two"):
        terminal = await run(terminals, tmp_path, "echo $$; exec sleep 300", session=session)
        pids[session] = int((await first_line(terminals, terminal, session)).output)
    await terminals.release_session("one")
    async with asyncio.timeout(5):
        await gone(pids["one"])
    assert alive(pids["two"]) and len(terminals) == 1
    await terminals.close()
    assert not alive(pids["two"]) and len(terminals) == 0


async def test_terminals_can_be_used_again_after_close(terminals: Terminals, tmp_path: Path) -> None:
    await terminals.close()
    assert await finished(terminals, await run(terminals, tmp_path, "echo", "again")) == (0, "again\n", False)


async def test_git_does_not_take_any_folder_for_a_repository(terminals: Terminals, tmp_path: Path) -> None:
    """A folder with `HEAD`, `config`, `objects` and `refs` could name programs that `git status` starts."""
    _, output, _ = await finished(terminals, await run(terminals, tmp_path, "git", "config", "safe.bareRepository"))
    assert output == "explicit\n"


def test_what_is_run_as_a_line_is_what_is_judged_as_one() -> None:
    from antiphon.client import terminals
    from antiphon.policy import action

    assert vars(terminals)["_SYNTAX"] == vars(action)["_SYNTAX"]
