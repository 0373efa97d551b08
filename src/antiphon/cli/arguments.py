"""The parser of every command line, its errors and values, and the options that `run` and `chat` share."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from antiphon.cli.outcome import Misused, did_you_mean, invocation

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from antiphon.client.launch import LaunchOptions

__all__ = [
    "MODES",
    "Misused",
    "OfferedWords",
    "Options",
    "Paragraphs",
    "Parser",
    "add_agent",
    "add_permissions",
    "add_problems",
    "add_session",
    "amount",
    "check_choice",
    "count",
    "duration",
    "number_from",
    "read_token",
    "shown_time",
    "split_command",
    "working_directory",
]

# --- the parser ------------------------------------------------------------------------------------------------------
# Looks at no file, starts nothing, and exits only for `--help`: a mistake raises `Misused`.

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_QUOTED: Final = re.compile(r"`([^`]*)`")
_SHOWN: Final = 60
"""Characters of a word that an error shows."""
_TIME: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h)?")


class Paragraphs(argparse.HelpFormatter):
    """A help formatter that fills each paragraph to the width of the terminal and keeps indented lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        return "\n\n".join(
            part
            if part.startswith(" ")
            else textwrap.fill(
                " ".join(part.split()),
                width,
                initial_indent=indent,
                subsequent_indent=indent,
                break_on_hyphens=False,
                break_long_words=False,
            )
            for part in text.rstrip().split("\n\n")
        )


class OfferedWords(tuple[str, ...]):
    """Words that completion offers. The parser accepts others too: the command checks them."""

    def __contains__(self, word: object) -> bool:
        return True


class _Missing(Misused):
    """A required argument is missing."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `Misused` instead of exiting, and suggests what was meant."""

    used: "Parser | None" = None
    """The one that read the last command line: of a subcommand, if there is one."""

    def __init__(
        self,
        prog: str | None = None,
        usage: str | None = None,
        description: str | None = None,
        epilog: str | None = None,
        formatter_class: type[argparse.HelpFormatter] = Paragraphs,
    ) -> None:
        super().__init__(
            prog, usage, description, epilog,
            formatter_class=formatter_class, allow_abbrev=False, exit_on_error=False, add_help=False,
        )  # fmt: skip
        self.add_argument("-h", "--help", action="help", help="show this help")

    # Reading.

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override] # one form instead of its overloads
        return _complete(*self.parse_known_args(args, namespace))

    def parse_intermixed_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override] # one form instead of its overloads
        return _complete(*self.parse_known_intermixed_args(args, namespace))

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override] # one form instead of its overloads
        return self._read(super().parse_known_args, args, namespace)

    def parse_known_intermixed_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override] # one form instead of its overloads
        return self._read(super().parse_known_intermixed_args, args, namespace)

    def _read(self, parse: Callable[[Any, Any], Any], args: Sequence[str] | None, namespace: Any) -> Any:
        Parser.used, invocation.prog = self, self.prog
        self._given = list(args or ())
        try:
            return parse(args, namespace)
        except argparse.ArgumentError as error:
            if error.argument_name is not None:
                raise _misused(_sentence(error)) from None
            missing = _Missing(_whole_sentence(str(error.message)))  # from Python 3.12 on; before, `error` is called
        except _Missing as error:
            missing = error
        # An option that does not exist explains more than the argument that it was taken for.
        self._refuse_unknown(args or ())
        raise missing

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        for word in words:
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                raise _unknown(word)

    def error(self, message: str) -> NoReturn:
        raise _Missing(_whole_sentence(message))

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            if action.dest == "command":  # it may be the value of an option that does not exist
                self._refuse_unknown(self._given[: self._given.index(value)] if value in self._given else ())
            name = action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest).lower()
            check_choice(str(value), map(str, action.choices), name)

    # Help.

    def add_subparsers(self, **options: Any) -> Any:
        named: dict[str, Any] = {"dest": "command", "metavar": "COMMAND", "title": "commands", "prog": self.prog}
        return super().add_subparsers(**{**named, "parser_class": Parser, **options})

    def format_usage(self) -> str:
        self.usage = self.usage or self._usage()
        return super().format_usage()

    def format_help(self) -> str:
        self.usage = self.usage or self._usage()
        return super().format_help()

    def _usage(self) -> str:
        words = [self.prog, "[OPTIONS]", *map(_positional, self._get_positional_actions())]
        return " ".join(words).replace("%", "%%")

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        # Not as argparse does it, which prints nothing where stdout is full.
        (file or sys.stderr).write(message)


