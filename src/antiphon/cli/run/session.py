"""Opens the session that the options name (new, by name, the last, or by id), and applies its settings.

Names are ours, sessions are the agent's. A name whose session the agent has forgotten gets a new session, with a warning for the user.
"""

import os
import re
import shlex
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NoReturn

import msgspec

from antiphon.catalogue.known import OURS
from antiphon.cli.outcome import did_you_mean
from antiphon.client.agent import SHORTEST, find_session
from antiphon.client.launch import follow_agent, keep_agent_to, mode_in_force
from antiphon.config.shapes import APPEND_SYSTEM_PROMPT, MAX_COST, MAX_TOKENS, MAX_TURNS
from antiphon.errors import AcpError, Advice, AuthRequired, Code, NotSupported, RequestRefused, sentence_and_hint
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT
from antiphon.store.errors import StoreError
from antiphon.store.sessions import NameStore
from antiphon.transcript.presentation import antiphon_meta

if TYPE_CHECKING:
    from antiphon.cli.arguments import Options
    from antiphon.client.launch import RunningAgent
    from antiphon.client.session import ClientSession
    from antiphon.client.updates import OnUpdate
    from antiphon.config.shapes import McpServerConfig
    from antiphon.protocol.base import JsonObject

__all__ = [
    "How",
    "OpenedSession",
    "ServersError",
    "Unsettable",
    "fork_session",
    "keep_name",
    "last_used",
    "open_session",
    "read_servers",
    "reopen",
]

How = Literal["new", "resumed", "loaded"]


class UnknownSession(AcpError):
    """The agent has no such session."""


class Unsettable(AcpError):
    """The session has no such mode, model or option; the hint lists those that it has."""


@dataclass(frozen=True)
class OpenedSession:
    """An open session, and how it was opened."""

    session: "ClientSession"
    how: How


async def open_session(
    running: "RunningAgent", options: "Options", *, on_update: "OnUpdate | None" = None, replay: bool = False
) -> OpenedSession:
    """Open the session that the options name, and apply its settings. With `replay` its history is requested.

    Raises:
        AcpError: there is no such session, or it cannot be set like that.
    """
    opened: OpenedSession | None = None
    known = await _known(running, options)
    for place, id in enumerate(known, 1):
        try:
            opened = await reopen(running, options, id, on_update=on_update, replay=replay)
            break
        except RequestRefused as error:
            if isinstance(error, AuthRequired):
                raise
            if place == len(known):
                _handle_missing(running, options, id, error)
    if opened is None:
        servers, directories = _place(running, options)
        session = await running.agent.new_session(
            running.cwd,
            mcp_servers=servers,
            additional_directories=directories,
            on_update=on_update,
            meta=_meta(running, options),
        )
        opened = OpenedSession(session, "new")
    await _set(running, options, opened)
    if not getattr(options, "ephemeral", False):
        await keep_name(running, options.session or "", opened.session.id)
    return opened


async def reopen(
    running: "RunningAgent", options: "Options", id: str, *, on_update: "OnUpdate | None" = None, replay: bool = False
) -> OpenedSession:
    """Open an earlier session, without its history if the agent supports that and it is not requested."""
    opened = await _reopen(running, options, id, on_update, replay)
    await _keep_mode(
        running, opened.session, f"the session was left in `{{}}`, and goes on in `{running.gate.mode.value}`"
    )
    return opened


async def fork_session(
    running: "RunningAgent", options: "Options", id: str, meta: "JsonObject", on_update: "OnUpdate"
) -> "ClientSession":
    """Open a copy of a session. `meta` is the `_meta` of the request."""
    servers, directories = _place(running, options)
    session = await running.agent.fork_session(
        id, running.cwd, mcp_servers=servers, additional_directories=directories, on_update=on_update, meta=meta
    )
    await _keep_mode(running, session, f"the copy was in `{{}}`, and goes on in `{running.gate.mode.value}`")
    return session


