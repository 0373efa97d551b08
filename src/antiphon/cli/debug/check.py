"""`antiphon check` and `antiphon check-client`: their arguments, and what they start."""

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon.cli.arguments import Parser, add_token, duration, number_from, shown_time
from antiphon.cli.outcome import Misused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from antiphon.conformance.agent_check import Waits
    from antiphon.conformance.requirements import Suite
    from antiphon.conformance.results import ConformanceReport, ScenarioRecord

__all__ = ["client_parser", "parser", "run", "run_client"]

SILENCE: Final = 0.25
"""Seconds of a silence, by default."""

EPILOG: Final = """\
The agent is started for about a dozen scenarios; the others share one process. Each works in an empty directory. The built-in prompts
are for an agent with a model; --show-prompts prints a file to change them. An agent without a model needs no such file: what it never
does is reported as never seen, not as wrong.

--url checks an agent on a network, and the server in front of it: by the requirements of WebSocket (ws, wss, unix) or of streamable
HTTP (http, https). Scenarios that need a process, lines on stdin or, on another machine, files of this one are left out; the report
names them. --cwd is a directory where the agent runs. The agent reads and runs nothing on this machine but what the check names.

  antiphon check -- my-agent --acp
  antiphon check --prompts prompts.toml --junit report.xml --badge acp.svg -- my-agent
  antiphon check demo
  antiphon check --protocol 2 -- my-agent
  antiphon check --url wss://host/acp --token-file ~/.token --cwd /srv/work

exit status: 0 no MUST was broken (with --strict: no SHOULD either, and everything was seen), 1 something was broken, 2 wrong arguments.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon check",
        usage="antiphon check [OPTIONS] AGENT\n       antiphon check [OPTIONS] -- CMD …\n       antiphon check [OPTIONS] --url URL",
        description="Test an agent's conformance: report which MUST, SHOULD and advertised behaviours it breaks.",
        epilog=EPILOG,
    )
    top.add_argument(
        "command", metavar="CMD", nargs="*", help="the name of a known agent, or the command that starts one"
    )
    top.add_argument("--url", metavar="URL", help="the address of an agent, as in wss://host/acp, in place of CMD")
    add_token(top)
    top.add_argument("--cwd", metavar="DIR", help="the directory to work in, where the agent of URL runs")
    top.add_argument("--prompts", metavar="FILE", type=Path, help="prompts that make the agent do something (TOML)")
    top.add_argument("--show-prompts", action="store_true", help="print such a file to start from")
    top.add_argument("--auth", metavar="METHOD", help="sign in with this method of the agent, if it asks for it")
    add_protocol(top)
    add_reports(top)
    return top


def add_protocol(top: argparse.ArgumentParser) -> None:
    """Add the option that names the version of the protocol."""
    top.add_argument(
        "--protocol", type=_version, metavar="1|2", default=1, help="the version of the protocol to check (default: 1)"
    )


def _version(value: str) -> int:
    if value not in ("1", "2"):
        raise argparse.ArgumentTypeError(f"there is no version {value!r} of the protocol to check: it is 1 or 2")
    return int(value)


def add_reports(top: argparse.ArgumentParser) -> None:
    """Add the options that `check` and `check-client` share."""
    top.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="only this scenario, requirement or row of the table; repeatable",
    )
    top.add_argument("--list", action="store_true", help="list the requirements and the scenarios that show them")
    top.add_argument("--all", action="store_true", help="also show what passed")
    top.add_argument("--json", action="store_true", help="the report as one JSON object")
    top.add_argument("--junit", metavar="FILE", type=Path, help="also write the report as JUnit XML")
    top.add_argument("--badge", metavar="FILE", type=Path, help="also write a badge (SVG)")
    top.add_argument(
        "--record", metavar="DIR", type=Path, help="record the traffic of each scenario, for `antiphon inspect`"
    )
    top.add_argument("--strict", action="store_true", help="fail if a SHOULD is broken or something was never seen")
    top.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="how long a response may take (default: 30s, the first one 60s)",
    )
    top.add_argument(
        "--patience",
        metavar="TIME",
        type=duration,
        default=SILENCE,
        help=f"how long nothing must arrive to count as silence (default: {shown_time(SILENCE)})",
    )
    top.add_argument(
        "--jobs", metavar="N", type=number_from(1), default=4, help="how many to start at once (default: 4)"
    )


def run(arguments: list[str]) -> int:
    """Check an agent and report."""
    from antiphon.cli.debug import check_run as doing

    before, command = doing.split(arguments)
    options = doing.parsed(parser(), before)
    words = [*options.command, *command]
    doing.check_numbers(options)
    suite = _agent_suite(options)
    if options.show_prompts:
        return doing.show_prompts()
    if options.list:
        listed = suite if options.url is None else doing.suite_with_server(suite, options.url)
        return doing.show_requirements(listed, as_json=options.json)
    _check_url(options, words)
    from antiphon.conformance.agent_check import check_agent
    from antiphon.conformance.agent_run import LIMIT, START, CheckOptions

    prompts, auth = doing.prompts_of(options, words)
    limit = LIMIT if options.timeout is None else options.timeout
    settings = CheckOptions(
        prompts, auth, limit, options.patience, START if options.timeout is None else limit, bool(options.auth)
    )
    if options.url is not None:
        return doing.remote_check(options, settings, suite)
    agent = doing.agent_command(words, named=not command)

    def check(
        only: "Sequence[str]", progress: "Callable[[ScenarioRecord], None]", waits: "Waits"
    ) -> "Coroutine[None, None, ConformanceReport]":
        return check_agent(agent, settings, suite=suite, only=only, jobs=options.jobs, progress=progress, waits=waits)

    return doing.reported(check, suite, options, words)


def _agent_suite(options: argparse.Namespace) -> "Suite[Any]":
    """Return the suite of the version that was named."""
    if options.protocol == 1:
        from antiphon.conformance.suites.agent import SUITE

        return SUITE
    from antiphon.conformance.suites.agent_v2 import SUITE_V2

    return SUITE_V2


def _check_url(options: argparse.Namespace, words: list[str]) -> None:
    """Raise `Misused` unless there is one agent: a command, a name or an address."""
    if options.url is None and (options.token_file is not None or options.plaintext or options.cwd is not None):
        raise Misused("`--token-file`, `--plaintext` and `--cwd` are for `--url`")
    if options.url is None and not words:
        raise Misused("there is no agent to check: name one, give its command after `--`, or its address with `--url`")
    if options.url is not None and words:
        raise Misused("there are two agents to check: an address and a command", hint="leave one of them away")


# --- `antiphon check-client` -----------------------------------------------------------------------------------------

CLIENT_EPILOG: Final = """\
{agent} in CMD is replaced by the path of the agent that the client has to start. CMD has to make the client open a session, send any
prompt, and exit when the turn has ended. It is started about twenty times, each time in an empty directory ({cwd}).

