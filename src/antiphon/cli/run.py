"""`antiphon run`: one prompt, a policy instead of a person where there is none, a result and an exit status."""

import os
import sys
from typing import TYPE_CHECKING

from antiphon.cli.arguments import Misused, Options, run_parser
from antiphon.cli.saying import MISUSED, fail

if TYPE_CHECKING:
    from antiphon.cli.prompting import Prompt
    from antiphon.cli.stopping import Stopping

__all__ = ["parser", "run"]

HINT = "`antiphon run --help` shows what there is."
CANCELLED = 130

parser = run_parser


def run(arguments: list[str]) -> int:
    """Run one prompt and return the exit status."""
    try:
        options = Options.read(run_parser(), arguments)
    except Misused as error:
        return fail(str(error), HINT, MISUSED)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    from antiphon.cli.logs import logging_to_file
    from antiphon.cli.stopping import stopping

    with logging_to_file(verbose=options.verbose), stopping() as stop:
        try:
            return _run(options, stop)
        except KeyboardInterrupt:  # before anything was started
            sys.stderr.write("\n")
            return CANCELLED
        except Misused as error:
            sentence, _, hint = str(error).partition("\nhint: ")
            return fail(sentence, hint or HINT, MISUSED)
        except BrokenPipeError:  # whoever read our output has gone
            _leave_stdout()
            return CANCELLED


def _run(options: Options, stop: "Stopping") -> int:
    prompt, cwd = _prepared(options)
    import asyncio

    from antiphon.cli.running import Runner

    return asyncio.run(Runner(options, prompt, cwd, stop).run())


def _prepared(options: Options) -> "tuple[Prompt, str]":
    from antiphon.cli.opening import work_place
    from antiphon.cli.prompting import read_prompt
    from antiphon.client.attachments import AttachmentError

    cwd = work_place(options)
    try:
        return read_prompt(options, cwd), cwd
    except AttachmentError as error:
        raise Misused(str(error)) from error


def _leave_stdout() -> None:
    """Python would try to write the rest once more when it exits, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