async def _reopen(
    running: "RunningAgent", options: "Options", id: str, on_update: "OnUpdate | None", replay: bool
) -> OpenedSession:
    agent, (servers, directories), meta = running.agent, _place(running, options), _meta(running, options)
    can_resume = agent.capabilities.session_capabilities.resume is not None
    can_load = agent.capabilities.load_session
    if can_resume and not (replay and can_load):
        session = await agent.resume_session(
            id, running.cwd, mcp_servers=servers, additional_directories=directories, on_update=on_update, meta=meta
        )
        return OpenedSession(session, "resumed")
    if can_load:
        session = await agent.load_session(
            id, running.cwd, mcp_servers=servers, additional_directories=directories, on_update=on_update, meta=meta
        )
        return OpenedSession(session, "loaded")
    raise NotSupported(
        f"{agent.name} cannot open earlier sessions: it advertised neither `loadSession` nor `sessionCapabilities.resume`",
        hint="leave out `--session`, `--continue` and `--resume`",
    )


async def keep_name(running: "RunningAgent", name: str, session_id: str) -> None:
    """Store the name of a session. A store that cannot be used gives a warning."""
    try:
        await NameStore(running.database).put(name, running.name, session_id, running.cwd)
    except StoreError as error:
        running.warn(Advice(f"this session cannot be continued by name: {error.sentence}", error.hint))


async def _known(running: "RunningAgent", options: "Options") -> list[str]:
    """Return the ids of the earlier session that the options name, the likeliest first; empty for a new session."""
    if options.resume is not None:
        return [await _whole(running, options.resume) or options.resume]
    if options.session is not None:
        named = await NameStore(running.database).get(options.session, running.name, running.cwd)
        if named is not None:
            return [named.session_id]
        # An id that we have shown is as good as a name. Shorter words are names: the next id may begin with any of them.
        listed = await _whole(running, options.session) if len(options.session) >= SHORTEST else None
        return [] if listed is None else [listed]
    if not options.continue_last:
        return []
    return await last_used(running) or _nothing(running)


async def _whole(running: "RunningAgent", word: str) -> str | None:
    """Return the id that begins like this, among those that the agent lists, or None."""
    found = await find_session(running.agent, word, running.cwd)
    return None if found is None else found.session_id


def _handle_missing(running: "RunningAgent", options: "Options", id: str, error: RequestRefused) -> None:
    """Warn that a session cannot be opened, and raise unless a new one may replace it."""
    if options.session is not None:
        running.warn(Advice(f"the session `{options.session}` is gone, so a new one takes its name: {error.reason}"))
        return
    if error.code != Code.RESOURCE_NOT_FOUND:
        raise error
    if options.resume is None:
        _nothing(running)
    raise UnknownSession(f"{running.agent.name} has no session `{id}`", hint=f"{_where_listed(running)}") from error


def _where_listed(running: "RunningAgent") -> str:
    if running.name == OURS:
        return "`antiphon sessions --all` lists those there are"
    agent = f" {shlex.quote(running.name)}"
    return f"`/sessions` in `antiphon chat{agent}` lists those there are"


def _nothing(running: "RunningAgent") -> NoReturn:
    raise UnknownSession(
        f"{running.agent.name} has no session in `{running.cwd}` to continue", hint="leave out `--continue`"
    )


# Where it works and with what.

_CLAUDE_AGENTS: Final = ("claude-agent-acp", "claude-code-acp")
"""Agents of others that take a text for the system prompt, in a form of their own."""


