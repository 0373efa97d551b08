"""`antiphon replay`: play a recording as agent or client.

An editor may wait for this, so the usual command line is read by hand and argparse is only imported for the unusual one.
"""

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from antiphon.cli.outcome import FAILED, Misused, require_streams
from antiphon.text import exact

if TYPE_CHECKING:
    import argparse
    from typing import NoReturn

    from antiphon.recorder.replay.agent import Player
    from antiphon.recorder.replay.client import ClientPlayer
    from antiphon.recorder.replay.script import Script

__all__ = ["parser", "play_client", "run"]

EPILOG = """\
FILE has a JSON object on each line: `{"t": seconds, "dir": "c2a" | "a2c", "msg": the message}`; `antiphon record` writes such files.

As an agent it serves ACP on stdin and stdout: use it instead of the command of an agent. It sends what the recorded agent sent, after
the same pauses, with the ids of the live client. --tolerant responds to each request as the recording responds to such a request;
--strict expects exactly the recorded requests, and fails with the difference.

As a client (`--as client FILE -- COMMAND …`) it starts the agent, sends what the recorded client sent, and compares the responses:
with --strict everything but ids, with --tolerant only whether they are results or errors, and stop reasons.

exit status: 0 as recorded, 1 something differed, 2 wrong arguments.
"""


class ReplayOptions:
    """The options of the command."""

    def __init__(self) -> None:
        self.file = ""
        self.role = "agent"
        self.strict = False
        self.speed = 1.0
        self.conversation: int | None = None
        self.ignore: list[str] = []
        self.cwd: str | None = None
        self.timeout = 60.0
        self.verbatim = False
        self.verbose = False
        self.json = False
        self.command: list[str] = []


def run(arguments: list[str]) -> int:
    """Play the recording to its end, or until the peer ends."""
    return _play(_quickly(arguments) or _carefully(arguments))


def _quickly(arguments: list[str]) -> ReplayOptions | None:
    """Return the options of a command line that editors and tests use; None for any other."""
    options = ReplayOptions()
    if arguments[:1] == ["--speed"] and arguments[1:2] in (["max"], ["0"]):
        options.speed, arguments = 0.0, arguments[2:]
    flags = [word for word in arguments if word.startswith("-")]
    words = [word for word in arguments if not word.startswith("-")]
    if len(words) != 1 or not {"--strict", "--tolerant", "--verbose"}.issuperset(flags) or len(flags) > len(set(flags)):
        return None
    if {"--strict", "--tolerant"}.issubset(flags):
        return None
    options.file, options.strict, options.verbose = words[0], "--strict" in flags, "--verbose" in flags
    return options


def _carefully(arguments: list[str]) -> ReplayOptions:
    from antiphon.cli.arguments import split_command

    words, command = split_command(arguments)
    options: ReplayOptions = parser().parse_intermixed_args(words, namespace=ReplayOptions())
    options.command = command or []
    if options.cwd is not None and not os.path.isdir(options.cwd):
        raise Misused(f"there is no directory `{options.cwd}`")
    if options.role == "client" and not command:
        raise Misused("`--as client` needs the agent to start: `-- COMMAND …`")
    if options.role == "agent" and (command or options.json or options.cwd is not None):
        raise Misused("a command, `--json` and `--cwd` are for `--as client`")
    return options


def parser() -> "argparse.ArgumentParser":
    """Return the parser of the command."""
    from antiphon.cli.arguments import Parser, duration, number_from

    top = Parser(
        prog="antiphon replay",
        usage="antiphon replay [OPTIONS] FILE\n       antiphon replay --as client [OPTIONS] FILE -- COMMAND …",
        description="Replay a recording as agent or client, for tests and demos.",
        epilog=EPILOG,
    )
    top.add_argument("file", metavar="FILE", help="the recording")
    top.add_argument("--as", dest="role", choices=("agent", "client"), help="which side to play (default: agent)")
    mode = top.add_mutually_exclusive_group()
    mode.add_argument("--strict", action="store_true", help="fail if anything differs from the recording")
    mode.add_argument("--tolerant", dest="strict", action="store_false", help="accept differences (default)")
    top.add_argument(
        "--speed",
        metavar="N",
        type=_speed,
        help="N times as fast as recorded; 0 or max: without pauses (default: 1)",
    )
    top.add_argument(
        "--conversation",
        metavar="N",
        type=number_from(1),
        help="which conversation, if the file has several (default: 1)",
    )
    top.add_argument(
        "--ignore",
        metavar="PLACE",
        action="append",
        default=[],
        help="what may differ despite --strict, such as params.clientInfo or result.files[*].size; repeatable",
    )
    top.add_argument("--verbatim", action="store_true", help="do not rewrite recorded paths")
    top.add_argument("-v", "--verbose", action="store_true", help="report accepted differences on stderr")
    client = top.add_argument_group("as a client")
    client.add_argument(
        "--cwd", metavar="DIR", help="the directory to use instead of the recorded one (default: this one)"
    )
    client.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="how long to wait for the agent (default: 60s)",
    )
    client.add_argument("--json", action="store_true", help="the result as one JSON object on stdout")
    return top


