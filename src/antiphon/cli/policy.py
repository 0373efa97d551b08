"""`antiphon policy`: what would be decided and why, what is remembered, what was decided, and which projects are trusted."""

import argparse
import asyncio
from typing import Final

from antiphon.cli.arguments import MODES, Misused, Options, Parser, count

__all__ = ["parser", "run"]

EXPLAIN: Final = """\
Print `allow`, `deny` or `ask`, then the rule that gave it and why. Counts the rules given here, the config files and what is remembered
for this project, as `antiphon run` would.

INPUT: for Bash the command line, for Edit, Read and the like a path, for WebFetch an address, for others their input as JSON.

  antiphon policy explain --allow 'Bash(git *)' Bash 'git status; rm -rf /'
  antiphon policy explain --mode acceptEdits Edit src/main.py
  antiphon policy explain mcp__github__create_issue '{"title": "…"}'
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon policy",
        description="Explain what is allowed and why; list and forget remembered answers; show what was decided.",
    )
    commands = top.add_subparsers(required=True)
    _add_explain(commands)

    listed = commands.add_parser("list", help='what was answered with "always" and still holds')
    listed.add_argument("--json", action="store_true", help="one JSON object per line")

    revoke = commands.add_parser("revoke", help="forget such answers")
    revoke.add_argument("which", metavar="ID|RULE", nargs="?", help="the number that `list` shows, or the rule")
    revoke.add_argument("--all", action="store_true", help="all of them")

    log = commands.add_parser("log", help="what was decided, the latest last")
    log.add_argument("--limit", metavar="N", type=count, default=50, help="how many (default: 50)")
    log.add_argument("--session", metavar="ID", help="only those of this session")
    log.add_argument("--json", action="store_true", help="one JSON object per line")

    trust = commands.add_parser(
        "trust",
        description="Trust what a project says as it is now: its .antiphon/config.toml may loosen the policy, and engines read its "
        "settings, hooks, MCP servers and commands (.claude, .mcp.json, .codex). What changes has to be trusted again.",
        help="let a project loosen the policy and configure engines",
    )
    trust.add_argument("directory", metavar="DIR", nargs="?", default=".", help="in the project (default: this one)")
    trust.add_argument("--list", action="store_true", help="show which projects are trusted instead")

    distrust = commands.add_parser("distrust", help="take that back")
    distrust.add_argument("directory", metavar="DIR", nargs="?", default=".", help="in the project (default: this one)")
    return top


def _add_explain(commands: "argparse._SubParsersAction[Parser]") -> None:
    explain = commands.add_parser(
        "explain",
        usage="antiphon policy explain [OPTIONS] TOOL [INPUT]",
        description=EXPLAIN,
        help="what would be decided about a call, and why",
    )
    explain.add_argument("tool", metavar="TOOL", help="such as Bash, Edit, Read, mcp__server__tool, kind:edit")
    explain.add_argument("input", metavar="INPUT", nargs="?", help="what it would be called with")
    for verb in ("allow", "deny", "ask"):
        explain.add_argument(f"--{verb}", metavar="RULE", action="append", default=[], help=f"{verb} this")
    explain.add_argument(
        "--mode", "--permission-mode", dest="permission_mode", metavar="MODE", choices=MODES, help=", ".join(MODES)
    )
    explain.add_argument("--cwd", metavar="DIR", default=".", help="the session's directory (default: this one)")
    explain.add_argument("--add-dir", metavar="DIR", action="append", default=[], help="one more directory of it")
    explain.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: list[str]) -> int:
    """Do one of these commands."""
    return asyncio.run(_do(parser().parse_args(arguments, namespace=Options())))


async def _do(options: Options) -> int:
    if options.command == "explain":
        from antiphon.cli.policy_explain import explain

        return await explain(options)
    from antiphon.cli import policy_store as store

    match options.command:
        case "list":
            return await store.show_decisions(as_json=options.json)
        case "revoke":
            if (options.which is None) == (not options.all):
                raise Misused("say which answer to forget: its number, its rule, or --all")
            return await store.revoke(options.which)
        case "log":
            return await store.show_log(options.limit, options.session, as_json=options.json)
        case "trust":
            return await (store.show_trusted() if options.list else store.trust(options.directory))
        case _:
            return await store.distrust(options.directory)
