"""`antiphon record`: start an agent, forward its traffic, and write a copy to a file.

An editor waits for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

import os
import sys

from antiphon.cli.outcome import Misused, fail, kind_of, require_streams
from antiphon.errors import AcpError, SpawnFailed, sentence_and_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

__all__ = ["parser", "run"]

NOT_FOUND = 127
"""The exit status of a shell for a program that does not exist."""

WHAT = ("secrets", "home", "files")
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}

EPILOG = """\
Messages are forwarded unchanged in both directions; the recording is a copy. In Zed's settings, for example:

  "agent_servers": {
    "Claude, recorded": {
      "type": "custom",
      "command": "antiphon",
      "args": ["record", "--", "antiphon", "agent", "--engine", "claude"]
    }
  }

With --connect the agent is at an address on a network, over WebSocket or streamable HTTP, and the client is still at stdin and stdout:

  antiphon run --agent "antiphon record --connect wss://host/acp --token-file ~/.token" "what is new here?"

Without -o the recording is `recordings/NAME-TIME.jsonl` in the state directory, and its path is written to stderr. In FILE, {time} is
the time of the start and {pid} the process id. An existing FILE is renamed to FILE.1, and that to FILE.2: nothing is overwritten.

A recording contains all messages, and the words of CMD. --redact leaves out secrets (keys, tokens, passwords, values of environment
variables and headers), home (your home directory and user name in paths), files (contents of files, diffs, images, output of terminals,
input and output of tools), or all of these. The forwarded messages are never changed.

