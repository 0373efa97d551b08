"""`antiphon setup`: show and make the change that adds Antiphon to an editor's settings, and undo it."""

import argparse
import os
import shlex
import sys
from contextlib import suppress
from errno import EPIPE
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.cli.arguments import OfferedWords, Parser, add_token, check_choice
from antiphon.cli.outcome import FAILED, Misused, OutputLost, leave_stdout
from antiphon.editors.known import EDITORS, NAME, OTHER_NAMES, Editor, EditorEntry, editors_here, settings_path
from antiphon.editors.records import Record, digest, forget, keep, records
from antiphon.errors import AcpError
from antiphon.text import Style, exact

if TYPE_CHECKING:
    from antiphon.cli.terminal import Screen
    from antiphon.config.edits import EditRefused

__all__ = ["parser", "passing", "program", "run", "set_up", "undo"]

LONGEST_NAME: Final = 60
"""Letters of a name in an editor's menu."""

DESCRIPTION: Final = """\
Configure an editor to use Antiphon. The change is shown first, and made if you answer yes; everything else in the file stays the same,
comments too.

  antiphon setup zed
  antiphon setup zed --engine claude
  antiphon setup zed --connect wss://host/acp --token-file ~/host.token --map ~/project=/srv/project
  antiphon setup zed --undo
  antiphon setup --undo
"""

