"""The handshake in the other version: capabilities, ways to sign in, MCP servers, and lists of sessions."""

from collections.abc import Iterable
from typing import Final, TypedDict, TypeVar

import msgspec
from msgspec import Raw

from antiphon.errors import RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.base import BAD_INPUT, Json, JsonObject, Unknown, encode
from antiphon.protocol.translate.values.content import Report

__all__ = [
    "UNNAMED", "capabilities_to_v1", "initialize_to_v1", "initialize_to_v2", "readable", "result_to_v1", "result_to_v2",
    "servers_to_v1", "servers_to_v2", "sessions_to_v1", "sessions_to_v2",
]  # fmt: skip

UNNAMED: Final = v1.Implementation(name="unknown", version="unknown")
"""For a peer of version 1 that does not give its name: version 2 wants one."""

S = TypeVar("S")


# A client of version 1, an agent of version 2.


def initialize_to_v2(asked: v1.Initialize) -> v2.Initialize:
    """Return the handshake of a client of version 1 for an agent of version 2. Files, terminals and `session` have no place there."""
    able = asked.client_capabilities
    auth = v2.ClientAuthCapabilities(terminal=v2.TerminalAuthSupport()) if able.auth.terminal else None
    return v2.Initialize(
        protocol_version=2,
        info=asked.client_info or UNNAMED,
        capabilities=v2.ClientCapabilities(auth=auth, elicitation=able.elicitation, meta=able.meta),
        meta=asked.meta,
    )


def result_to_v1(result: v2.InitializeResult, asked: v1.Initialize, report: Report) -> v1.InitializeResult:
    """Return the response of an agent of version 2 for a client of version 1."""
    methods = [
        method
        for found in result.auth_methods
        if (method := _auth_to_v1(found, terminal=asked.client_capabilities.auth.terminal, report=report)) is not None
    ]
    return v1.InitializeResult(
        protocol_version=1,
        agent_capabilities=capabilities_to_v1(result.capabilities, logout=bool(result.auth_methods)),
        auth_methods=methods,
        agent_info=result.info,
        meta=result.meta,
    )


def capabilities_to_v1(able: v2.AgentCapabilities, *, logout: bool) -> v1.AgentCapabilities:
    """Return what an agent of version 2 can do in the words of version 1."""
    session = able.session
    auth = v1.AgentAuthCapabilities(
        logout=v1.LogoutSupport() if logout else None, status=able.auth.status if able.auth is not None else None
    )
    if session is None:
        return v1.AgentCapabilities(auth=auth, providers=able.providers, meta=able.meta)
    prompt, mcp = session.prompt or v2.PromptCapabilities(), session.mcp or v2.McpCapabilities()
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=v1.PromptCapabilities(
            image=prompt.image is not None,
            audio=prompt.audio is not None,
            embedded_context=prompt.embedded_context is not None,
            meta=prompt.meta,
        ),
        mcp_capabilities=v1.McpCapabilities(http=mcp.http is not None, acp=mcp.acp is not None, meta=mcp.meta),
        session_capabilities=v1.SessionCapabilities(
            list=v1.ListSupport(),
            resume=v1.ResumeSupport(),
            close=v1.CloseSupport(),
            delete=session.delete,
            additional_directories=session.additional_directories,
            system_prompt=session.system_prompt,
            fork=session.fork,
            archive=session.archive,
            status=session.status,
            title=session.title,
            meta=session.meta,
        ),
        auth=auth,
        providers=able.providers,
        meta=able.meta,
    )


def _auth_to_v1(method: v2.AuthMethod, *, terminal: bool, report: Report) -> v1.AuthMethod | None:
    if isinstance(method, v2.AgentAuth):
        return v1.AgentAuth(id=method.method_id, name=method.name, description=method.description, meta=method.meta)
    if isinstance(method, v2.TerminalAuth):
        if not terminal:
            report("initialize", "the client has no terminal to sign in with")
            return None
        env = {variable.name: variable.value for variable in method.env}
        return v1.TerminalAuth(
            id=method.method_id,
            name=method.name,
            description=method.description,
            args=method.args,
            env=env,
            meta=method.meta,
        )
    report("initialize", f"version 1 has no sign-in of type `{method.kind}`")
    return None


