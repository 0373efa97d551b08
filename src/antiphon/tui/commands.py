"""The commands of the chat itself. Any other `/word` goes to the agent, and `//word` always does."""

import base64
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.client.agent import SHORTEST, find_session, is_script, shortened
from antiphon.client.launch import mode_in_force
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.transcript.entries import Message
from antiphon.transcript.presentation import changes_of
from antiphon.tui.line.actions import unknown_command
from antiphon.tui.output.diff import file_texts, indented
from antiphon.tui.output.session_diff import change_texts
from antiphon.tui.painter import one_line
from antiphon.tui.status import (
    Offered,
    change_mode,
    models_of,
    modes_of,
    permission_modes,
    shares_modes,
    values_in,
)

if TYPE_CHECKING:
    from antiphon.tui.chat import Chat

__all__ = ["COMMANDS", "ChatCommand", "find", "prepare_values", "values_of"]

OUTPUTS: Final = 50
"""Outputs that `/output` lists, the newest first."""

SESSIONS: Final = 20
"""Sessions that `/sessions` lists, the newest first."""

NO_SCRIPTS: Final = "--no-scripts"
"""Leaves out the sessions that scripts made, as in `antiphon sessions --no-scripts`."""

KEYS: Final = (
    ("Enter, Alt-Enter", "send; begin a new line"),
    ("@file, Tab", "attach a file; complete"),
    ("Shift-Tab", "next mode: ask, edit, plan"),
    ("!command, @!", "run it; hand on its output"),
    ("Up, Down, Ctrl-R", "earlier input; search in it"),
    ("Esc Esc", "go back to an earlier prompt"),
    ("Ctrl-O", "the rest of the last output"),
    ("Ctrl-G, Ctrl-V", "your editor; paste an image"),
    ("Ctrl-C, Ctrl-D", "cancel what runs; leave"),
    ("Ctrl-J, `\\` Enter", "begin a new line"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "back to the shell, `fg` returns"),
)


PLAIN_KEYS: Final = (
    ("Enter, `\\` Enter", "send; begin a new line"),
    ("@file", "attach a file, by its path"),
    ("!command, @!", "run it; hand on its output"),
    ("/undo", "go back to an earlier prompt"),
    ("/output", "the rest of an output"),
    ("Ctrl-C, Ctrl-D", "cancel what runs; leave"),
)
"""What works where only lines are typed."""

FIRST_KEYS: Final = 9
"""Keys that the first page of the help has."""

COMMAND_ROWS: Final = 2
"""Rows with commands of the agent on the first page of the help."""


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A command of the chat. `waits`: only between turns. `needs_session`: only with an open session."""

    name: str
    usage: str
    about: str
    do: "Callable[[Chat, str], Awaitable[None]]"
    waits: bool = False
    needs_session: bool = True
    picks: bool = False
    """Without anything behind it, the user picks what may follow from a list."""


def find(text: str) -> ChatCommand | None:
    """Return the command of the chat in a line; None if it is for the agent."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return COMMANDS.get(word[1:]) if word.startswith("/") else None


def values_of(chat: "Chat", command: str) -> Iterator[tuple[str, str]]:
    """Return the values that may follow a command, with descriptions."""
    if not chat.opened:
        return
    match command:
        case "mode":
            known = modes_of(chat.session)
            theirs = {id for id, _, _ in known}
            ours = [each for each in permission_modes(chat.session, chat.gate) if each[0] not in theirs]
            yield from _marked([*known, *ours])
        case "model":
            yield from _marked(models_of(chat.session))
        case "set":
            for option in chat.session.config_options or ():
                if isinstance(option, v1.ConfigBase):
                    yield option.id, option.description or option.name
        case "load":
            ids = shortened([info.session_id for info in chat.listed])
            yield from ((ids[info.session_id], _about_session(info)) for info in chat.listed)
        case _:
            return


