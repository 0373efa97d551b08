"""`antiphon run`: one prompt, a policy instead of a person where there is none, a result and an exit status."""

from errno import EPIPE
from typing import TYPE_CHECKING

from antiphon.cli.arguments import Misused, Options, run_parser, work_place
from antiphon.cli.ending import leave_stdout
from antiphon.cli.saying import CANCELLED, OutputLost

if TYPE_CHECKING:
    from antiphon.cli.prompting import Prompt
    from antiphon.cli.stopping import Stopping

__all__ = ["parser", "run"]

parser = run_parser


def run(arguments: list[str]) -> int:
    """Run one prompt and return the exit status."""
    options = Options.read(run_parser(), arguments)
    from antiphon.transports import guard

    guard.prepare()  # before the rest is loaded, so that it is ready when the agent is started
    from antiphon.cli.logs import logging_to_file
    from antiphon.cli.stopping import stopping

    with logging_to_file(verbose=options.verbose), stopping() as stop:
        try:
            return _run(options, stop)
        except (OutputLost, BrokenPipeError) as error:
            if error.errno != EPIPE:
                raise
            leave_stdout()  # its reader has gone, and the turn was cancelled
            return CANCELLED


def _run(options: Options, stop: "Stopping") -> int:
    prompt, cwd = _prepared(options)
    import asyncio

    from antiphon.cli.running import Runner

    return asyncio.run(Runner(options, prompt, cwd, stop).run())


def _prepared(options: Options) -> "tuple[Prompt, str]":
    from antiphon.cli.prompting import read_prompt
    from antiphon.client.attachments import AttachmentError

    cwd = work_place(options)
    try:
        return read_prompt(options, cwd), cwd
    except AttachmentError as error:
        raise Misused(error.sentence, hint=error.hint) from error