def _meta(running: "RunningAgent", options: "Options") -> "JsonObject | None":
    """Return the `_meta` of the request that opens the session: what is asked of the engines.

    Raises:
        Unsettable: there is a text for the system prompt, and the agent does not take one.
    """
    text, agent = getattr(options, "append_system_prompt", None), running.agent
    asked = {
        APPEND_SYSTEM_PROMPT: text,
        MAX_COST: getattr(options, "max_cost", None),
        MAX_TOKENS: getattr(options, "max_tokens", None),
        MAX_TURNS: getattr(options, "max_turns", None),
    }
    ours = {key: value for key, value in asked.items() if value is not None}
    meta: JsonObject = {"antiphon": ours} if ours else {}
    if text is not None:
        info = agent.info.name.rpartition("/")[2] if agent.info is not None else ""
        if info in _CLAUDE_AGENTS:
            meta["systemPrompt"] = {"append": text}
        elif antiphon_meta(agent.meta).get(APPEND_SYSTEM_PROMPT) is not True:
            raise Unsettable(
                f"{agent.name} takes no text for its system prompt",
                hint="leave out `--append-system-prompt`, and put it into the prompt",
            )
    return meta or None


def _place(running: "RunningAgent", options: "Options") -> tuple[list[v1.McpServer], list[str]]:
    import os

    servers = [server for path in options.mcp_config for server in read_servers(path)]
    taken = {getattr(server, "name", None) for server in servers}
    for name, kept in running.loaded.settings.mcp.items():
        if name not in taken and _reaches(running, kept):
            servers.append(_server(kept))
    return servers, [os.path.abspath(os.path.expanduser(folder)) for folder in options.add_dir]


def _reaches(running: "RunningAgent", server: "McpServerConfig") -> bool:
    reaches = running.agent.capabilities.mcp_capabilities
    if server.type == "stdio" or (reaches.http if server.type == "http" else reaches.sse):
        return True
    left_out = (
        f"{running.agent.name} does not reach MCP servers over {server.type.upper()}, so `{server.name}` is left out"
    )
    running.warn(Advice(left_out))
    return False


def _server(server: "McpServerConfig") -> v1.McpServer:
    if server.type == "stdio":
        env = [v1.EnvVariable(name, value) for name, value in server.env.items()]
        return v1.StdioServer(server.name, server.command[0], list(server.command[1:]), env)
    kind = v1.SseServer if server.type == "sse" else v1.HttpServer
    headers = [v1.HttpHeader(name, value) for name, value in server.headers.items()]
    return kind(server.name, server.url or "", headers)


# How it is set.


async def _set(running: "RunningAgent", options: "Options", opened: OpenedSession) -> None:
    session, settings = opened.session, running.loaded.settings
    if options.mode is not None:
        await _set_mode(session, options.mode)
        if options.permission_mode is None:
            follow_agent(running.gate, options.mode)
    elif settings.mode is not None and opened.how == "new":
        await _try(running, "mode", settings.mode, _set_mode(session, settings.mode))
    if options.permission_mode is not None:
        await _keep_mode(running, session, f"the agent begins in `{{}}`, and is set to `{options.permission_mode}`")
    if options.model is not None:
        await _set_model(session, options.model)
    elif settings.model is not None and opened.how == "new":
        await _try(running, "model", settings.model, _set_model(session, settings.model))
    for key, value in options.set:
        await _set_option(session, key, value)


async def _keep_mode(running: "RunningAgent", session: "ClientSession", sentence: str) -> None:
    """Set the agent to the mode of the policy if its own would allow more, with a warning."""
    try:
        was = await keep_agent_to(session, running.gate.mode)
    except AcpError as error:
        now = mode_in_force(session, running.gate.mode).value
        running.warn(Advice(f"the mode is `{now}`, as the agent has it: {sentence_and_hint(error)[0]}"))
        return
    if was is not None:
        running.warn(Advice(sentence.format(was.value)))


async def _try(running: "RunningAgent", what: str, value: str, setting: Awaitable[None]) -> None:
    try:
        await setting
    except Unsettable as error:
        running.warn(Advice(f"the {what} `{value}` of the config file is left out: {sentence_and_hint(error)[0]}"))