def _marked(offered: Offered) -> Iterator[tuple[str, str]]:
    """Mark the one in force."""
    yield from ((id, f"▸ {about}" if current else about) for id, current, about in offered)


def _about_session(info: v1.SessionInfo) -> str:
    return f"{_local_time(info.updated_at or '')}  {one_line(info.title or '') or '-'}{'  script' if is_script(info) else ''}"


def _local_time(stored: str) -> str:
    """Return a time of the protocol, which has a zone, as the user's clock shows it."""
    try:
        return f"{datetime.fromisoformat(stored).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return stored[:16].replace("T", " ")


async def prepare_values(chat: "Chat", command: str) -> None:
    """Ask the agent for the values of a command that are not known yet."""
    if command == "load":
        chat.listed = await _sessions(chat)


async def show_help(chat: "Chat", rest: str) -> None:
    """Show the most important of everything on one screen, or one subject: keys, commands, those of the agent, one command."""
    word = rest.strip().lstrip("/")
    theirs = list(chat.session.commands or ())
    keys = KEYS if chat.window.has_keys else PLAIN_KEYS
    ours = [(f"/{own.name} {own.usage}".strip(), own.about) for own in COMMANDS.values()]
    hints = [
        (one_line(f"{'//' if each.name in COMMANDS else '/'}{each.name}{_hint(each)}"), one_line(each.description))
        for each in theirs
    ]
    match word:
        case "":
            names = [each.name for each in theirs]
            first = keys[:FIRST_KEYS]
            chat.note(_overview(chat.agent.name, names, chat.screen.painter.width, first))
        case "keys":
            chat.note([Text("Keys", "bold"), *(_row(*key) for key in keys)])
        case "commands":
            chat.note([Text("Commands", "bold"), *(_row(*row) for row in ours)])
        case "agent":
            title = Text(f"Commands of {one_line(chat.agent.name)}", "bold")
            chat.note([title, *(_row(*row) for row in hints)] if hints else "This agent has no commands.")
        case _:
            found = [row for row in (*ours, *hints) if row[0].split()[0].lstrip("/") == word]
            if not found and (unknown := unknown_command(f"/{word}", lambda: list(COMMANDS), theirs)) is not None:
                raise unknown
            chat.note([_row(*row) for row in found])


def _overview(agent: str, theirs: list[str], width: int, keys: Sequence[tuple[str, str]]) -> list[RenderableType]:
    """Return the help on one screen, also of 24 lines and 50 columns."""
    rows: list[RenderableType] = [Text("Keys", "bold"), *(_short_row(*key) for key in keys), Text()]
    rows += [Text("Commands", "bold"), Padding(Text("  ".join(f"/{name}" for name in COMMANDS), "key"), (0, 0, 0, 2))]
    if theirs:
        rows.append(Text(f"Commands of {one_line(agent)}", "bold"))
        rows += _name_rows([f"{'//' if name in COMMANDS else '/'}{one_line(name)}" for name in theirs], width - 2)
    subjects = [Text(word, "key") for word in ("/help keys", "commands", "agent", "NAME")]
    rows += [Text(), Text(", ").join(subjects).append(": more about it")]
    return rows


def _name_rows(names: list[str], width: int) -> list[Text]:
    """Return as many names as fit into a few rows, and how many there are besides."""
    more = f"… {len(names)} more"
    rows = [Text("  ", no_wrap=True, overflow="ellipsis")]
    for number, name in enumerate(names):
        is_last = len(rows) == COMMAND_ROWS
        room = width - (len(more) + 2 if is_last and number + 1 < len(names) else 0)
        if rows[-1].cell_len + len(name) > room:
            if is_last:
                rows[-1].append(f"… {len(names) - number} more", "dim")
                break
            rows.append(Text("  ", no_wrap=True, overflow="ellipsis"))
        rows[-1].append(f"{name}  ", "key")
    return rows


