"""`antiphon run`: read the arguments and the prompt, handle signals, and start the run."""

import os
import select
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import EPIPE
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from antiphon.cli.arguments import Misused, Options, split_command, working_directory
from antiphon.cli.interrupts import leave_at_once
from antiphon.cli.outcome import CANCELLED, OutputLost, leave_stdout
from antiphon.cli.run.arguments import run_parser
from antiphon.errors import AcpError
from antiphon.transports import tree

if TYPE_CHECKING:
    from antiphon.cli.run.reports import WorkflowCommands
    from antiphon.client.attachments import Attachment
    from antiphon.protocol import v1
    from antiphon.runs.worktrees import Worktree

__all__ = [
    "CANCELLED",
    "STDIN_TIMEOUT",
    "RunPrompt",
    "StopSignal",
    "make_prompt",
    "parser",
    "read_words",
    "run",
    "stop_signals",
]

# --- signals and the time limit --------------------------------------------------------------------------------------
# The first signal cancels the turn. The second ends the agent with everything it started, and us, at once. Plain
# signal handlers, not the loop's: they run also while a write waits for a reader.

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Why = Literal["cancelled", "timeout"]


class StopSignal:
    """Whether the run is to end, and why. `cancel_run` is called at the first signal, whatever the program is doing.

    As long as no other is given, it ends this process at once: nothing but the watcher has been started, which goes with us.
    """

    def __init__(self, mark: str) -> None:
        self.why: Why | None = None
        self.cancel_run: Callable[[], None] = leave_at_once
        self._mark = mark

    def stop(self, why: Why) -> None:
        """Request the end of the run. The first reason counts."""
        if self.why is None:
            self.why = why
            self.cancel_run()

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: the first one cancels the run, the second ends everything."""
        if self.why is not None:
            self.at_once()
        self.stop("cancelled")

    def at_once(self) -> NoReturn:
        """Kill everything that was started, and exit."""
        tree.kill_tree(0, self._mark)
        os._exit(CANCELLED)


@contextmanager
def stop_signals() -> Iterator[StopSignal]:
    """Handle signals in this block. Processes started in it carry a mark in their environment, by which all are found."""
    mark = os.urandom(16).hex()
    state = StopSignal(mark)
    outer = os.environ.get(tree.MARK)
    os.environ[tree.MARK] = tree.marked(os.environ, mark)[tree.MARK]
    # What is ignored stays so: `nohup`, and jobs in the background of a script.
    before = {number: signal.getsignal(number) for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, state.handle_signal)
    try:
        yield state
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if outer is None:
            del os.environ[tree.MARK]
        else:
            os.environ[tree.MARK] = outer


parser = run_parser


def run(arguments: list[str]) -> int:
    """Run one prompt and return the exit status."""
    try:
        options = Options.read(run_parser(), arguments)
    except Misused as error:
        if "--github" in split_command(arguments)[0]:
            _annotate(None, error)
        raise
    from antiphon.transports import guard

    guard.prepare()  # before the rest is loaded, so that it is ready when the agent is started
    from antiphon.cli.logs import logging_to_file

    with logging_to_file(verbose=options.verbose), stop_signals() as stop:
        workflow = _workflow() if options.github else None
        try:
            return _run(options, stop, workflow)
        except (Misused, AcpError) as error:  # before anything was started
            if workflow is not None:
                _annotate(workflow, error)
            raise
        except (OutputLost, BrokenPipeError) as error:
            if error.errno != EPIPE:
                if workflow is not None:
                    _annotate(workflow, error)
                raise
            if workflow is not None:
                workflow.resume([])
            leave_stdout()  # its reader has gone, and the turn was cancelled
            return CANCELLED


def _workflow() -> "WorkflowCommands":
    from antiphon.cli.run.reports import WorkflowCommands

    return WorkflowCommands()


def _annotate(workflow: "WorkflowCommands | None", error: Exception) -> None:
    """Write for GitHub Actions that an error has ended the run without a result. Without a `workflow` nothing was started."""
    from antiphon.cli.run.reports import result_of, write_workflow

    with suppress(AcpError):  # the error that is reported anyway explains more
        write_workflow(workflow, result_of(error), os.getcwd())


def _run(options: Options, stop: "StopSignal", workflow: "WorkflowCommands | None") -> int:
    from antiphon.cli.run.reports import check_files

    cwd = working_directory(options)
    _check(options)
    check_files(options)
    schema = worktree = None
    if options.output_schema is not None:
        from antiphon.runs.answer_schema import read_schema

        schema = read_schema(options.output_schema)
    words = read_words(options.prompt, options.file)  # before a worktree is made: it may wait
    if options.worktree:
        worktree = _worktree(cwd, stop)
        cwd = worktree.cwd
    try:
        prompt = _prompt(options, words, cwd)
    except BaseException:
        if worktree is not None:
            worktree.remove()
        raise
    import asyncio

    from antiphon.cli.run.runner import Runner

    return asyncio.run(Runner(options, prompt, cwd, stop, schema=schema, worktree=worktree, workflow=workflow).run())


def _worktree(cwd: str, stop: "StopSignal") -> "Worktree":
    """Make the worktree of a run. A signal before the agent is started removes it again."""
    from antiphon.runs.worktrees import WorktreeError, make_worktree

    stop.cancel_run = lambda: None  # one that is half made would be left
    try:
        made = make_worktree(cwd)
    except WorktreeError:
        if stop.why is not None:  # Ctrl-C has ended git, too
            leave_at_once()
        raise
    stop.cancel_run = partial(_leave_without, made)
    if stop.why is not None:
        stop.cancel_run()
    return made


def _leave_without(worktree: "Worktree") -> None:
    """End this process, without the worktree in which nothing has been started yet."""
    with suppress(AcpError):
        worktree.remove()
    leave_at_once()


def _check(options: Options) -> None:
    """Raise `Misused` for options that make no sense together."""
    earlier = options.resume or options.session or options.continue_last
    if options.ephemeral and earlier:
        raise Misused(
            "`--ephemeral` deletes the session, and this one may be an earlier one", hint="leave out one of both"
        )
    if options.worktree and (options.session or options.continue_last):
        flag = "--session" if options.session else "--continue"
        raise Misused(
            f"`{flag}` finds sessions of a directory, and `--worktree` makes a new one", hint="leave out one of both"
        )
    if options.keep_worktree is not None and not options.worktree:
        raise Misused("`--keep-worktree` is for a run with `--worktree`", hint="add `--worktree`")
    if options.is_remote and (options.worktree or options.patch):
        flag = "--worktree" if options.worktree else "--patch"
        raise Misused(
            f"`{flag}` is for files of this machine, and the agent works on another one", hint=f"leave out `{flag}`"
        )


def _prompt(options: Options, words: tuple[str, str | None], cwd: str) -> "RunPrompt":
    from antiphon.client.attachments import AttachmentError

    try:
        return make_prompt(options, *words, cwd)
    except AttachmentError as error:
        hint = "a worktree has what is committed, and nothing else: commit it first" if options.worktree else error.hint
        raise Misused(error.sentence, hint=hint) from error


# --- the prompt: arguments, a file, stdin ----------------------------------------------------------------------------
# Rule 1: what the user writes as a prompt may mention files (`@path`). What comes on stdin beside it is only data, and an `@` in it
# only an @: other people may have written it.
# Rule 2: every wait ends. With a prompt in the arguments, a stdin without data is ignored after a moment; `-` waits for it.

STDIN_TIMEOUT: Final = 3.0
"""Seconds that the first byte on stdin may take when there is a prompt already. Many schedulers leave a pipe open on which nothing
ever comes."""

MAX_INPUT: Final = 10 * 1024 * 1024
"""Bytes of a prompt: more than any model reads."""

NO_PROMPT: Final = "there is no prompt"


@dataclass(frozen=True, slots=True)
class RunPrompt:
    """The prompt of a run: text, piped data and attachments."""

    text: str
    data: str | None = None
    """What came on stdin beside the prompt."""
    attachments: "list[Attachment]" = field(default_factory=list)

    def blocks(self, takes: "v1.PromptCapabilities", agent: str) -> "list[v1.ContentBlock]":
        """Return the content blocks for an agent with these capabilities."""
        from antiphon.client.attachments import blocks_of
        from antiphon.protocol import v1

        data = [v1.TextBlock(self.data)] if self.data else []
        return [v1.TextBlock(self.text), *data, *blocks_of(self.attachments, takes, agent)]


def make_prompt(options: Options, text: str, data: str | None, cwd: str) -> RunPrompt:
    """Make the prompt of its words, the data beside them, and the files that they and the options name.

    Raises:
        AttachmentError: a file that goes along is not there, or has no such lines.
    """
    from antiphon.client.attachments import attached, mentioned

    text, mentions = mentioned(text, cwd)
    attachments = [*mentions, *(attached(path, cwd) for path in options.attach)]
    _check_lines(attachments)
    return RunPrompt(text, data, attachments)


def _check_lines(attachments: "list[Attachment]") -> None:
    """Raise AttachmentError for lines that do not exist, before an agent is started."""
    wanted = [each for each in attachments if each.first is not None]
    if wanted:
        from antiphon.client.attachments import blocks_of
        from antiphon.protocol import v1

        blocks_of(wanted, v1.PromptCapabilities(image=True, audio=True, embedded_context=True))


def read_words(arguments: list[str], file: str | None) -> tuple[str, str | None]:
    """Read the words of a prompt from the arguments, a file and stdin; and what stdin has beside them.

    Raises:
        Misused: nothing, or too much.
    """
    text, data = _words(arguments, file)
    if not text.strip():
        raise Misused(NO_PROMPT)
    return text, data


def _words(arguments: list[str], file: str | None) -> tuple[str, str | None]:
    words = [word for word in arguments if word != "-"]
    wanted = len(words) < len(arguments)
    if file is not None:
        words.append(_file(file))
    written = " ".join(words) if file is None else "\n\n".join(filter(None, (" ".join(words[:-1]), words[-1])))
    if not words:
        if not wanted and sys.stdin.isatty():
            raise Misused(NO_PROMPT)
        return _decoded(_everything(0, "stdin"), "stdin").strip("\n"), None
    return written, (_decoded(_everything(0, "stdin"), "stdin") if wanted or _something_comes() else None) or None


def _file(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _decoded(_everything(fd, path), path)
        finally:
            os.close(fd)
    except OSError as error:
        raise Misused(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from error


def _everything(fd: int, name: str) -> bytes:
    data = bytearray()
    while chunk := os.read(fd, 1 << 16):
        data += chunk
        if len(data) > MAX_INPUT:
            raise Misused(f"`{name}` has more than {MAX_INPUT >> 20} MiB: attach it instead")
    return bytes(data)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misused(f"`{name}` is not text in UTF-8: attach it instead") from error


def _something_comes() -> bool:
    """Whether stdin is a pipe or a file with data. A terminal is for questions, and /dev/null has no data."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # closed
        return False
    if stat.S_ISREG(kind):
        return True
    if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
        return False
    if select.select([0], [], [], STDIN_TIMEOUT)[0]:
        return True
    sys.stderr.write(f"warning: nothing came on stdin for {STDIN_TIMEOUT:g} s, so it is left out (`-` waits for it)\n")
    return False
