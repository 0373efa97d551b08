"""Signing in: the user chooses a way, and what has to run in this terminal is shown before it is run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from antiphon.catalogue.known import keys_for
from antiphon.config.environment import environment_for
from antiphon.protocol import v1
from antiphon.tui.painter import one_line
from antiphon.tui.panels import CommandPanel, MenuPanel, Panel

__all__ = ["choose_login"]

Show = Callable[[Panel], Awaitable[None]]
RunInTerminal = Callable[[list[str], dict[str, str]], Awaitable[int]]
Say = Callable[[str], None]


async def choose_login(
    methods: Sequence[v1.AuthMethod],
    command: Sequence[str],
    show: Show,
    run: RunInTerminal,
    say: Say,
    title: str = "",
) -> str | None:
    """Let the user choose a login method, run it if it needs this terminal, and return its id; None if there is none."""
    if not methods:
        say("The agent wants a login and offers no way to do it here: sign in with its own program first.")
        return None
    menu = MenuPanel(title or "The agent wants you to sign in", [_row(method) for method in methods])
    await show(menu)
    chosen = next((method for method in methods if _id(method) == menu.answer), None)
    if chosen is None or menu.answer is None:
        return None
    if isinstance(chosen, v1.EnvVarAuth):
        names = ", ".join(str(each.get("name", "?")) for each in chosen.vars if isinstance(each, dict))
        say(f"Set {names or 'what it needs'} in the environment and start the chat again.")
        return None
    program = _program(chosen, command)
    if program is not None:
        words, extra = program
        asked = CommandPanel("To sign in, the agent wants this command to be run in your terminal", words, extra)
        await show(asked)
        if not asked.answer:
            say("The login was not started.")
            return None
        try:
            status = await run(words, environment_for(keys_for(command), own=extra))
        except OSError as error:
            say(f"The login could not be started: {error.strerror or error}")
            return None
        if status:
            say(f"The login ended with {status}.")
            return None
    return menu.answer


def _program(method: v1.AuthMethod, command: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the command of a login in the terminal. Some agents send it in `_meta` of a plain method."""
    if isinstance(method, v1.TerminalAuth):
        return [*command, *method.args], method.env
    meta = getattr(method, "meta", None)
    login = meta.get("terminal-auth") if isinstance(meta, Mapping) else None
    if not isinstance(login, Mapping) or not isinstance(login.get("command"), str):
        return None
    words, env = login.get("args") or [], login.get("env") or {}
    if not isinstance(words, list) or not isinstance(env, Mapping):
        return None
    return [login["command"], *map(str, words)], {str(name): str(value) for name, value in env.items()}


def _id(method: v1.AuthMethod) -> str | None:
    return None if isinstance(method, v1.Unknown) else method.id


def _row(method: v1.AuthMethod) -> tuple[str, str, str | None]:
    if isinstance(method, v1.Unknown):
        return "", f"[{method.kind}]", None
    return method.id, one_line(method.name), method.description
