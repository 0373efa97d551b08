"""Agents of the user's own, written into `config.toml` and taken out again. Everything else in the file stays as it is."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antiphon.catalogue.finding import Missing, find
from antiphon.catalogue.known import KNOWN
from antiphon.cli.saying import Misused
from antiphon.config.editing import EditRefused, WrongAgent, with_agent, without_agent
from antiphon.config.files import read_file, user_file
from antiphon.config.places import make_private_directory, make_private_file
from antiphon.config.shapes import OwnAgent, Settings
from antiphon.local.files import write_text
from antiphon.text import one_line, prose

__all__ = ["add", "remove"]


def add(name: str, command: list[str]) -> int:
    """Add an agent.

    Raises:
        AcpError: it cannot be added; the file is as it was.
    """
    program = os.path.expanduser(command[0])
    if "/" in program:
        command = [os.path.abspath(program), *command[1:]]  # it is started from anywhere
    try:
        path = _edit(lambda text: with_agent(text, name, command))
    except WrongAgent as error:
        raise Misused(error.sentence, hint=error.hint) from error
    sys.stderr.write(f"added `{name}` to {path}; `antiphon agents check {name}` tries it\n")
    here = find(name, Settings(agents={name: OwnAgent(tuple(command))}))
    if isinstance(here, Missing):
        sys.stderr.write(f"warning: there is no program `{one_line(command[0])}` yet\n")
    return 0


def remove(name: str) -> int:
    """Take an agent out.

    Raises:
        AcpError: it is not there, or cannot be taken out; the file is as it was.
    """
    path = _edit(lambda text: without_agent(text, name))
    again = f"; `{name}` is the known agent again" if name in KNOWN else ""
    sys.stderr.write(f"removed `{prose(name)}` from {path}{again}\n")
    return 0


def _edit(change: Callable[[str], str]) -> Path:
    """Change the user's config file at one stroke; who edits it at the same time from here waits."""
    path = user_file()
    try:
        make_private_directory(path.parent)
        with _alone_in(path.parent):
            file = read_file(path)
            if file is not None and file.trouble is not None:
                raise EditRefused(f"{path} cannot be read: {file.trouble}", hint="correct it first")
            new = change("" if file is None else file.text)
            make_private_file(path)  # `env` in it may hold keys
            write_text(path, new)
    except OSError as error:
        raise EditRefused(
            f"{path} cannot be written: {error.strerror or error}", hint="check its permissions"
        ) from error
    return path


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)  # lets go of the lock