def _short_row(left: str, right: str) -> Text:
    return Text.assemble("  ", (f"{left:<16}", "key"), "  ", right, no_wrap=True, overflow="ellipsis")


def _hint(command: v1.Command) -> str:
    return f" {command.input.hint}" if command.input is not None else ""


async def login(chat: "Chat", rest: str) -> None:
    """Sign in."""
    await chat.start.sign_in("Sign in")


def _row(left: str, right: str) -> RenderableType:
    if len(left) > 22:
        return Text.assemble("  ", left, "  ", (right, "dim"))
    return Text.assemble("  ", f"{left:<22}", "  ", (right, "dim"))


async def set_mode(chat: "Chat", rest: str) -> None:
    """Show the modes, or change the mode. Modes of the agent and the policy with the same names are one list."""
    wanted, gate = rest.strip(), chat.gate
    if not wanted:
        theirs, ours = modes_of(chat.session), permission_modes(chat.session, gate)
        if shares_modes(chat.session):
            force = mode_in_force(chat.session, gate.mode).value
            chat.note(_choices("Modes", [(id, id == force, about) for id, _, about in [*theirs, *ours]]))
        else:
            rows = [*_choices(f"Modes of {chat.agent.name}", theirs), Text()] if theirs else []
            chat.note([*rows, *_choices("Permission", ours)])
        return
    chat.note(await change_mode(chat.session, gate, wanted))


async def set_model(chat: "Chat", rest: str) -> None:
    """Show the models, or change to one."""
    wanted, models = rest.strip(), models_of(chat.session)
    if not wanted:
        chat.note(_choices("Models", models) if models else "This agent has no choice of models.")
        return
    model = _one_of(wanted, [id for id, _, _ in models], "model")
    await chat.session.set_model(model)
    chat.note(f"model: {model}")


async def set_option(chat: "Chat", rest: str) -> None:
    """Show the settings, or change one."""
    options = [option for option in chat.session.config_options or () if isinstance(option, v1.ConfigBase)]
    key, _, value = rest.strip().partition(" ")
    if not key:
        chat.note([_setting(option) for option in options] or "This agent has no settings.")
        return
    option = next((each for each in options if each.id == _one_of(key, [each.id for each in options], "setting")), None)
    if not value.strip() and option is not None:
        chat.note([_setting(option)])
        return
    new: str | bool = value.strip()
    if isinstance(option, v1.BooleanConfig):
        new = str(new).lower() in ("on", "true", "yes", "y", "1")
    elif isinstance(option, v1.SelectConfig):
        new = _one_of(value.strip(), [each.value for each in values_in(option)], f"value of `{key}`")
    await chat.session.set_config_option(key, new)
    chat.note(f"{key}: {value.strip()}")


def _setting(option: v1.ConfigBase) -> RenderableType:
    current = getattr(option, "current_value", "")
    shown = ("on" if current else "off") if isinstance(current, bool) else str(current)
    others = "on, off" if isinstance(option, v1.BooleanConfig) else ""
    if isinstance(option, v1.SelectConfig):
        others = ", ".join(each.value for each in values_in(option))
    return Text.assemble(
        "  ", f"{option.id:<16}", (f"{shown:<12}", "bold"), (f"  {one_line(option.name)}: {one_line(others)}", "dim")
    )