Other abilities (cancel a turn, load a session, deny permission) need commands of their own, in a file: --show-commands prints one to
start from. Without them they are reported as never seen, not as wrong.

With {url} in place of {agent} a client of the remote profiles is checked: {url} is the address of a server of the check on this machine,
once for streamable HTTP and once for WebSocket, and {token} a token that the client may send there.

  antiphon check-client -- my-client --agent {agent} "hello"
  antiphon check-client --commands commands.toml --junit report.xml -- my-client --agent {agent} "hello"
  antiphon check-client --protocol 2 -- my-client --agent {agent} "hello"
  antiphon check-client -- my-client --url {url} --token {token} "hello"

exit status: 0 no MUST was broken (with --strict: no SHOULD either, and everything was seen), 1 something was broken, 2 wrong arguments.
"""


def client_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon check-client",
        usage="antiphon check-client [OPTIONS] -- CMD … {agent} …\n       antiphon check-client [OPTIONS] -- CMD … {url} …",
        description="Test a client's conformance: what it must and should do, and what it advertises, each shown by a scenario.",
        epilog=CLIENT_EPILOG,
    )
    top.add_argument("command", metavar="CMD", nargs="*", help="the command that makes the client send a prompt")
    top.add_argument(
        "--commands", metavar="FILE", type=Path, help="commands that make the client do other things (TOML)"
    )
    top.add_argument("--show-commands", action="store_true", help="print such a file to start from")
    top.add_argument("--remote", action="store_true", help="with --list: the requirements of clients with {url}")
    add_protocol(top)
    add_reports(top)
    return top


def run_client(arguments: list[str]) -> int:
    """Check a client and report."""
    from antiphon.cli.debug import check_run as doing

    before, command = doing.split(arguments)
    options = doing.parsed(client_parser(), before)
    words = [*options.command, *command]
    doing.check_numbers(options)
    if options.show_commands:
        return _show_commands(options.protocol)
    if options.list:
        return doing.show_requirements(_client_suite(options, remote=options.remote), as_json=options.json)
    if not words:
        raise Misused("there is no client to check: give its command after `--`, with {agent} or {url} in it")
    from antiphon.conformance.agent_run import LIMIT
    from antiphon.conformance.client_check import check_client
    from antiphon.conformance.client_process import ClientCommands
    from antiphon.conformance.client_run import ClientCheckOptions

    remote = any("{url}" in word for word in words)
    suite = _client_suite(options, remote=remote)
    agent = ClientCommands.of(words, options.commands, target="{url}" if remote else "{agent}")
    if "{" not in words[0] and shutil.which(words[0]) is None:
        raise Misused(f"cannot start `{words[0]}`: no such program", hint="install it, or give its full path")
    settings = ClientCheckOptions(limit=options.timeout or LIMIT, silence=options.patience)

    def check(
        only: "Sequence[str]", progress: "Callable[[ScenarioRecord], None]", _: object
    ) -> "Coroutine[None, None, ConformanceReport]":
        if remote:
            from antiphon.conformance.remote.client_check import check_remote_client

            return check_remote_client(agent, settings, only=only, jobs=options.jobs, progress=progress)
        return check_client(agent, settings, suite=suite, only=only, jobs=options.jobs, progress=progress)

    return doing.reported(check, suite, options, words)


def _client_suite(options: argparse.Namespace, *, remote: bool) -> "Suite[Any]":
    """Return the suite of the version that was named, for clients that start their agent, or for those that connect to it."""
    if remote and options.protocol != 1:
        raise Misused("`--protocol 2` is for clients that start {agent}", hint="leave {url} and `--remote` away")
    if remote:
        from antiphon.conformance.suites.remote_client import REMOTE_CLIENT_SUITE

        return REMOTE_CLIENT_SUITE
    if options.protocol != 1:
        from antiphon.conformance.suites.client_v2 import CLIENT_SUITE_V2

        return CLIENT_SUITE_V2
    from antiphon.conformance.suites.client import SUITE

    return SUITE


def _show_commands(version: int) -> int:
    """Print a file of commands to start from."""
    from antiphon.conformance.client_process import CLIENT_PURPOSES, CLIENT_PURPOSES_V2

    lines = [
        "# What makes the client do each of these: a command with {agent} in it, or a list of commands that are run in turn."
    ]
    for name, what in (CLIENT_PURPOSES if version == 1 else CLIENT_PURPOSES_V2).items():
        if name != "prompt":
            lines += [f"\n# {what}", f"# {name} = 'my-client --agent {{agent}} …'"]
    lines += ["\n# What is typed, and the signal that makes it cancel.", "[stdin]", "[signal]", '# cancel = "INT"']
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