EPILOG: Final = """\
zed, jetbrains and vscode have settings in JSON, which get an entry. For neovim and emacs a file is written, and the line that loads it
is printed for you to add.

Without a terminal and without --yes nothing is written. The exit status is then 1, and also if you answer no.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""

    from antiphon.engines.known import ENGINES

    top = Parser(
        prog="antiphon setup",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    top.add_argument(
        "editor",
        metavar="EDITOR",
        nargs="?",
        choices=OfferedWords(EDITORS),
        help=f"{', '.join(EDITORS)} (default: list the editors found here, and offer to configure them)",
    )
    top.add_argument(
        "--engine",
        metavar="NAME",
        choices=[*ENGINES],
        help="one engine alone (default: all that are installed, as one agent)",
    )
    top.add_argument("--connect", metavar="URL", help="a remote agent, such as one behind `antiphon serve`")
    add_token(top)
    top.add_argument(
        "--map",
        metavar="LOCAL=REMOTE",
        action="append",
        help="a directory of this machine, and where it is on that of URL; repeat it for several",
    )
    top.add_argument(
        "--offer-files", action="store_true", help="let the server of URL use the files and terminals of the editor"
    )
    top.add_argument("--name", metavar="TEXT", help=f"the name in the editor (default: {NAME})")
    top.add_argument("--file", metavar="FILE", help="the settings file (default: the usual one)")
    top.add_argument("-y", "--yes", action="store_true", help="do not ask")
    top.add_argument(
        "--undo", action="store_true", help="remove the entry again; without EDITOR, the entries in all editors"
    )
    return top


def run(arguments: list[str]) -> int:
    """Configure an editor, or undo that."""
    options = parser().parse_args(arguments)
    if options.editor is None:
        if options.undo and not {*arguments} - {"--undo", "--yes", "-y"}:
            return _undo_everywhere(yes=options.yes)
        return _without_editor(arguments)
    _check_editor(options.editor)
    words, about = _words(options)
    name = _name(options.name, about)
    path = None if options.file is None else Path(options.file).expanduser().absolute()
    if options.undo:
        asked = None if options.name is None and about is None else name
        return undo(options.editor, asked, path, yes=options.yes)
    return set_up(options.editor, name, words, path, yes=options.yes)


def _words(options: argparse.Namespace) -> tuple[tuple[str, ...], str | None]:
    """Return the options of `antiphon agent` for the entry, and what it is called after."""
    if options.connect is None:
        if options.map or options.token_file is not None or options.plaintext or options.offer_files:
            raise Misused("`--map`, `--token-file`, `--plaintext` and `--offer-files` are for `--connect`")
        return () if options.engine is None else ("--engine", options.engine), options.engine
    from antiphon.errors import LocalProtocolError
    from antiphon.remote.paths import PathMap
    from antiphon.transports.remote import RemoteAddress

    if options.engine is not None:
        raise Misused("`--connect` is in place of `--engine`", hint="the server has its own agents")
    try:
        given = "token" if options.token_file is not None else None  # what would be refused later is refused now
        host = RemoteAddress(options.connect, token=given, plaintext=options.plaintext).name
        maps = PathMap.parse(options.map or [])
    except LocalProtocolError as error:
        raise Misused(error.sentence, hint=error.hint) from error
    words = ["--connect", options.connect]
    if options.token_file is not None:  # the editor starts it in another directory
        words += ["--token-file", os.path.abspath(os.path.expanduser(options.token_file))]
    words += ["--plaintext"] if options.plaintext else []
    words += ["--offer-files"] if options.offer_files else []
    for local, remote in maps.pairs:
        words += ["--map", f"{local}={remote}"]
    return tuple(words), host


def _without_editor(arguments: list[str]) -> int:
    """List the editors, and offer on a terminal to configure those found; with options, an editor has to be named."""

    from antiphon.cli.terminal import Screen, answered_yes, terminal_of

    here = editors_here()
    example = f"`antiphon setup {here[0] if here else 'zed'}` sets it up"
    if arguments:
        found = f"found here: {', '.join(here)}; " if here else ""
        raise Misused("EDITOR is missing", hint=f"{found}{example.removesuffix(' sets it up')}")
    waiting = [name for name in here if next(records(name), None) is None]
    for name, editor in EDITORS.items():
        done = "found" if name in waiting else "not found" if name not in here and not any(records(name)) else "set up"
        sys.stdout.write(f"{name:<11}{done:<11}{editor.title}\n")
    sys.stdout.flush()
    screen = Screen()
    terminal = terminal_of(screen)
    if terminal is None or not waiting:
        sys.stderr.write(f"next: {example}\n")
        return 0
    wanted = [
        name for name in waiting if answered_yes(screen, terminal, f"Set up {EDITORS[name].title}? (y yes, n no): ")
    ]
    if not wanted:
        screen.note("nothing was written")
        return FAILED
    return max([set_up(name, NAME, (), None, yes=False) for name in wanted])


def _undo_everywhere(*, yes: bool) -> int:
    """Remove what was added to the settings of any editor. Nothing to remove is no failure: that is how it should be."""
    configured = [name for name in EDITORS if any(records(name))]
    if not configured:
        sys.stderr.write("no editor has an entry of `antiphon setup`\n")
    return max([undo(name, None, None, yes=yes) for name in configured], default=0)


def _check_editor(word: str) -> None:
    if word.lower() in OTHER_NAMES:
        name, folder = OTHER_NAMES[word.lower()]
        file = settings_path(name, NAME).parents[2] / folder / "User" / "settings.json"
        where = f" --file {shlex.quote(str(file))}" if folder else ""
        raise Misused(f"unknown editor `{word}`", hint=f"did you mean `antiphon setup {name}{where}`?")
    check_choice(word, EDITORS, "editor")


def _name(given: str | None, about: str | None) -> str:
    """Return the name of the entry. Entries for several engines and hosts can be in one file."""
    if given is None:
        return NAME if about is None else f"{NAME} ({about})"
    if not given.strip() or not given.isprintable() or len(given) > LONGEST_NAME:
        raise Misused(f"a name has 1 to {LONGEST_NAME} letters")
    return given.strip()


# --- changing and restoring a settings file --------------------------------------------------------------------------

CONTEXT: Final = 3
"""Lines shown around a change."""

_STYLES: Final[dict[str, Style]] = {"+": "green", "-": "red", "@": "cyan"}


def set_up(name: str, called: str, words: tuple[str, ...], path: Path | None, *, yes: bool) -> int:
    """Add Antiphon to the settings of an editor. `words` are options of `antiphon agent`.

    Raises:
        AcpError: the file cannot be read, changed or written; it is as it was.
    """

    from antiphon.cli.terminal import Screen
    from antiphon.config.edits import EditRefused

    editor = EDITORS[name]
    path = path or settings_path(name, called)
    entry = EditorEntry(called, (*program(), "agent", *words))
    screen = Screen()
    if passing(entry.command[0]):
        screen.note(
            f"warning: {entry.command[0]} is in a cache and may go; install Antiphon first: uv tool install antiphon"
        )
    before = _read(path)
    if before is None and not path.parent.exists():
        screen.note(f"note: there is no {path.parent} yet; if the settings of {editor.title} are elsewhere, use --file")
    try:
        put = editor.put(before, entry)
    except EditRefused as error:
        raise _refused(path, editor, error, entry) from error
    if put.text == before:
        screen.note(f"{path} has it already")
        _print_steps(screen, editor, path, entry)
        return 0
    if not _agreed(screen, path, before, put.text, yes=yes):
        return FAILED
    folders = tuple(str(folder) for folder in reversed(path.parents) if not folder.exists())
    record = Record(name, called, str(path), before, digest(put.text), put.made_group, put.replaced, folders)
    kept = keep(record)
    try:
        _write(path, before, put.text)
    except BaseException:
        forget(kept)
        raise
    screen.note(f"{'made' if before is None else 'changed'} {path}; `antiphon setup {name} --undo` takes it back")
    _print_steps(screen, editor, path, entry)
    return 0


def undo(name: str, called: str | None, path: Path | None, *, yes: bool) -> int:
    """Remove what `set_up` added: for this editor, in that file, or with this name.

    Raises:
        AcpError: there is nothing, or a file cannot be changed; it is as it was.
    """

    from antiphon.cli.terminal import Screen
    from antiphon.config.edits import EditRefused

    files: dict[Path, list[tuple[Path, Record]]] = {}
    for kept, record in records(name):
        if called in (None, record.name) and path in (None, Path(record.file)):
            files.setdefault(Path(record.file), []).append((kept, record))
    if not files:
        where = path or settings_path(name, called or NAME)
        named = "" if called is None else f" as `{called}`"
        raise EditRefused(f"`antiphon setup {name}` has put nothing{named} into {where}", hint="edit it by hand")
    screen = Screen()
    undone = [_undo_in(screen, EDITORS[name], file, done, yes=yes) for file, done in files.items()]
    return 0 if all(undone) else FAILED


def _undo_in(screen: "Screen", editor: Editor, path: Path, done: list[tuple[Path, Record]], *, yes: bool) -> bool:
    """Undo the change of one file, and return whether it is undone."""

    from antiphon.config.edits import EditRefused

    before = text = _read(path)
    for _, record in done:  # the latest first
        try:
            text = _without(editor, text, record)
        except EditRefused as error:
            raise _refused(path, editor, error, None) from error
    if text == before:
        screen.note(f"{path} does not have it any more")
    elif not _agreed(screen, path, before, text, yes=yes):
        return False
    else:
        _write(path, before, text)
        screen.note(f"{'removed' if text is None else 'changed'} {path}; restart {editor.title}")
    for kept, record in done:
        forget(kept)
        for folder in reversed(record.folders):
            with suppress(OSError):  # something else is in there by now
                os.rmdir(folder)
    return True


def program() -> tuple[str, ...]:
    """Return the command that starts this program from anywhere: its absolute path, as it was found.

    Links are not followed: what a package manager puts on the PATH stays where it is when the program is renewed.
    """
    ran = Path(sys.argv[0])
    beside = Path(sys.executable).with_name("antiphon")
    for path in (ran.absolute(), beside):
        if path.name == "antiphon" and path.is_file() and os.access(path, os.X_OK):
            return (str(path),)
    return (sys.executable, "-m", "antiphon")


def passing(program: str) -> bool:
    """Whether a program is in the cache of uv (`uvx antiphon setup …`), where it does not stay."""
    parts = Path(program).parts
    return any(cache == "uv" and part.startswith("archive-v") for cache, part in pairwise(parts))


def _without(editor: Editor, text: str | None, record: Record) -> str | None:
    """Return the text before the change, or the present text without the entry if more has changed."""
    if text is None:  # the file is gone, and what was in it
        return None
    if digest(text) == record.after:
        return record.before
    left = editor.take(text, record.name, made_group=record.made_group, replaced=record.replaced)
    return text if left is None else left


def _agreed(screen: "Screen", path: Path, before: str | None, after: str | None, *, yes: bool) -> bool:
    """Show the change, and ask for a yes on a terminal.

    Raises:
        AcpError: the change cannot be shown or there is no terminal to ask in, so nothing is written.
    """

    from antiphon.cli.terminal import confirm

    try:
        _show(screen, path, before, after)
    except OutputLost as error:
        if error.errno != EPIPE:
            raise
        leave_stdout()
        if not yes:
            raise AcpError(
                "nothing was written: the reader of stdout has gone, so the change cannot be shown",
                hint="--yes writes it without asking",
            ) from None
    question = f"{'Delete' if after is None else 'Write'} {path}?"
    return yes or confirm(screen, question, nothing="nothing was written", otherwise="--yes writes it")


def _show(screen: "Screen", path: Path, before: str | None, after: str | None) -> None:
    """Print the change as a unified diff on stdout."""
    import difflib

    names = ("/dev/null" if before is None else str(path), "/dev/null" if after is None else str(path))
    old, new = ("" if text is None else text.replace("\r\n", "\n") for text in (before, after))
    for line in difflib.unified_diff(_lines(old), _lines(new), *names, lineterm="", n=CONTEXT):
        shown = screen.styled(exact(line), _STYLES.get(line[:1], "")) if screen.out_is_terminal else line
        sys.stdout.write(f"{shown}\n")
    sys.stdout.flush()


def _lines(text: str) -> list[str]:
    """Return the lines; a last one without a line end is marked, as in a diff."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _print_steps(screen: "Screen", editor: Editor, path: Path, entry: EditorEntry) -> None:
    for step in editor.next_steps(path, entry):
        screen.note(f"next: {step}")