exit status: that of CMD, 128 plus the number of the signal that killed it, 127 if it cannot be started; 1 if FILE cannot be created, 2
wrong arguments.
"""


def run(arguments: list[str]) -> int:
    """Start the command and forward everything until it ends; with `--from`, redact a recording instead."""
    named = {word.partition("=")[0] for word in arguments}
    if "--" not in arguments and not {"--from", "--connect", "-h", "--help"} & named:
        raise Misused("CMD is missing", hint="put it behind `--`, as in `antiphon record -- my-agent --acp`")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    command = arguments[end + 1 :]
    options = _quickly(arguments[:end]) or _carefully(arguments[:end])
    if options.source is not None:
        return _rewrite(options, command)
    if options.connect is not None:
        return _record_remote(options, command)
    if options.token_file is not None or options.plaintext:
        raise Misused("`--token-file` and `--plaintext` are for `--connect`")
    if not command:
        raise Misused("CMD is missing behind `--`")
    return _record(options, command)


class _Options:
    """The options of the command."""

    output: str | None = None
    quiet: bool = False
    stderr: bool = False
    rotate: int | None = None
    keep: int | None = None
    redact: frozenset[str] = frozenset()
    source: str | None = None
    connect: str | None = None
    token_file: str | None = None
    plaintext: bool = False


def _quickly(words: list[str]) -> _Options | None:
    """Return the options, if there are only those that editors use; else None."""
    options = _Options()
    rest = iter(words)
    for word in rest:
        if word in ("-q", "--quiet"):
            options.quiet = True
        elif word in ("-o", "--output"):
            options.output = next(rest, None)
            if not options.output:
                return None
        else:
            return None
    return options


def parser() -> "argparse.ArgumentParser":
    """Return the parser of the command."""
    from antiphon.cli.arguments import Parser, add_token, count

    top = Parser(
        prog="antiphon record",
        usage="antiphon record [OPTIONS] -- CMD …\n       antiphon record [OPTIONS] --connect URL\n       antiphon record --from FILE -o FILE --redact WHAT",
        description="Record the traffic of an agent: start this in its place; it forwards every message and writes a copy to a file.",
        epilog=EPILOG,
    )
    top.add_argument("-o", "--output", metavar="FILE", help="the file to write; `{time}` and `{pid}` are replaced")
    top.add_argument("-q", "--quiet", action="store_true", help="do not write the path to stderr")
    top.add_argument("--stderr", action="store_true", help="also record what CMD writes to stderr")
    top.add_argument(
        "--rotate",
        metavar="SIZE",
        type=_size,
        help="start a new file at this size, such as 50M; the old one becomes FILE.1",
    )
    top.add_argument("--keep", metavar="N", type=count, help="how many old files to keep (default: all)")
    top.add_argument(
        "--redact",
        metavar="WHAT",
        type=_what,
        default=frozenset(),
        help="leave out secrets, home, files, or all; separate several with commas",
    )
    top.add_argument("--connect", metavar="URL", help="the address of the agent, as in wss://host/acp, in place of CMD")
    add_token(top)
    top.add_argument("--from", dest="source", metavar="FILE", help="start nothing: redact this recording")
    return top


def _carefully(words: list[str]) -> _Options:
    options = _Options()
    parser().parse_args(words, namespace=options)
    if options.output == "":
        raise Misused("`--output` needs the name of a file")
    return options


def _size(text: str) -> int:
    import argparse

    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isascii() or not number.isdigit() or unit not in UNITS or not int(number):
        raise argparse.ArgumentTypeError(f"`{text}` is not a size: give bytes, or `500K`, `50M`, `1G`")
    return int(number) * UNITS[unit]


def _what(text: str) -> frozenset[str]:
    import argparse

    words = set(text.split(","))
    if unknown := words - {*WHAT, "all"}:
        raise argparse.ArgumentTypeError(f"`{min(unknown)}` cannot be redacted: there are {', '.join(WHAT)} and all")
    return frozenset(WHAT if "all" in words else words)


def _record_remote(options: _Options, command: list[str]) -> int:
    """Record what goes to and from an agent on a network. A bridge is the command, so that all else is as with any other."""
    if command:
        raise Misused("there are two agents: an address and a command", hint="leave one of them away")
    from antiphon.transports.remote import RemoteAddress, shown_address

    url = options.connect or ""
    name = RemoteAddress(url).name  # an address that cannot be used is refused before there is a file
    bridge = [sys.executable, "-m", "antiphon", "bridge", "--connect", url]
    bridge += ["--token-file", options.token_file] if options.token_file is not None else []
    bridge += ["--plaintext"] if options.plaintext else []
    return _record(options, bridge, ["antiphon", "bridge", "--connect", shown_address(url)], name)


def _record(options: _Options, command: list[str], shown: list[str] | None = None, name: str = "") -> int:
    """Record a command; `shown` is what the recording calls it, `name` what the file is named after, unless that is the command."""
    from antiphon.recorder.tap import tap
    from antiphon.recorder.writer import RecordingFiles

    require_streams()
    path = _place(options.output, name or command[0])
    files = RecordingFiles(path, limit=options.rotate, keep=options.keep)
    try:
        if options.output is None:
            from antiphon.config.directories import make_private_directory

            make_private_directory(os.path.dirname(path))
        files.open()
    except (OSError, ValueError) as error:
        raise _no_file(path, error) from error
    try:
        return tap(
            command,
            files,
            redact=options.redact,
            with_stderr=options.stderr,
            quiet=options.quiet,
            shown=shown or command,
        )
    except SpawnFailed as error:
        files.discard()
        sentence, hint = sentence_and_hint(error)
        return fail(sentence, hint or "", NOT_FOUND, kind_of(error))


def _place(output: str | None, command: str) -> str:
    import time

    now = time.strftime("%Y%m%d-%H%M%S")
    if output is not None:
        # An editor is not a shell: `~` is not expanded before it reaches us.
        return os.path.expanduser(output.replace("{time}", now).replace("{pid}", str(os.getpid())))
    from antiphon.config.directories import state_dir

    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in os.path.basename(command))
    return str(state_dir() / "recordings" / f"{name.strip('.-')[:80] or 'agent'}-{now}.jsonl")


def _rewrite(options: _Options, command: list[str]) -> int:
    if command:
        raise Misused("`--from` reads a recording and starts no command")
    if options.output is None or not options.redact:
        raise Misused(
            "`--from` needs `-o FILE` and `--redact WHAT`",
            hint="as in `antiphon record --from FILE -o OUT --redact all`",
        )
    from antiphon.recorder.redaction import redact_file

    path = _place(options.output, "")
    try:
        lines, left_out = redact_file(options.source or "", path, options.redact)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.filename == options.source:
            why = (error.strerror or str(error)).lower()
            raise Misused(f"`{options.source}` cannot be read: {why}", hint="name a recording with `--from`") from error
        raise _no_file(path, error) from error
    if not options.quiet:
        what_not = f"; {left_out} that were not JSON were left out" if left_out else ""
        sys.stderr.write(f"antiphon record: {lines} lines to {_shown(path)}{what_not}\n")
    return 0


def _no_file(path: str, error: Exception) -> Exception:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Misused(
            f"`{_shown(path)}` cannot be written: there is no such directory", hint="name another file with `-o`"
        )
    why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else error
    return AcpError(f"`{_shown(path)}` cannot be written: {why}", hint="name another file with `-o`")


def _shown(text: str) -> str:
    from antiphon.text import exact

    return exact(text)