async def _set_mode(session: "ClientSession", mode: str) -> None:
    there = [each.id for each in session.modes.available_modes] if session.modes is not None else []
    try:
        await session.set_mode(mode)
    except (RequestRefused, NotSupported) as error:
        hint = _choose(there, mode) or "it has no modes; `--permission-mode` is what this program may allow"
        raise Unsettable(f"{_wrong('mode', mode, there, error)}", hint=hint) from error


async def _set_model(session: "ClientSession", model: str) -> None:
    there = [each.model_id for each in session.models.available_models] if session.models is not None else []
    try:
        await session.set_model(model)
    except (RequestRefused, NotSupported) as error:
        raise Unsettable(
            f"{_wrong('model', model, there, error)}", hint=f"{_choose(there, model) or 'leave out `--model`'}"
        ) from error


async def _set_option(session: "ClientSession", key: str, text: str) -> None:
    options = [option for option in session.config_options or () if isinstance(option, v1.ConfigBase)]
    option = next((option for option in options if option.id == key), None)
    value: str | bool = text
    if isinstance(option, v1.BooleanConfig):
        if text.lower() not in ("true", "false", "on", "off", "yes", "no"):
            raise Unsettable(f"`{key}` is on or off, not `{text}`", hint=f"--set {key}=on")
        value = text.lower() in ("true", "on", "yes")
    try:
        await session.set_config_option(key, value)
    except (RequestRefused, NotSupported) as error:
        there = _values(option) if option is not None else [each.id for each in options]
        hint = _choose(there, key if option is None else text) or "this agent has no settings"
        if option is None:
            raise Unsettable(f"{_wrong('setting', key, there, error)}", hint=hint) from error
        why = f": {_reason(error)}" if not there or text in there else ""
        raise Unsettable(f"`{key}` cannot be `{text}`{why}", hint=hint) from error


def _values(option: v1.ConfigBase) -> list[str]:
    if not isinstance(option, v1.SelectConfig):
        return []
    groups = [entry.options if isinstance(entry, v1.SelectGroup) else [entry] for entry in option.options]
    return [each.value for group in groups for each in group]


def _choose(there: Sequence[str], word: str) -> str | None:
    return f"{did_you_mean(word, there)}choose one of {', '.join(f'`{each}`' for each in there)}" if there else None


def _wrong(what: str, value: str, there: Sequence[str], error: RequestRefused | NotSupported) -> str:
    """Return that there is no such value, if the values are known; otherwise the reason of the agent."""
    if there and value not in there:
        return f"there is no {what} `{value}`"
    return f"the {what} cannot be `{value}`: {_reason(error)}"


def _reason(error: RequestRefused | NotSupported) -> str:
    return sentence_and_hint(error)[0]


# --- `--continue` ----------------------------------------------------------------------------------------------------
# The agent's own list has when each was used last, and we note when we open and leave one: the later of the two counts. So a session that
# was only looked at is gone on with, too, and one that an editor has used since comes before it.

LOOKED_AT: Final = 100
"""Sessions of a list that are looked at: agents list the newest first, or have few."""

_BEFORE: Final = datetime.min.replace(tzinfo=UTC)


async def last_used(running: "RunningAgent") -> list[str]:
    """Return the ids of sessions to try, the likeliest first; empty if there is nothing to continue."""
    ours = await NameStore(running.database).last(running.name, running.cwd)
    listed = await _listed(running)
    if not listed:
        return [] if ours is None else [ours.session_id]
    newest = max(listed, key=lambda info: _time(info.updated_at))  # the first, in a list without times
    if ours is None:
        return [newest.session_id]
    if _time(ours.used_at) < _time(newest.updated_at):
        return [newest.session_id]
    # An empty session is not listed, and may be gone.
    return list(dict.fromkeys((ours.session_id, newest.session_id)))


