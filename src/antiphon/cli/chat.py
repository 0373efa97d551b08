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
    from antiphon.protocol.base import JsonObject
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
    words.add_argument(
        "words",
        metavar="WORD",
        nargs="*",
        help='an agent, as in --agent, then the first prompt: `chat codex`, `chat codex fix the bug`, `chat "fix the bug"`. Words that do not begin with an agent are a prompt',
    )
    screen = words.add_argument_group("screen")
    screen.add_argument(
        "--plain", action="store_true", help="a conversation by lines, for screen readers: nothing is redrawn"
    )
    screen.add_argument("--no-notify", action="store_true", help="no terminal title, no bell and no notifications")
    add_agent(words)
    add_session(words)
    add_permissions(words)
    add_problems(words)
    return words


def run(arguments: list[str]) -> int:
    """Chat until the user leaves, and return the exit status."""
    options = Options.read(parser(), arguments)
    options.agent, prompt = _agent_and_prompt(getattr(options, "words", None) or [], options.agent)
    cwd = working_directory(options)
    _check_terminal()
    _check_packages()
    return _chat(options, cwd, prompt)


def _agent_and_prompt(words: list[str], agent: str | None) -> tuple[str | None, str]:
    """Return the agent and the first prompt in the words of the command line.

    The first word is an agent if it is the name of one, an address or the path of a program. All other words are the prompt. One word
    alone that is no agent is an error: it may be a misspelt one, and would be sent to a model.

    Raises:
        Misused: two agents are named, or the only word is no agent.
    """
    if not words:
        return agent, ""
    first, rest = words[0], " ".join(words[1:])
    named = _is_agent(first)
    if named and agent is not None:
        raise Misused(f"two agents were named: `{first}` and `{agent}`")
    if named:
        return first, rest
    if agent is not None or rest or " " in first.strip():
        return agent, " ".join(words)
    raise _no_agent(first)


def _is_agent(word: str) -> bool:
    from antiphon.catalogue.agents import names, user_settings

    if "://" in word or (" " not in word and "/" in word and os.access(os.path.expanduser(word), os.X_OK)):
        return True
    return word in names(user_settings())


def _no_agent(word: str) -> Misused:
    from difflib import get_close_matches

    from antiphon.catalogue.agents import names, user_settings

    known = names(user_settings())
    near = get_close_matches(word, known, 1)
    meant = f"did you mean `{near[0]}`? " if near else "`antiphon agents` lists those there are; "
    default = user_settings().agent or "antiphon"
    return Misused(
        f"there is no agent named `{word}`",
        hint=f"{meant}a prompt of one word follows an agent: `antiphon chat {default} {shlex.quote(word)}`",
    )


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AcpError("a chat needs a terminal", hint='use `antiphon run "…"` in scripts and pipes')


def _is_plain(options: Options) -> bool:
    """Whether the chat goes by lines: because the user wants it, or because the terminal cannot move its cursor."""
    return bool(getattr(options, "plain", False)) or os.environ.get("TERM", "dumb") in ("dumb", "unknown")


def _check_packages() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("prompt_toolkit", "rich") if find_spec(name) is None]
    if missing:
        raise ExtraMissing(
            f"the chat needs {' and '.join(missing)}", hint="pip install 'antiphon[chat]', or use `antiphon run`"
        )


def _chat(options: Options, cwd: str, prompt: str) -> int:
    from antiphon.transports import guard

    guard.prepare()  # before the rest is loaded, so that it is ready when the agent is started
    import asyncio

    from antiphon.catalogue.agents import user_settings
    from antiphon.cli.logs import logging_to_file
    from antiphon.config.directories import config_dir, state_dir
    from antiphon.tui.chat import Chat
    from antiphon.tui.display.theme import is_light, load_theme
    from antiphon.tui.painter import Painter

    settings, plain = user_settings().chat, _is_plain(options)
    styles, light = load_theme(settings.theme, config_dir() / "themes"), is_light(settings.theme, os.environ)
    painter = Painter(80, colour=coloured(sys.stdout) and not plain, styles=styles, light=light)

    async def run_chat() -> Chat:
        chat = Chat(
            _opener(options, cwd),
            state_dir() / "chat_history",
            cwd,
            prompt=prompt,
            painter=painter,
            plain=plain,
            notify="off" if getattr(options, "no_notify", False) else settings.notify,
            keys=settings.keys,
            undo=settings.undo,
            images=settings.images,
        )
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
    from antiphon.cli.run.session import fork_session, keep_name, open_session, reopen
    from antiphon.client.launch import Frontend, RunningAgent, launch
    from antiphon.config.shapes import CHAT
    from antiphon.tui.chat import StartedAgent

    def ways(running: RunningAgent, in_use: "Callable[[ClientSession], None]") -> "StartedAgent":
        async def first(on_update: "OnUpdate") -> "ClientSession":
            return (await open_session(running, options, on_update=on_update, replay=True)).session

        async def load(session_id: str, on_update: "OnUpdate") -> "ClientSession":
            session = (await reopen(running, options, session_id, on_update=on_update, replay=True)).session
            await keep_name(running, "", session.id)
            return session

        async def new(on_update: "OnUpdate") -> "ClientSession":
            return (await open_session(running, _plain(options), on_update=on_update)).session

        async def fork(session_id: str, meta: "JsonObject", on_update: "OnUpdate") -> "ClientSession":
            return await fork_session(running, options, session_id, meta, on_update)

        demo = running.name == DEMO and options.agent is None
        hint = "The demo answers, which has no model: `antiphon agents` lists the others." if demo else ""
        return StartedAgent(
            running.agent, running.gate, first, new, load, hint, running.command, fork, bool(running.command), in_use
        )

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

        def in_use(session: "ClientSession") -> None:
            last[:] = [session]

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