def _misused(sentence: str, hint: str = "") -> Misused:
    """Return the error. Long words are cut: an argument may be a whole file."""
    return Misused(_QUOTED.sub(_shortened, sentence), hint=_QUOTED.sub(_shortened, hint))


def _shortened(found: re.Match[str]) -> str:
    return found[0] if len(found[1]) <= _SHOWN else f"`{found[1][:_SHOWN]}…`"


def _complete(options: Any, rest: Sequence[str]) -> Any:
    """Return the options; raise `Misused` if words are left over."""
    if not rest:
        return options
    word = rest[0]
    if not word.startswith("-") or word == "-":
        raise _misused(f"unexpected argument `{word}`")
    raise _unknown(word)


def _unknown(word: str) -> Misused:
    name = word.partition("=")[0]
    known = Parser.used._option_string_actions if Parser.used is not None else {}
    meant = did_you_mean(name, (each for each in known if each.startswith("--")))
    return _misused(f"unknown option `{name}`", f"{meant}`{invocation.prog} --help` shows the usage")


def check_choice(word: str, choices: Iterable[str], name: str) -> None:
    """Raise `Misused` if a word is not one of these. `name` is what it stands for: `--mode`, or `editor`."""
    known = list(choices)
    if word in known:
        return
    sentence = f"`{name}` does not take `{word}`" if name.startswith("-") else f"unknown {name} `{word}`"
    raise _misused(sentence, f"{did_you_mean(word, known)}choose from {', '.join(known)}")