async def _listed(running: "RunningAgent") -> "list[v1.SessionInfo]":
    """Return the agent's sessions in this directory."""
    if running.agent.capabilities.session_capabilities.list is None:
        return []
    here = _spellings(running.cwd)
    found: list[v1.SessionInfo] = []
    try:
        async for info in running.agent.list_sessions(running.cwd):
            if info.cwd in here:  # some agents list all that they have
                found.append(info)
            if len(found) == LOOKED_AT:
                break
    except AuthRequired:
        raise
    except RequestRefused as error:
        running.warn(Advice(f"{running.agent.name} does not list its sessions: {error.reason}"))
    return found


def _spellings(directory: str) -> set[str]:
    """Return the paths that an agent may use for a directory."""
    return {directory, os.path.realpath(directory)}


def _time(text: str | None) -> datetime:
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return _BEFORE
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


# --- MCP servers from a file -----------------------------------------------------------------------------------------
# A server has `command`, `args` and `env`, or `url` and `headers` with `type` `http` (as without one) or `sse`. `${VAR}` and
# `${VAR:-otherwise}` in the values are variables of the environment. Whether the agent reaches such a server is asked elsewhere.

HINT: Final = 'write JSON such as {"mcpServers": {"files": {"command": "mcp-files", "args": ["."]}}}'
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class ServersError(AcpError):
    """The file of MCP servers does not exist, or has a wrong format."""


class _Server(msgspec.Struct):
    name: str | None = None
    type: str | None = None
    command: str | None = None
    args: list[str] = msgspec.field(default_factory=list)
    env: dict[str, str] = msgspec.field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)


def read_servers(path: str, environment: Mapping[str, str] = os.environ) -> list[v1.McpServer]:
    """Return the MCP servers of a file.

    Raises:
        ServersError: it cannot be read, or makes no sense; with the name of the server.
    """
    try:
        with open(path, "rb") as file:
            document = msgspec.json.decode(file.read())
    except OSError as error:
        raise ServersError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", hint="check the path"
        ) from error
    except BAD_INPUT as error:
        raise ServersError(f"`{path}` is not JSON: {error}", hint=HINT) from error
    return [_server_of_file(path, name, server, environment) for name, server in _named(path, document)]


def _named(path: str, document: object) -> list[tuple[str, object]]:
    if isinstance(document, dict):
        document = document.get("mcpServers", document.get("servers", document))
    if isinstance(document, dict):
        return list(document.items())
    if isinstance(document, list):
        return [(server.get("name", "") if isinstance(server, dict) else "", server) for server in document]
    raise ServersError(f"`{path}` lists no MCP servers", hint=HINT)


def _server_of_file(path: str, name: str, server: object, environment: Mapping[str, str]) -> v1.McpServer:
    try:
        parsed = msgspec.convert(_filled(server, environment), _Server)
    except (msgspec.ValidationError, KeyError) as error:
        why = f"the variable `{error.args[0]}` is not set" if isinstance(error, KeyError) else str(error)
        raise ServersError(f"the MCP server `{name}` in `{path}` is not valid: {why}", hint=HINT) from None
    if parsed.command is not None:
        env = [v1.EnvVariable(key, value) for key, value in parsed.env.items()]
        return v1.StdioServer(name, parsed.command, parsed.args, env)
    if parsed.url is not None:
        headers = [v1.HttpHeader(key, value) for key, value in parsed.headers.items()]
        kind = v1.SseServer if parsed.type == "sse" else v1.HttpServer
        return kind(name, parsed.url, headers)
    raise ServersError(f"the MCP server `{name}` in `{path}` has neither `command` nor `url`", hint=HINT)


def _filled(value: object, environment: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: environment.get(match[1], match[2]) or _missing(match), value)
    if isinstance(value, list):
        return [_filled(each, environment) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, environment) for key, each in value.items()}
    return value


def _missing(match: "re.Match[str]") -> str:
    if match[2] is None:
        raise KeyError(match[1])
    return ""
