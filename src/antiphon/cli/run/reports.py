"""The files that a run writes beside stdout: the last message, JUnit XML, and what GitHub Actions reads."""

import os
import secrets
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from antiphon.cli.outcome import RUN_STATUSES, Misused, is_retryable, kind_of, status_of
from antiphon.errors import AcpError, sentence_and_hint

if TYPE_CHECKING:
    from antiphon.cli.arguments import Options
    from antiphon.runs.events import ResultEvent

__all__ = ["WorkflowCommands", "answer_of", "check_files", "result_of", "write_answer", "write_junit", "write_workflow"]


def check_files(options: "Options") -> None:
    """Check before anything starts that the files which a run writes can be made.

    Raises:
        Misused: a name is empty, a directory does not exist or stands where the file should, or it cannot be written.
    """
    for flag, path in (
        ("--output-file", options.output_file),
        ("--patch", options.patch),
        ("--junit", options.junit),
    ):
        if path is None:
            continue
        folder = os.path.dirname(path) or "."
        if not path:  # a variable of a script that is not set
            raise Misused(f"`{flag}` has an empty name", hint="name a file")
        if not os.path.isdir(folder):
            raise Misused(f"there is no directory `{folder}` for `{os.path.basename(path)}`", hint="make it first")
        if os.path.isdir(path):
            raise Misused(f"`{path}` is a directory", hint="name a file")
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise Misused(f"`{path}` cannot be written", hint="check the permissions of the file and its directory")


class WorkflowCommands:
    """Commands of GitHub Actions on stderr, which its runner obeys as it obeys stdout. While an agent works they are stopped: it could write some.

    They are resumed by a word that the agent does not know.
    """

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._stopped = True
        self._write([f"::stop-commands::{self._token}"])

    def resume(self, lines: list[str]) -> None:
        """Write commands of our own, after everything that the agent wrote."""
        self._write([f"::{self._token}::", *lines] if self._stopped else lines)
        self._stopped = False

    @staticmethod
    def _write(lines: list[str]) -> None:
        with suppress(OSError):
            sys.stderr.write("".join(f"{line}\n" for line in lines))
            sys.stderr.flush()


def answer_of(result: "ResultEvent", options: "Options") -> str:
    """Return what is printed of a result for people and scripts: with a schema the JSON alone, and nothing without a match."""
    if options.output_schema is None:
        return result.text
    return "" if result.error is not None else msgspec.json.encode(result.output).decode()


def write_answer(path: str, text: str) -> None:
    """Write the last message to a file.

    Raises:
        AcpError: it cannot be written.
    """
    _write(path, text if not text or text.endswith("\n") else f"{text}\n")


def write_junit(path: str, result: "ResultEvent") -> None:
    """Write a result as JUnit XML.

    Raises:
        AcpError: it cannot be written.
    """
    from antiphon.runs.junit import junit

    _write(path, junit(result, _meaning(result)))


def write_workflow(workflow: WorkflowCommands | None, result: "ResultEvent", top: str, advice: str = "") -> None:
    """Write what GitHub Actions reads: annotations, the step's summary, its outputs. Paths in annotations are relative to `top`.

    `advice` is what to do about the exit status, where no error of the result has a hint.

    Raises:
        AcpError: a file cannot be written.
    """
    from antiphon.runs.github import annotations, outputs, summary

    meaning = _meaning(result)
    top = os.environ.get("GITHUB_WORKSPACE") or top
    if result.worktree is not None:
        top = result.worktree.path
    (workflow or WorkflowCommands()).resume(annotations(result, meaning, top, advice))
    for variable, text in (("GITHUB_STEP_SUMMARY", summary(result, meaning)), ("GITHUB_OUTPUT", outputs(result))):
        if path := os.environ.get(variable):
            _write(path, text, mode="a")


def result_of(error: Exception) -> "ResultEvent":
    """Return the result of a run that an error ended before it began."""
    from antiphon.runs.events import VERSION, ResultEvent, RunFailure

    sentence, hint = sentence_and_hint(error)
    if isinstance(error, OSError):
        sentence = f"stdout cannot be written: {(error.strerror or str(error)).lower()}"
        hint = "its disk may be full, or it was closed"
    failure = RunFailure(
        kind=kind_of(error),
        message=sentence,
        hint=hint or "`antiphon run --help` shows the usage",
        retryable=is_retryable(error),
    )
    return ResultEvent(
        schema_version=VERSION,
        exit_code=status_of(error),
        text="",
        files_changed=[],
        denials=[],
        seconds=0.0,
        error=failure,
    )


def _meaning(result: "ResultEvent") -> str:
    return RUN_STATUSES[result.exit_code].partition(":")[0]


def _write(path: str, text: str, mode: str = "w") -> None:
    try:
        with open(path, mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise AcpError(
            f"cannot write `{path}`: {(error.strerror or str(error)).lower()}", hint="check the path"
        ) from error
