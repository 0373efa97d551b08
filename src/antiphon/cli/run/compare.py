"""`antiphon compare`: give several agents the same prompt, each in a git worktree of its own, and show what became of it."""

import argparse
import asyncio
import os
import secrets
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.cli.arguments import Misused, Parser, add_permissions, split_command
from antiphon.cli.outcome import HALF_FAILED
from antiphon.cli.run.arguments import KEEP, add_limits, add_policy
from antiphon.text import exact

if TYPE_CHECKING:
    from antiphon.runs.comparison import ComparedRun, Comparison

__all__ = ["CompareOptions", "parser", "run"]

EPILOG: Final = """\
  antiphon compare "Fix the failing test" --agents claude,codex --permission-mode acceptEdits
  antiphon compare -f task.md --agents claude@opus,claude@sonnet --max-cost 1 --out results

Each agent works in a git worktree on a branch of its own, which begins at the last commit; your own files are not touched. The
directory of the comparison gets `page.html`, `results.jsonl` and a patch of each agent.

exit status: 0 all agents ended well, 6 some did, else the status of `antiphon run` that all of them ended with, or 1.
"""


class CompareOptions(argparse.Namespace):
    """The options of `compare`."""

    prompt: list[str]
    file: str | None
    agents: list[str]
    cwd: str | None
    out: str | None
    json: bool
    diff: bool
    keep_worktree: str
    allow: list[str]
    deny: list[str]
    ask: list[str]
    permission_mode: str | None
    on_ask: str | None
    policy: str | None
    trust_project: bool
    max_cost: float | None
    max_tokens: int | None
    max_turns: int | None
    timeout: float | None

    def words(self) -> list[str]:
        """Return the words that every run gets."""
        given: list[str] = ["--keep-worktree", self.keep_worktree]
        for name in ("allow", "deny", "ask"):
            for rule in getattr(self, name):
                given += [f"--{name}", rule]
        for name in ("permission_mode", "on_ask", "policy", "max_cost", "max_tokens", "max_turns", "timeout"):
            value = getattr(self, name)
            if value is not None:
                given += [f"--{name.replace('_', '-')}", _word(name, value)]
        return [*given, *(["--trust-project"] if self.trust_project else [])]


def _word(name: str, value: object) -> str:
    if name == "policy":
        return os.path.abspath(str(value))
    return f"{value:.9f}" if isinstance(value, float) else f"{value}"  # never as 1e-05, which no option takes


def parser() -> argparse.ArgumentParser:
    """Return the parser of `antiphon compare`."""
    made = Parser(
        prog="antiphon compare",
        usage="antiphon compare [OPTIONS] --agents NAMES PROMPT …",
        description="Give several agents the same prompt, each in a git worktree of its own, and compare what they do.",
        epilog=EPILOG,
    )
    made.add_argument("prompt", metavar="PROMPT", nargs="*", help="the prompt; several words are joined, `-` is stdin")
    made.add_argument("-f", "--file", metavar="FILE", help="read the prompt from a file")
    made.add_argument(
        "--agents",
        metavar="NAMES",
        action="append",
        default=[],
        help="agents with commas between them, as `antiphon agents` lists them; NAME@MODEL chooses a model; repeatable",
    )
    made.add_argument("--cwd", metavar="DIR", help="a directory of the git repository (default: this one)")
    add_permissions(made)
    add_policy(made)
    output = made.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one JSON object per agent")
    output.add_argument("--diff", action="store_true", help="also print the changes of each agent")
    output.add_argument("--out", metavar="DIR", help="where the page and the patches go (default: a new directory)")
    output.add_argument(
        "--keep-worktree", metavar="WHEN", choices=KEEP, default="changed", help="changed (the default), always, never"
    )
    add_limits(made)
    return made


def run(arguments: list[str]) -> int:
    """Compare, and return the exit status."""
    words, prompt = split_command(arguments)
    options: CompareOptions = parser().parse_intermixed_args(words, namespace=CompareOptions())
    options.prompt = [*options.prompt, *(prompt or ())]
    from antiphon.transports import guard

    guard.prepare()
    from antiphon.cli.run.command import read_words
    from antiphon.runs.comparison import Comparison, contestants_of, status_of_comparison
    from antiphon.runs.worktrees import last_commit

    cwd = os.path.abspath(os.path.expanduser(options.cwd or os.getcwd()))
    if not os.path.isdir(cwd):
        raise Misused(f"there is no directory `{options.cwd}`")
    contestants = contestants_of([name for names in options.agents for name in _split(names)])
    prompt_text, data = read_words(options.prompt, options.file)
    last_commit(cwd)  # without one every agent would fail, for the same reason
    comparison = Comparison(prompt_text, contestants, _directory(options), cwd, options.words(), data=data)
    runs = asyncio.run(_compare(comparison))
    _show(options, comparison, runs)
    return status_of_comparison(runs, HALF_FAILED)


def _split(names: str) -> list[str]:
    """Return the names of one option. A command with spaces in it is one name."""
    return [names] if " " in names.strip() else names.split(",")


def _directory(options: CompareOptions) -> Path:
    if options.out is not None:
        return Path(options.out).absolute()
    from antiphon.config.directories import state_dir

    return state_dir() / "comparisons" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


async def _compare(comparison: "Comparison") -> "list[ComparedRun]":
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    caught = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    for number in caught:
        loop.add_signal_handler(number, comparison.cancel)
    try:
        return await comparison.run(_tell)
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def _tell(run: "ComparedRun") -> None:
    word = "done" if run.succeeded else f"ended with {run.result.exit_code}"
    error = run.result.error
    why = "" if error is None else f": {error.message}\nhint: {error.hint}"
    warnings = "".join(
        f"\nwarning: {each.message}{f' ({each.hint})' if each.hint else ''}" for each in run.result.warnings
    )
    sys.stderr.write(exact(f"{run.agent}: {word} after {run.result.seconds:.1f} s{why}{warnings}") + "\n")


def _show(options: CompareOptions, comparison: "Comparison", runs: "list[ComparedRun]") -> None:
    from antiphon.cli.terminal import stdout_paint
    from antiphon.runs.compared_page import HEADER, page, rows
    from antiphon.text import prose, table

    lines = [msgspec.json.encode(each) for each in runs]
    (comparison.directory / "results.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    made = comparison.directory / "page.html"
    made.write_text(page(comparison.prompt, runs), encoding="utf-8")
    if options.json:
        sys.stdout.write("".join(f"{line.decode()}\n" for line in lines))
        return
    lines_of_table = table(HEADER, rows(runs), [""] * len(HEADER), 1, stdout_paint())
    sys.stdout.write("\n".join(lines_of_table) + "\n")
    if options.diff:
        for each in runs:
            diff = prose(each.diff()) or "No file changed.\n"
            sys.stdout.write(f"\n{each.agent}\n\n{diff}")
    sys.stderr.write(f"{made}\n")