def _positional(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    if isinstance(action, argparse._SubParsersAction):
        return f"{name} …" if action.required else f"[{name} …]"
    forms = {"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …", argparse.REMAINDER: f"[{name} …]"}
    return forms.get(str(action.nargs), name)


def _sentence(error: argparse.ArgumentError) -> str:
    """Return the error of argparse about one argument as a plain sentence."""
    message = str(error.message)
    name = (error.argument_name or "").rpartition("/")[2]
    if message.startswith("expected"):
        return f"`{name}` needs a value" if name.startswith("-") else f"{name} is missing"
    if message.startswith("not allowed with argument"):
        return f"`{name}` cannot be used together with `{message.rpartition(' ')[2].rpartition('/')[2]}`"
    if message.startswith("ignored explicit argument"):
        return f"`{name}` takes no value"
    if message.startswith("invalid "):  # its type has raised something else than what it takes
        message = f"this value cannot be read: {message.partition(': ')[2]}"[:100]
    return f"`{name}`: {message}" if name.startswith("-") else message


def _whole_sentence(message: str) -> str:
    """Return the error of argparse about several arguments as a plain sentence."""
    start = "the following arguments are required: "
    if message.startswith(start):
        names = message.removeprefix(start).split(", ")
        return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing"
    found = re.fullmatch(r"one of the arguments (.+) is required", message)
    if found is not None:
        return f"one of {', '.join(f'`{name}`' for name in found[1].split())} is needed"
    return message


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return our own words, and the command after `--`; None if there is no `--`. What argparse does to it depends on the Python."""
    words = list(arguments)
    if "--" not in words:
        return words, None
    end = words.index("--")
    return words[:end], words[end + 1 :]


# Values. The error of each names what it takes.


def duration(text: str) -> float:
    """Return the seconds of a time: `5`, `90s`, `5m`, `1h`, `250ms`."""
    found = _TIME.fullmatch(text) if text.isascii() else None
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found is not None else 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a time: give seconds, or a number with a unit, such as `90s`, `5m`, `1h`"
        )
    return seconds


def shown_time(seconds: float) -> str:
    """Return a time as it is typed: `10s`, `250ms`."""
    return f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"


def number_from(least: int) -> Callable[[str], int]:
    """Return a type for argparse: a whole number that is at least `least`."""

    def number(text: str) -> int:
        # So many digits are no number of anything, and Python refuses to read more than 4,300.
        if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < least:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number from {least} on")
        return int(text)

    return number


count: Final = number_from(0)


def amount(text: str) -> float:
    """Return an amount of money: a number above 0."""
    found = re.fullmatch(r"\$?(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})", text) if text.isascii() else None
    if found is None or float(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is not an amount: give dollars, such as `0.50`")
    return float(found[1])


MODES: Final = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
ON_ASK: Final = ("deny", "fail", "allow")

TIMEOUT_GRACE: Final = 2.0
"""Seconds that an agent may take to end a turn that `--timeout` has cancelled: the time is over."""


class Options(argparse.Namespace):
    """The options of `run`, `chat` and other commands. None or empty means not given."""

    agent: str | None
    token_file: str | None
    plaintext: bool
    cwd: str | None
    add_dir: list[str]
    mcp_config: list[str]
    session: str | None
    continue_last: bool
    resume: str | None
    mode: str | None
    model: str | None
    set: list[tuple[str, str]]
    allow: list[str]
    deny: list[str]
    ask: list[str]
    permission_mode: str | None
    on_ask: str | None
    policy: str | None = None
    trust_project: bool = False
    max_retries: int | None
    verbose: bool
    # Only of `run`:
    prompt: list[str]
    file: str | None
    attach: list[str]
    timeout: float | None
    output: str
    quiet: bool
    output_file: str | None
    output_schema: str | None
    patch: str | None
    junit: str | None
    github: bool
    worktree: bool
    keep_worktree: str | None
    ephemeral: bool
    append_system_prompt: str | None
    max_cost: float | None
    max_tokens: int | None
    max_turns: int | None

    @property
    def events(self) -> bool:
        """Whether stdout has JSON and nothing else."""
        return self.output != "text"

    @property
    def is_remote(self) -> bool:
        """Whether the agent is an address."""
        return self.agent is not None and "://" in self.agent.partition(" ")[0]

    def launch_options(self) -> "LaunchOptions":
        """Return the options about the agent and the policy."""
        from antiphon.client.launch import LaunchOptions
        from antiphon.connection.stream import CANCEL_GRACE

        return LaunchOptions(
            self.agent,
            self.allow,
            self.deny,
            self.ask,
            self.permission_mode,
            self.on_ask,
            self.max_retries,
            CANCEL_GRACE if getattr(self, "timeout", None) is None else TIMEOUT_GRACE,
            self._token(),
            self.plaintext,
            self.cwd is not None,
            self.policy,
            self.trust_project,
        )

    def _token(self) -> str | None:
        """Return the token for an address. It leaves the environment, which commands of this machine get."""
        from antiphon.config.environment import TOKEN

        token = os.environ.pop(TOKEN, "") or None
        if self.token_file is None:
            return token
        if self.agent is not None and not self.is_remote:
            raise Misused(
                f"`{self.agent}` needs no token", hint="a token is for an address, as in `--agent wss://host/acp`"
            )
        return read_token(self.token_file)

    @classmethod
    def read(cls, parser: argparse.ArgumentParser, arguments: Sequence[str]) -> "Options":
        """Read the arguments with a parser.

        Raises:
            Misused: they make no sense.
            SystemExit: help was asked for, and given.
        """
        words = list(arguments)
        # By hand: argparse forgets about it when options stand between words.
        end = words.index("--") if "--" in words else len(words)
        # Intermixed: options may stand before, behind and between the words of a prompt.
        options: Options = parser.parse_intermixed_args(words[:end], namespace=cls())
        if end < len(words):
            options.prompt = [*options.prompt, *words[end + 1 :]]
        return options


def read_token(path: str) -> str:
    """Read the token for a remote agent: the one line of a file.

    Raises:
        Misused: the file cannot be read, or holds no token.
    """
    try:
        with open(os.path.expanduser(path), encoding="ascii") as file:
            token = file.read(MAX_TOKEN + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        raise Misused(f"the token cannot be read from `{path}`: {why}") from error
    if not token or len(token) > MAX_TOKEN or any(sign.isspace() for sign in token):
        raise Misused(f"`{path}` holds no token", hint="write the token into it, and nothing else")
    return token


MAX_TOKEN: Final = 16 * 1024
"""Characters of a token: those of the longest signed ones that servers accept in a header."""


def add_token(parser: "argparse.ArgumentParser | argparse._ArgumentGroup", what: str = "URL") -> None:
    """Add the options about the token for an address."""
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"the token for {what} (default: the variable ANTIPHON_TOKEN)"
    )
    parser.add_argument(
        "--plaintext", action="store_true", help="send the token to another machine without TLS, as in a VPN"
    )


def add_agent(parser: argparse.ArgumentParser) -> None:
    """Add the options about the agent and its directory."""
    group = parser.add_argument_group("agent")
    group.add_argument(
        "--agent",
        metavar="NAME",
        help="an agent that `antiphon agents` lists, a command in quotes, or an address (`wss://host/acp`, `https://host/acp`)",
    )
    add_token(group, "an address, from a file")
    group.add_argument(
        "--cwd", metavar="DIR", help="the directory to work in (default: this one); for an address, one of its machine"
    )
    group.add_argument(
        "--add-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="another directory that the agent may use; repeatable",
    )
    group.add_argument(
        "--mcp-config", metavar="FILE", action="append", default=[], help="MCP servers, as in `.mcp.json`"
    )


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the options about the session and its settings."""
    group = parser.add_argument_group("session")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="NAME", help="the session with this name; created if it does not exist")
    which.add_argument(
        "--continue", dest="continue_last", action="store_true", help="continue the last session of this directory"
    )
    which.add_argument("--resume", metavar="ID", help="the session with this id, or its first letters")
    group.add_argument("--mode", metavar="ID", help="the agent's mode")
    group.add_argument("--model", metavar="ID", help="the agent's model")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], type=pair, help="one of the agent's settings"
    )


