"""`antiphon chat`: read the arguments, start the agent, and run the chat of `antiphon.tui`."""

import argparse
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from antiphon.cli.arguments import (
    Options,
    Parser,
    add_agent,
    add_permissions,
    add_problems,
    add_session,
    working_directory,
)
from antiphon.cli.outcome import CANCELLED, Misused, coloured, fail, kind_of, leave_closed_terminal, status_of
from antiphon.errors import AcpError, ExtraMissing, sentence_and_hint

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession
    from antiphon.client.updates import OnUpdate
    from antiphon.tui.chat import ChatFrontend, Open, StartedAgent

__all__ = ["parser", "run"]

EPILOG = """\
Enter sends, Alt-Enter begins a new line, Tab completes /commands and @paths, Ctrl-C cancels what runs, Ctrl-D leaves. /help in the
chat lists the rest. Without a terminal, use `antiphon run`.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of `antiphon chat`."""
    words = Parser(
        prog="antiphon chat",
        description="Chat with an agent in the terminal, in this directory.",
        epilog=EPILOG,
    )
    words.add_argument("who", metavar="AGENT", nargs="?", help="the same as --agent AGENT")
    add_agent(words)
    add_session(words)
    add_permissions(words)
    add_problems(words)
    return words


def run(arguments: list[str]) -> int:
    """Chat until the user leaves, and return the exit status."""
    options = Options.read(parser(), arguments)
    agent_name: str | None = getattr(options, "who", None)
    if agent_name is not None and options.agent is not None:
        raise Misused(f"two agents were named: `{agent_name}` and `{options.agent}`")
    if agent_name is not None:
        _check_agent(agent_name)
    options.agent = agent_name or options.agent
    cwd = working_directory(options)
    _check_terminal()
    _check_packages()
    return _chat(options, cwd)


def _check_agent(agent_name: str) -> None:
    """Raise `Misused` for a prompt where an agent is expected: other programs take a prompt there."""
    import shutil

    program = agent_name.split()[0] if agent_name.split() else ""
    if " " in agent_name.strip() and shutil.which(os.path.expanduser(program)) is None:
        from antiphon.catalogue.agents import names, user_settings

        if agent_name not in names(user_settings()):
            raise Misused(
                f"`{agent_name}` is neither an agent nor a command that can be started",
                hint="`antiphon chat AGENT` chooses the agent, and the prompt is typed in the chat; "
                f"`antiphon run {shlex.quote(agent_name)}` sends one prompt",
            )


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AcpError("a chat needs a terminal", hint='use `antiphon run "…"` in scripts and pipes')
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        raise AcpError(
            "this terminal cannot move its cursor (TERM is not set, or `dumb`)", hint='use `antiphon run "…"`'
        )


def _check_packages() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("prompt_toolkit", "rich") if find_spec(name) is None]
    if missing:
        raise ExtraMissing(
            f"the chat needs {' and '.join(missing)}", hint="pip install 'antiphon[chat]', or use `antiphon run`"
        )


def _chat(options: Options, cwd: str) -> int:
    from antiphon.transports import guard

    guard.prepare()  # before the rest is loaded, so that it is ready when the agent is started
    import asyncio

    from antiphon.cli.logs import logging_to_file
    from antiphon.config.directories import state_dir
    from antiphon.tui.chat import Chat

    async def run_chat() -> Chat:
        chat = Chat(_opener(options, cwd), state_dir() / "chat_history", cwd, colour=coloured(sys.stdout))
        await chat.run()
        return chat

    # Not on stderr as well: that is the screen.
    with logging_to_file(verbose=False):
        chat = asyncio.run(run_chat())
    if leave_closed_terminal():
        return CANCELLED
    if chat.failure is not None:
        sentence, hint = sentence_and_hint(chat.failure)
        status, kind = status_of(chat.failure), kind_of(chat.failure)
        return fail(sentence, hint or "`antiphon agents` lists what is installed", status, kind)
    if (resume_hint := chat.resume_hint) is not None:
        sys.stderr.write(f"\n{resume_hint}{_same_place(options)}\n")
    return 0


def _same_place(options: Options) -> str:
    """Return the options that make another command use the same agent and directory."""
    from shlex import quote

    agent = f" --agent {quote(options.agent)}" if options.agent else ""
    agent += f" --token-file {quote(options.token_file)}" if options.token_file else ""
    return f"{agent} --cwd {quote(options.cwd)}" if options.cwd else agent


def _opener(options: Options, cwd: str) -> "Open":
    from antiphon.catalogue.known import DEMO
    from antiphon.cli.run.session import keep_name, open_session, reopen
    from antiphon.client.launch import Frontend, RunningAgent, launch
    from antiphon.config.shapes import CHAT
    from antiphon.tui.chat import StartedAgent

    def ways(running: RunningAgent, in_use: "Callable[[ClientSession], ClientSession]") -> "StartedAgent":
        async def first(on_update: "OnUpdate") -> "ClientSession":
            return in_use((await open_session(running, options, on_update=on_update, replay=True)).session)

        async def load(session_id: str, on_update: "OnUpdate") -> "ClientSession":
            session = (await reopen(running, options, session_id, on_update=on_update, replay=True)).session
            await keep_name(running, "", session.id)
            return in_use(session)

        async def new(on_update: "OnUpdate") -> "ClientSession":
            return in_use((await open_session(running, _plain(options), on_update=on_update)).session)

        demo = running.name == DEMO and options.agent is None
        hint = "The demo answers, which has no model: `antiphon agents` lists the others." if demo else ""
        return StartedAgent(running.agent, running.gate, first, new, load, hint, running.command)

    @asynccontextmanager
    async def opened(attending: "ChatFrontend") -> AsyncIterator["StartedAgent"]:
        frontend = Frontend(
            client=CHAT,
            ask=attending.ask,
            elicitation=attending.elicitation,
            authenticate=attending.authenticate,
            terminal_login=True,
            terminals=attending.terminals,
            refused=attending.refused,
            warn=lambda advice: attending.warn(str(advice)),
        )
        last: list[ClientSession] = []

        def in_use(session: "ClientSession") -> "ClientSession":
            last[:] = [session]
            return session

        async with launch(options.launch_options(), cwd, frontend) as running:
            try:
                yield ways(running, in_use)
            finally:
                if (
                    last and last[0].transcript.entries
                ):  # this session was used last, whatever other processes do meanwhile
                    await keep_name(running, "", last[0].id)

    return opened


def _plain(options: Options) -> Options:
    """Return the options without those that name an earlier session."""
    plain = Options(**vars(options))
    plain.session, plain.continue_last, plain.resume = None, False, None
    return plain