def _read(path: Path) -> str | None:
    """Return the text of a file, byte for byte; None if there is no file."""

    from antiphon.config.edits import EditRefused

    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise EditRefused(f"{path} is not text in UTF-8", hint="convert it first") from error
    except OSError as error:
        raise EditRefused(f"{path} cannot be read: {error.strerror or error}", hint="check what it is") from error


def _write(path: Path, before: str | None, after: str | None) -> None:
    """Write the file, unless it has changed since it was shown."""

    from antiphon.config.edits import EditRefused
    from antiphon.local.files import write_text

    if _read(path) != before:
        raise EditRefused(f"{path} changed while you looked at it; nothing was written", hint="try again")
    if after is not None:
        write_text(path, after)
        return
    try:
        os.unlink(path.resolve())
    except OSError as error:
        raise EditRefused(f"{path} cannot be deleted: {error.strerror or error}", hint="delete it yourself") from error


def _refused(path: Path, editor: Editor, error: "EditRefused", entry: EditorEntry | None) -> "EditRefused":
    """Return the error with the name of the file, and with what to do by hand."""

    from antiphon.config.edits import EditRefused

    hint = error.hint
    if not hint and entry is not None:
        by_hand = " ".join(editor.put(None, entry).text.split())
        hint = f"correct it, or put this in by hand: {by_hand}"
    return EditRefused(f"{path} cannot be changed: {error.sentence}", hint=f"{hint or 'edit it by hand'}")