def servers_to_v2(servers: Iterable[v1.McpServer], able: v2.McpCapabilities | None) -> "list[v2.McpServer]":
    """Return the MCP servers of a client of version 1 for an agent of version 2.

    Raises:
        RequestError: -32602, the agent or version 2 has no such servers.
    """
    found: list[v2.McpServer] = []
    for server in servers:
        match server:
            case v1.StdioServer():
                if able is None or able.stdio is None:
                    raise RequestError.invalid_params("the agent starts no MCP servers as child processes")
                found.append(
                    v2.StdioServer(
                        name=server.name, command=server.command, args=server.args, env=server.env, meta=server.meta
                    )
                )
            case v1.HttpServer():
                found.append(v2.HttpServer(name=server.name, url=server.url, headers=server.headers, meta=server.meta))
            case v1.AcpServer() | Unknown():
                found.append(server)
            case _:
                raise RequestError.invalid_params("version 2 of ACP has no MCP servers of type `sse`")
    return found


# A client of version 2, an agent of version 1.


def initialize_to_v1(asked: v2.Initialize) -> v1.Initialize:
    """Return the handshake of a client of version 2 for an agent of version 1.

    Files and terminals are off, whatever newer fields say; what every client of version 2 shows is on.
    """
    able = asked.capabilities
    return v1.Initialize(
        protocol_version=1,
        client_capabilities=v1.ClientCapabilities(
            auth=v1.AuthCapabilities(terminal=able.auth is not None and able.auth.terminal is not None),
            session=v1.ClientSessionCapabilities(
                compaction=v1.CompactionSupport(),
                config_options=v1.ConfigCapabilities(boolean=v1.BooleanConfigSupport()),
                notices=v1.NoticeSupport(),
            ),
            elicitation=able.elicitation,
            plan=v1.PlanSupport(),
            meta={"terminal_output": True, **(able.meta or {})},
        ),
        client_info=asked.info,
        meta=asked.meta,
    )


def result_to_v2(result: v1.InitializeResult, asked: v2.Initialize, report: Report) -> v2.InitializeResult:
    """Return the response of an agent of version 1 for a client of version 2."""
    able, auth = result.agent_capabilities, asked.capabilities.auth
    terminal = auth is not None and auth.terminal is not None
    methods = [
        method
        for found in result.auth_methods
        if (method := _auth_to_v2(found, terminal=terminal, report=report)) is not None
    ]
    if methods and able.auth.logout is None:
        report("initialize", "the agent cannot sign out: `auth/logout` is refused")
    session, prompt, mcp = able.session_capabilities, able.prompt_capabilities, able.mcp_capabilities
    return v2.InitializeResult(
        protocol_version=2,
        info=result.agent_info or UNNAMED,
        capabilities=v2.AgentCapabilities(
            session=v2.SessionCapabilities(
                prompt=v2.PromptCapabilities(
                    image=_marker(v2.ImageSupport, prompt.image),
                    audio=_marker(v2.AudioSupport, prompt.audio),
                    embedded_context=_marker(v2.EmbeddedContextSupport, prompt.embedded_context),
                    meta=prompt.meta,
                ),
                mcp=v2.McpCapabilities(
                    stdio=v2.McpStdioSupport(),
                    http=_marker(v2.McpHttpSupport, mcp.http),
                    acp=_marker(v2.McpAcpSupport, mcp.acp),
                    meta=mcp.meta,
                ),
                delete=session.delete,
                additional_directories=session.additional_directories,
                system_prompt=session.system_prompt,
                fork=session.fork,
                archive=session.archive,
                status=session.status,
                title=session.title,
                meta=session.meta,
            ),
            auth=None if able.auth.status is None else v2.AgentAuthCapabilities(status=able.auth.status),
            providers=able.providers,
            meta=able.meta,
        ),
        auth_methods=methods,
        meta=result.meta,
    )