async def list_sessions(chat: "Chat", rest: str) -> None:
    """List the sessions of this directory with numbers and ids, with or without those of scripts."""
    words = rest.split()
    if unknown := [word for word in words if word != NO_SCRIPTS]:
        raise AcpError(
            f"`/sessions` does not know `{unknown[0]}`", hint=f"/sessions {NO_SCRIPTS} leaves out those of scripts"
        )
    infos = await _sessions(chat)
    if words:
        infos = [info for info in infos if not is_script(info)]
    chat.listed = infos[:SESSIONS]
    ids = shortened([info.session_id for info in infos])
    rows: list[RenderableType] = [Text("Sessions of this directory", "bold")]
    for number, info in enumerate(chat.listed, 1):
        mark = "▸" if info.session_id == chat.session.id else " "
        when = _local_time(info.updated_at or "")
        made = ("  script", "warning") if is_script(info) else ""
        rows.append(
            Text.assemble(
                f"{mark}{number:>3}  ",
                (f"{one_line(ids[info.session_id])}  ", "key"),
                (f"{when:<16}  ", "dim"),
                one_line(info.title or "") or "-",
                made,
                no_wrap=True,
                overflow="ellipsis",
            )
        )
    if len(infos) > SESSIONS:
        rows.append(Text(f"     … {len(infos) - SESSIONS} more", "dim"))
    scripts = any(is_script(info) for info in infos)
    hint = f" /sessions {NO_SCRIPTS} leaves out those of scripts." if scripts else ""
    chat.note(
        [*rows, Text(f"/load NUMBER or /load ID goes there.{hint}", "dim")]
        if chat.listed
        else "There are no sessions of this directory yet."
    )


async def _sessions(chat: "Chat") -> list[v1.SessionInfo]:
    """Return the sessions of this directory, the last used first."""
    infos = [info async for info in chat.agent.list_sessions(chat.session.cwd)]
    return sorted(infos, key=lambda info: info.updated_at or "", reverse=True)


async def load_session(chat: "Chat", rest: str) -> None:
    """Open another session, by its number in the list or the first letters of its id."""
    word = rest.strip()
    if not word or word == NO_SCRIPTS:
        await list_sessions(chat, word)
        return
    if _is_number(word):
        chat.listed = chat.listed or await _sessions(chat)
        if 0 < int(word) <= len(chat.listed):
            await chat.sessions.load(chat.listed[int(word) - 1].session_id)
            return
    found = await find_session(chat.agent, word, chat.session.cwd)
    if found is None and _is_number(word):
        raise AcpError(f"there is no session `{word}`", hint="/sessions lists them")
    await chat.sessions.load(word if found is None else found.session_id)


def _is_number(word: str) -> bool:
    """Whether a word is a number of the list. An id of digits has more of them."""
    return word.isascii() and word.isdigit() and len(word) < SHORTEST


async def new_session(chat: "Chat", rest: str) -> None:
    """Open a new session."""
    await chat.sessions.begin_anew()


async def undo(chat: "Chat", rest: str) -> None:
    """Go back to before an earlier prompt, with the files."""
    await chat.undo.undo(rest)


async def redo(chat: "Chat", rest: str) -> None:
    """Take the last undo back."""
    await chat.undo.redo()


async def show_diff(chat: "Chat", rest: str) -> None:
    """Show all changes of this session, in the pager if they are longer than the screen.

    Where files are not looked at, those that the agent reported are shown.
    """
    seen = await chat.undo.changes()
    rows: list[RenderableType] = change_texts(seen or (), chat.session.cwd)
    for change in changes_of(chat.session.transcript) if seen is None else ():
        head, *lines = file_texts(change.path, change.old, change.new, chat.session.cwd, style="bold")
        rows += [head, *map(indented, lines)]
    if rows:
        chat.viewer.show(rows)
    else:
        chat.note(f"{'The agent has reported' if seen is None else 'There are'} no changes in this session.")


async def show_output(chat: "Chat", rest: str) -> None:
    """List what is shown in part, the newest first, or show one of it whole."""
    outputs = list(islice(chat.viewer.folded(), OUTPUTS))
    number = rest.strip()
    if not number:
        rows: list[RenderableType] = [
            Text.assemble(f"{place:>3}  ", output.title, no_wrap=True, overflow="ellipsis")
            for place, output in enumerate(outputs, 1)
        ]
        newest = ", Ctrl-O the newest" if chat.window.has_keys else ""
        hint = Text(f"/output NUMBER shows it whole{newest}.", "dim")
        chat.note([Text("Folded, the newest first", "bold"), *rows, hint] if rows else "Nothing is folded.")
    elif number.isascii() and number.isdigit() and 0 < int(number) <= len(outputs):
        chat.viewer.show(outputs[int(number) - 1].whole())
    else:
        raise AcpError(f"there is no folded output `{one_line(number)}`", hint="/output lists them")