def add_permissions(parser: argparse.ArgumentParser) -> None:
    """Add the options about permission."""
    group = parser.add_argument_group("permission")
    what = {
        "allow": "allow this without asking, such as 'Bash(git *)'",
        "deny": "never allow this; deny beats ask beats allow",
        "ask": "always ask about this",
    }
    for verb, help in what.items():
        group.add_argument(f"--{verb}", metavar="RULE", action="append", default=[], help=help)
    group.add_argument(
        "--permission-mode", metavar="MODE", choices=MODES, help=f"what to do where no rule applies: {', '.join(MODES)}"
    )
    group.add_argument(
        "--on-ask",
        choices=ON_ASK,
        help="answer permission requests without asking: deny, fail or allow (default: ask; deny without a terminal)",
    )


def add_problems(parser: argparse.ArgumentParser) -> None:
    """Add the options about problems."""
    group = parser.add_argument_group("problems")
    group.add_argument(
        "--max-retries", metavar="N", type=count, help="how often to retry if the agent is lost or slow (default: 4)"
    )
    group.add_argument("-v", "--verbose", action="store_true", help="also write the log to stderr")


def pair(text: str) -> tuple[str, str]:
    """Return the key and value of `key=value`."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is not a setting: write `key=value`")
    return key, value


def working_directory(options: Options) -> str:
    """Return the directory to work in. A whole path for a remote agent is one of its machine, and not looked for here.

    Raises:
        Misused: there is no such directory.
    """
    cwd = os.path.abspath(os.path.expanduser(options.cwd or os.getcwd()))
    for folder in (options.cwd or cwd, *options.add_dir):
        if options.is_remote and os.path.isabs(folder):
            continue
        if not os.path.isdir(os.path.expanduser(folder)):
            raise Misused(f"there is no directory `{folder}`")
    return cwd