def _marker(kind: "type[S]", there: bool) -> "S | None":
    return kind() if there else None


def _auth_to_v2(method: v1.AuthMethod, *, terminal: bool, report: Report) -> v2.AuthMethod | None:
    if isinstance(method, v1.AgentAuth):
        return v2.AgentAuth(method_id=method.id, name=method.name, description=method.description, meta=method.meta)
    if isinstance(method, v1.TerminalAuth):
        if not terminal:  # some agents offer them to every client
            report("initialize", "the client has no terminal to sign in with")
            return None
        return v2.TerminalAuth(
            method_id=method.id,
            name=method.name,
            description=method.description,
            args=method.args,
            env=[v2.EnvVariable(name=name, value=value) for name, value in method.env.items()],
            meta=method.meta,
        )
    report("initialize", f"version 2 has no sign-in like `{getattr(method, 'id', '?')}`")
    return None


def servers_to_v1(servers: "Iterable[v2.McpServer]") -> list[v1.McpServer]:
    """Return the MCP servers of a client of version 2 for an agent of version 1.

    Raises:
        RequestError: -32602, version 1 has no such servers.
    """
    found: list[v1.McpServer] = []
    for server in servers:
        match server:
            case v2.StdioServer():
                found.append(
                    v1.StdioServer(
                        name=server.name, command=server.command, args=server.args, env=server.env, meta=server.meta
                    )
                )
            case v2.HttpServer():
                found.append(v1.HttpServer(name=server.name, url=server.url, headers=server.headers, meta=server.meta))
            case Unknown():
                raise RequestError.invalid_params(f"the agent has no MCP servers of type `{server.kind}`")
            case _:
                found.append(server)
    return found


def readable(params: Raw) -> Raw:
    """Return the handshake of a client that asks for a version after 2: what cannot be read in it is left out, not refused."""
    try:
        fields = msgspec.json.decode(params, type=dict[str, Json])
    except BAD_INPUT:
        return params
    version = fields.get("protocolVersion")
    if not isinstance(version, int) or version <= 2:
        return params
    try:
        msgspec.convert(fields.get("info"), v1.Implementation)
    except msgspec.ValidationError:
        fields["info"] = UNNAMED
    return Raw(encode(fields))


class _SessionFields(TypedDict):
    session_id: str
    cwd: str
    additional_directories: list[str]
    title: str | None
    updated_at: str | None
    archived: bool | None
    meta: JsonObject | None


def _fields_of(session: v1.SessionInfo | v2.SessionInfo) -> _SessionFields:
    """Return the fields of a session in a list: both versions have the same."""
    return {
        "session_id": session.session_id,
        "cwd": session.cwd,
        "additional_directories": session.additional_directories,
        "title": session.title,
        "updated_at": session.updated_at,
        "archived": session.archived,
        "meta": session.meta,
    }


def sessions_to_v1(result: v2.ListSessionsResult) -> v1.ListSessionsResult:
    """Return a page of sessions in version 1."""
    sessions = [v1.SessionInfo(**_fields_of(each)) for each in result.sessions]
    return v1.ListSessionsResult(sessions=sessions, next_cursor=result.next_cursor, meta=result.meta)


def sessions_to_v2(result: v1.ListSessionsResult) -> v2.ListSessionsResult:
    """Return a page of sessions in version 2."""
    sessions = [v2.SessionInfo(**_fields_of(each)) for each in result.sessions]
    return v2.ListSessionsResult(sessions=sessions, next_cursor=result.next_cursor, meta=result.meta)