async def show_usage(chat: "Chat", rest: str) -> None:
    """Show how full the context is, and the cost."""
    usage = chat.session.transcript.usage
    if usage is None:
        chat.note("The agent has not reported any usage yet.")
        return
    percent = f" ({usage.used * 100 // usage.size}%)" if usage.size else ""
    rows: list[RenderableType] = [Text(f"context  {usage.used:,} of {usage.size:,} tokens{percent}")]
    if usage.cost is not None:
        rows.append(Text(f"cost     {usage.cost.amount:.4f} {one_line(usage.cost.currency)}"))
    chat.note(rows)


async def copy(chat: "Chat", rest: str) -> None:
    """Copy the agent's last message with an escape sequence that most terminals support, also over ssh."""
    for entry in reversed(chat.session.transcript.entries):
        if isinstance(entry, Message) and entry.speaker == "agent" and entry.text.strip():
            chat.window.write(f"\x1b]52;c;{base64.b64encode(entry.text.encode()).decode()}\x07")
            chat.note(f"Copied {len(entry.text)} characters, if this terminal lets programs do that.")
            return
    chat.note("There is nothing to copy yet.")


async def clear(chat: "Chat", rest: str) -> None:
    """Clear the screen; the session continues."""
    chat.window.clear()


async def leave(chat: "Chat", rest: str) -> None:
    """Leave the chat."""
    chat.leave()


def _choices(title: str, choices: Offered) -> list[RenderableType]:
    rows: list[RenderableType] = [Text(title, "bold")]
    return rows + [
        Text.assemble("▸ " if current else "  ", (f"{id:<20}", "bold" if current else ""), "  ", (about, "dim"))
        for id, current, about in choices
    ]


def _one_of(word: str, ids: list[str], what: str) -> str:
    """Return the id that begins with a word, if there is only one.

    Raises:
        AcpError: there is no such session.
    """
    if word in ids or not ids:
        return word
    meant = [id for id in ids if id.lower().startswith(word.lower())]
    if len(meant) == 1:
        return meant[0]
    raise AcpError(f"there is no {what} `{word}`", hint=f"there are {', '.join(ids)}")


COMMANDS: Final = {
    own.name: own
    for own in (
        ChatCommand("help", "[SUBJECT]", "keys and commands", show_help),
        ChatCommand("mode", "[ID]", "pick a mode, or change to one", set_mode, picks=True),
        ChatCommand("model", "[ID]", "pick a model, or change to one", set_model, picks=True),
        ChatCommand("set", "[KEY [VALUE]]", "show the settings, or change one", set_option),
        ChatCommand("sessions", f"[{NO_SCRIPTS}]", "the sessions of this directory", list_sessions),
        ChatCommand("load", "[NUMBER|ID]", "go to another session", load_session, waits=True, picks=True),
        ChatCommand("new", "", "begin a new session", new_session, waits=True),
        ChatCommand("undo", "[N]", "go back to an earlier prompt, files too", undo, waits=True),
        ChatCommand("redo", "", "take the last undo back", redo, waits=True),
        ChatCommand("diff", "", "all changes of this session", show_diff),
        ChatCommand("output", "[NUMBER]", "what is shown in part, or one of it whole", show_output),
        ChatCommand("usage", "", "how full the context is", show_usage),
        ChatCommand("copy", "", "copy the agent's last message", copy),
        ChatCommand("login", "", "sign in", login),
        ChatCommand("clear", "", "clear the screen", clear, needs_session=False),
        ChatCommand("exit", "", "leave", leave, needs_session=False),
    )
}