def _speed(text: str) -> float:
    if text == "max":
        return 0.0
    try:
        speed = float(text)
    except ValueError:
        speed = -1.0
    return speed if 0 <= speed < float("inf") else _wrong(f"`{text}` is not a speed: give a number from 0 on, or `max`")


def _wrong(sentence: str) -> "NoReturn":
    from argparse import ArgumentTypeError

    raise ArgumentTypeError(sentence)


def _play(options: ReplayOptions) -> int:
    script = _script(options)
    if options.role == "client":
        return play_client(script, options)
    from antiphon.recorder.replay.agent import serve

    require_streams()

    player = _player(script, options)

    def print_notes(player: "Player") -> None:
        for note in player.notes if options.verbose else ():
            sys.stderr.write(f"note: {exact(note)}\n")
        player.notes.clear()

    serve(player, print_notes)
    for problem in player.problems:
        sys.stderr.write(f"error: {exact(problem)}\n")
    return FAILED if player.problems else 0


def _script(options: ReplayOptions) -> "Script":
    """Return the conversation that the options name.

    Raises:
        BadRecording: there is none.
    """
    from antiphon.recorder.replay.script import BadRecording, Script, conversations, is_none
    from antiphon.traffic.entries import Direction, RecordingReader, entries_of

    reading = RecordingReader()
    try:
        with open(options.file, "rb") as file:
            entries = list(entries_of(file, reading))
    except OSError as error:
        why = (error.strerror or "it cannot be read").lower()
        raise Misused(f"`{options.file}` cannot be read: {why}", hint="`antiphon record` makes recordings") from error
    if not entries:
        wrong = is_none(exact(options.file), reading.lines)
        raise BadRecording(wrong.sentence, hint=wrong.hint)
    found = conversations(entries)
    if len(found) > 1 and options.conversation is None:
        sys.stderr.write(
            f"note: the file holds {len(found)} conversations; this is the first, --conversation chooses\n"
        )
    number = options.conversation or 1
    if number > len(found):
        raise Misused(f"there is no conversation {number}: the file holds {len(found)}")
    return Script(found[number - 1], Direction.C2A if options.role == "client" else Direction.A2C)


def _player(script: "Script", options: ReplayOptions) -> "Player":
    from antiphon.recorder.replay.script import ReplayNames

    names = ReplayNames(script.lines, script.ours.other, verbatim=options.verbatim, renew=not options.strict)
    if not options.strict:
        from antiphon.recorder.replay.agent import TolerantPlayer

        return TolerantPlayer(script, names, speed=options.speed)
    from antiphon.recorder.replay.agent import StrictPlayer
    from antiphon.recorder.replay.comparison import Ignored

    return StrictPlayer(script, names, speed=options.speed, ignored=Ignored(options.ignore))


# --- `antiphon replay --as client` -----------------------------------------------------------------------------------


def play_client(script: "Script", options: "ReplayOptions") -> int:
    """Play the client, report, and return 1 if anything differed."""
    import asyncio  # here: an agent is replayed without it, and an editor may wait for that

    from antiphon.recorder.replay.client import ClientPlayer, drive
    from antiphon.recorder.replay.comparison import Ignored
    from antiphon.recorder.replay.script import ReplayNames

    here = os.path.abspath(options.cwd or ".")
    names = ReplayNames(script.lines, script.ours.other, verbatim=options.verbatim)
    recorded = next((line.params["cwd"] for line in script.lines if isinstance(line.params.get("cwd"), str)), None)
    if recorded is not None:
        names.move(recorded, here)
    ignored = Ignored(options.ignore)
    player = ClientPlayer(script, names, speed=options.speed, strict=options.strict, ignored=ignored)
    early = asyncio.run(drive(player, options.command, here, options.timeout))
    _print_outcome(player, early, options)
    return FAILED if player.differences or early is not None else 0


def _print_outcome(player: "ClientPlayer", early: str | None, options: "ReplayOptions") -> None:
    for note in player.notes if options.verbose else ():
        sys.stderr.write(f"note: {exact(note)}\n")
    if early is not None:
        sys.stderr.write(f"error: {exact(early)}\n")
    for difference in player.differences:
        sys.stderr.write(f"{exact(str(difference))}\n")
    sys.stderr.write(f"{player.matched} messages of the agent as recorded, {len(player.differences)} differences\n")
    if options.json:
        found = [difference.as_data() for difference in player.differences]
        report = {"matched": player.matched, "differences": found, "ended_early": early}
        sys.stdout.write(f"{msgspec.json.encode(report).decode()}\n")
