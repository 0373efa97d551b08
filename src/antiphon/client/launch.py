"""Start an agent behind the settings, the policy and the store of a directory.

`run` and `chat` begin with this, as any other front end does. The options of the caller come before those of config files.
"""

import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

from antiphon import __version__
from antiphon.catalogue.agents import UnknownAgent, start_of
from antiphon.catalogue.known import JOINT, OURS, default_agent, keys_for
from antiphon.client.connect import ElicitationHandler, connect
from antiphon.client.files import Files, refusal
from antiphon.client.link import Retry
from antiphon.client.terminals import Terminals
from antiphon.client.updates import of_category
from antiphon.config.environment import environment_for, with_new_sessions
from antiphon.config.shapes import OwnClient
from antiphon.connection.reports import ReportLog
from antiphon.connection.stream import CANCEL_GRACE
from antiphon.errors import AcpError, Advice, Code, ExtraMissing, RequestError
from antiphon.local.files import FileProblem, Roots
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.permission.memory import forget_closed
from antiphon.permission.settings import BROKEN, rules_in, settings_here, with_policy
from antiphon.policy import PolicyMode, Rules
from antiphon.protocol import v1
from antiphon.store.decisions import AuditEntry, AuditStore, DecisionStore
from antiphon.store.errors import StoreError
from antiphon.store.schema import open_database
from antiphon.transcript.presentation import engine_of

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.client.agent import ConnectedAgent
    from antiphon.client.handlers import PermissionAnswer, PermissionHandler, SignInHandler
    from antiphon.client.session import ClientSession
    from antiphon.client.updates import ClientSessions
    from antiphon.config.settings import Loaded
    from antiphon.config.shapes import Settings
    from antiphon.store.database import Database
    from antiphon.transports.remote import RemoteAddress

__all__ = [
    "Frontend",
    "GuardedFiles",
    "GuardedTerminals",
    "LaunchOptions",
    "RunningAgent",
    "agent_mode",
    "agent_modes",
    "agent_name",
    "engine_asking",
    "follow_agent",
    "gate_of",
    "keep_agent_to",
    "launch",
    "mode_in_force",
    "rules_of",
    "set_mode",
    "user_database",
]

# Files and terminals behind the policy: it decides each read, write and command, also without a permission request of the agent.
# A path outside the session's roots is refused at once, and a path that leads elsewhere after the decision is not used.


class GuardedFiles(Files):
    """The files of a client, behind a permission gate."""

    def __init__(self, files: Files, gate: "PermissionGate") -> None:
        super().__init__(write=files.can_write)
        self._files = files
        self._gate = gate

    def attach(self, sessions: "ClientSessions") -> None:
        """Take the sessions of the agent."""
        self._gate.attach(sessions)

    async def read(self, roots: Roots | Iterable[str], request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        """Read the text of a file, if the policy allows it."""
        roots = Roots.of(roots)
        resolved = _resolved(roots, request.path)
        await self._gate.admit(request)
        _check(roots, request.path, resolved)
        return await self._files.read(roots, request)

    async def write(self, roots: Roots | Iterable[str], request: v1.WriteTextFile) -> v1.WriteTextFileResult:
        """Write a whole file, if the policy allows it."""
        if not self.can_write:
            return await self._files.write(roots, request)
        roots = Roots.of(roots)
        resolved = _resolved(roots, request.path)
        await self._gate.admit(request)
        _check(roots, request.path, resolved)
        return await self._files.write(roots, request)


class GuardedTerminals(Terminals):
    """The terminals of a client, behind a permission gate. A command that runs may be watched and killed without it."""

    def __init__(self, terminals: Terminals, gate: "PermissionGate") -> None:
        super().__init__(output_limit=terminals.output_limit, max_open=terminals.max_open)
        self._terminals = terminals
        self._gate = gate

    def attach(self, sessions: "ClientSessions") -> None:
        """Take the sessions of the agent."""
        self._gate.attach(sessions)

    def __len__(self) -> int:
        return len(self._terminals)

    async def create(self, roots: Roots | Iterable[str], request: v1.CreateTerminal) -> v1.CreateTerminalResult:
        """Start a command, if the policy allows it."""
        roots = Roots.of(roots)
        resolved = _resolved(roots, request.cwd) if request.cwd is not None else None
        await self._gate.admit(request)
        if request.cwd is not None and resolved is not None:
            _check(roots, request.cwd, resolved)
        return await self._terminals.create(roots, request)

    async def output(self, request: v1.TerminalOutput) -> v1.TerminalOutputResult:
        """Return the output so far."""
        return await self._terminals.output(request)

    async def wait_for_exit(self, request: v1.WaitForExit) -> v1.WaitForExitResult:
        """Wait until the command ends."""
        return await self._terminals.wait_for_exit(request)

    async def kill(self, request: v1.KillTerminal) -> v1.KillTerminalResult:
        """Kill the command; terminal and output stay."""
        return await self._terminals.kill(request)

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        """Kill the command if it runs, and release the terminal."""
        return await self._terminals.release(request)

    async def release_session(self, session_id: v1.SessionId) -> None:
        """Release all terminals of a session."""
        await self._terminals.release_session(session_id)

    async def close(self) -> None:
        """Release all terminals."""
        await self._terminals.close()


def _resolved(roots: Roots, path: str) -> "Path":
    try:
        return roots.resolve(path)
    except FileProblem as error:
        raise refusal(error, path) from error


def _check(roots: Roots, path: str, resolved: "Path") -> None:
    """Refuse a path that leads elsewhere than when it was decided about: the user may have taken a while."""
    if _resolved(roots, path) != resolved:
        raise RequestError(
            Code.INVALID_PARAMS, f"`{path}` has changed while permission for it was requested: it leads elsewhere now"
        )


DELAYS: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try; the last one is used for all that follow."""


@dataclass(frozen=True)
class LaunchOptions:
    """The options of the caller. None and empty: the settings decide."""

    agent: str | None = None
    """A name, a whole command line, or the address of a remote agent."""
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    ask: Sequence[str] = ()
    permission_mode: str | None = None
    on_ask: str | None = None
    """The answer to every permission request that the user would be asked about: `deny`, `fail` or `allow`."""
    max_retries: int | None = None
    cancel_grace: float = CANCEL_GRACE
    """Seconds that the agent may take to end a turn that was cancelled."""
    token: str | None = field(default=None, repr=False)
    """The token for an address; a local agent does not get it."""
    plaintext: bool = False
    """Whether the token may be sent to another machine without TLS."""
    directory_given: bool = False
    """Whether the directory was named by the user. Else a remote agent that has not this one may use its own."""
    policy: str | None = None
    """A file with a policy that counts beside the settings, before their mode."""
    trust_project: bool = False
    """Whether to trust the project's files as they are now."""


@dataclass
class Frontend:
    """The front end of the user: its name for the agent, and what it can show and ask."""

    client: OwnClient
    """The client whose name is sent to the agent."""
    ask: Ask | None = None
    """Asks the user for permission; None: there is no user."""
    elicitation: ElicitationHandler | None = None
    authenticate: "SignInHandler | None" = None
    terminal_login: bool = False
    """Whether `authenticate` can run an agent's login in a terminal."""
    files: Files = field(default_factory=lambda: Files(write=True))
    terminals: Terminals = field(default_factory=Terminals)
    refused: set[str] = field(default_factory=set)
    """The ids of the calls that were rejected."""
    decided: Callable[[AuditEntry], None] | None = None
    warn: Callable[[Advice], None] = lambda advice: None


@dataclass
class RunningAgent:
    """An agent that was started, and the settings and policy that hold for it."""

    agent: "ConnectedAgent"
    name: str
    """The name that was asked for; sessions are stored under it."""
    cwd: str
    gate: PermissionGate
    loaded: "Loaded"
    database: "Database"
    warn: Callable[[Advice], None]
    command: list[str] = field(default_factory=list)
    """The command that starts it, for a sign-in by its own program; empty for a remote agent."""


def agent_name(options: LaunchOptions, settings: "Settings") -> str:
    """Return the name of the agent: the caller's, that of the settings, or the default."""
    if options.agent is not None:
        return options.agent
    return settings.agent or default_agent(settings)


def rules_of(options: LaunchOptions, settings: "Settings") -> Rules:
    """Return the rules of the command line and of the files.

    Raises:
        RuleError: one on the command line is not a rule.
        ExtraMissing: one there would allow nothing, because the shell grammar is not installed.
    """
    given = Rules.parse(allow=options.allow, deny=options.deny, ask=options.ask, source="command line")
    bash = next((rule.text for rule in given.allow if rule.command is not None), None)
    if bash is not None and not all(map(find_spec, ("tree_sitter", "tree_sitter_bash"))):
        raise ExtraMissing(
            f"`{bash}` would allow nothing: the shell grammar is not installed", hint="pip install 'antiphon[policy]'"
        )
    return given.merged(rules_in(settings))


@asynccontextmanager
async def launch(options: LaunchOptions, cwd: str, frontend: Frontend) -> AsyncIterator[RunningAgent]:
    """Start an agent behind the policy of a directory.

    Raises:
        RuleError: a rule of the caller is not a rule.
        AcpError: the agent is not installed, does not start, or has another protocol.
    """
    async with user_database() as database:
        if options.trust_project:
            await _trust(cwd, database, frontend)
        loaded = await settings_here(cwd, database)
        if options.policy is not None:
            loaded = with_policy(loaded, options.policy)
        for problem in (*loaded.problems, *loaded.notes, *await forget_closed(DecisionStore(database))):
            frontend.warn(problem)
        settings = loaded.settings
        start = _start_of(
            options, agent_name(options, settings), settings, cwd, lambda sentence: frontend.warn(Advice(sentence))
        )
        name = start.name
        gate = gate_of(options, loaded, database, name, ask=frontend.ask, decided=frontend.decided)
        if start.reads_project:
            await _warn_of_project(name, cwd, database, frontend)
        async with connect(
            start.target,
            cwd=start.cwd,
            env=start.env,
            permission=_recording_refusals(gate, frontend.refused),
            elicitation=frontend.elicitation,
            authenticate=frontend.authenticate,
            files=GuardedFiles(frontend.files, gate),
            terminals=GuardedTerminals(frontend.terminals, gate),
            retry=_retry(options),
            info=v1.Implementation(frontend.client.name, __version__, frontend.client.title),
            observer=ReportLog(),
            cancel_grace=options.cancel_grace,
            terminal_login=frontend.terminal_login,
        ) as agent:
            if not isinstance(start.target, list) and not options.directory_given:
                cwd = _directory_there(agent, start.target.name, cwd, frontend.warn)
            yield RunningAgent(agent, name, cwd, gate, loaded, database, frontend.warn, start.command)


def _directory_there(agent: "ConnectedAgent", host: str, cwd: str, warn: Callable[[Advice], None]) -> str:
    """Return the directory of a remote agent's machine to work in: the one that it has, where it has not the one of this machine.

    Raises:
        AcpError: it has several.
    """
    import msgspec

    from antiphon.remote.paths import is_below
    from antiphon.remote.sessions import ServerOffer

    roots = ServerOffer.read(msgspec.json.encode({"_meta": agent.meta})).roots
    if not roots or is_below(cwd, roots):
        return cwd
    wrong = f"`{cwd}` is not at `{host}`"
    if len(roots) > 1:
        there = ", ".join(f"`{root}`" for root in roots)
        raise AcpError(f"{wrong}; it has {there}", hint=f"name one of them, as in `--cwd {roots[0]}`")
    warn(Advice(f"{wrong}: working in `{roots[0]}` there", "`--cwd` names another directory of that machine"))
    return roots[0]


async def _trust(cwd: str, database: "Database", frontend: Frontend) -> None:
    from antiphon.permission.project_trust import NothingToTrust, trust_project

    try:
        await trust_project([cwd], database)
    except NothingToTrust as nothing:
        frontend.warn(Advice(nothing.sentence))


async def _warn_of_project(name: str, cwd: str, database: "Database", frontend: Frontend) -> None:
    """Warn of what an agent may read in a project that is not trusted: we cannot prevent what it does with that."""
    from antiphon.config.project_files import ANY
    from antiphon.permission.project_trust import look, may_read

    found = await look(ANY, (cwd,), database)
    if found.waiting:
        title, more = may_read(f"`{name}`", found, cwd)
        frontend.warn(Advice(f"{title}: {more.sentence}", more.hint))


def gate_of(
    options: LaunchOptions,
    loaded: "Loaded",
    database: "Database",
    name: str,
    *,
    ask: Ask | None = None,
    decided: Callable[[AuditEntry], None] | None = None,
) -> PermissionGate:
    """Return the policy of a directory for an agent: its rules and its mode, what is remembered, and the audit.

    Raises:
        RuleError: a rule of the caller is not a rule.
    """
    settings = loaded.settings
    rules = rules_of(options, settings)
    on_ask: Literal["deny", "fail", "allow"] = "deny"
    match options.on_ask or settings.on_ask:
        case "fail" | "allow" as chosen:
            on_ask = chosen
        case _:
            pass
    project = loaded.sources.directory
    return PermissionGate(
        rules,
        PolicyMode(options.permission_mode or settings.permission_mode),
        ask=ask if options.on_ask is None else None,  # with this option the user is not asked
        on_ask=on_ask,
        decisions=DecisionStore(database),
        audit=_Audit(database, decided),
        project="" if project is None else str(project),
        agent=name,
        broken=BROKEN if loaded.policy_broken else "",
    )


_ENGINE: Final[ContextVar[str | None]] = ContextVar("engine", default=None)


def engine_asking() -> str | None:
    """Return the engine whose permission request is being decided, in `Frontend.decided`; None if the agent names none."""
    return _ENGINE.get()


def _recording_refusals(gate: PermissionGate, refused: set[str]) -> "PermissionHandler":
    """Return the gate's handler; it notes which calls were rejected, because an agent reports only that they failed."""

    async def permission(request: v1.RequestPermission) -> "PermissionAnswer":
        _ENGINE.set(engine_of(request.tool_call))
        answer = await gate.permission(request)
        chosen = getattr(answer.outcome, "option_id", None)
        kind = next((option.kind for option in request.options if option.option_id == chosen), None)
        if kind in (v1.PermissionOptionKind.REJECT_ONCE, v1.PermissionOptionKind.REJECT_ALWAYS):
            refused.add(request.tool_call.tool_call_id)
        else:
            refused.discard(request.tool_call.tool_call_id)
        return answer

    return permission


class _Audit(AuditStore):
    """Stores decisions, and calls a function with each."""

    def __init__(self, database: "Database", see: Callable[[AuditEntry], None] | None) -> None:
        super().__init__(database)
        self._see = see

    def post(self, entry: AuditEntry) -> None:
        if self._see is not None:
            self._see(entry)
        super().post(entry)


@asynccontextmanager
async def user_database() -> AsyncIterator["Database"]:
    """The store with decisions and trust of the user; it is opened with its first use."""
    database = open_database()
    try:
        yield database
    finally:
        with suppress(StoreError):  # logged where it happened; the turn is over
            await database.close()


@dataclass(frozen=True)
class _Start:
    """An agent as `connect` takes it: a command with its environment and directory, or an address."""

    name: str
    target: "list[str] | RemoteAddress"
    env: Mapping[str, str] | None = None
    cwd: str | None = None

    @property
    def command(self) -> list[str]:
        return self.target if isinstance(self.target, list) else []

    @property
    def reads_project(self) -> bool:
        """Whether it may read the project on this machine unnoticed. Our own engines send notices about what they left out."""
        return bool(self.command) and self.command[: 1 + len(JOINT)] != [sys.executable, *JOINT]


def _start_of(
    options: LaunchOptions, name: str, settings: "Settings", cwd: str, report: Callable[[str], None]
) -> _Start:
    """Return how an agent is started or reached. `report` is called when a remote one is lost, and when it is back.

    Raises:
        AcpError: it is not known or not installed, or the address is none.
    """
    if "://" in name.partition(" ")[0] and name not in settings.agents:
        from antiphon.remote.address import LinkedAddress
        from antiphon.transports.remote import shown_address

        return _Start(
            shown_address(name), LinkedAddress(name, token=options.token, plaintext=options.plaintext, report=report)
        )
    if name not in settings.agents and (" " in name.strip() or "/" in name):
        try:
            words = shlex.split(name)
        except ValueError as error:
            raise UnknownAgent(f"the command `{name}` cannot be read: {str(error).lower()}") from error
        return _Start(name, words, environment_for(keys_for(words)), cwd)
    found = start_of(name, settings)
    env = found.environment()
    if found.origin == "built in" and found.name == OURS:
        env = with_new_sessions(env)  # this client names the session that it wants: a new one is a new one
    return _Start(name, list(found.command), env, found.cwd or cwd)


def _retry(options: LaunchOptions) -> Retry:
    if options.max_retries is None:
        return Retry(DELAYS)
    return Retry(tuple(DELAYS[min(n, len(DELAYS) - 1)] for n in range(options.max_retries)))


# The mode of a session.
#
# One mode for one session: the agent's own mode and the mode of our policy are kept equal.
#
# An agent with modes of the policy's names does by itself what its mode allows; the policy's mode decides about its requests. Where the two
# differ, the wider one applies. So a mode is changed on both sides, and an agent that comes back in a wider mode than the policy's is
# set to the policy's: the mode that an agent reports never widens anything here.

ORDER: Final = (PolicyMode.PLAN, PolicyMode.DONT_ASK, PolicyMode.DEFAULT, PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS)
"""From the mode that allows least to the one that allows everything."""


def agent_modes(session: "ClientSession") -> list[str]:
    """Return the ids of the agent's own modes."""
    if session.modes is not None:
        return [mode.id for mode in session.modes.available_modes]
    option = of_category(session, v1.ConfigCategory.MODE)
    if option is None:
        return []
    groups = [entry.options if isinstance(entry, v1.SelectGroup) else [entry] for entry in option.options]
    return [each.value for group in groups for each in group]


def agent_mode(session: "ClientSession") -> str | None:
    """Return the agent's own current mode."""
    if session.modes is not None:
        return session.modes.current_mode_id
    option = of_category(session, v1.ConfigCategory.MODE)
    return None if option is None else option.current_value


def _as_ours(id: str | None) -> PolicyMode | None:
    return next((mode for mode in ORDER if id is not None and mode.value.lower() == id.lower()), None)


def mode_in_force(session: "ClientSession", ours: PolicyMode) -> PolicyMode:
    """Return the mode that applies: of the agent's and the policy's."""
    theirs = _as_ours(agent_mode(session))
    if theirs is None:
        return ours
    if ORDER.index(theirs) < ORDER.index(
        PolicyMode.DEFAULT
    ):  # it restricts itself, and requests nothing that we could allow
        return theirs
    if (
        ORDER.index(ours) < ORDER.index(PolicyMode.DEFAULT) and theirs is PolicyMode.DEFAULT
    ):  # all that it requests is denied
        return ours
    return max(theirs, ours, key=ORDER.index)


async def set_mode(session: "ClientSession", gate: "PermissionGate", wanted: str) -> None:
    """Change the mode: the agent's, that of the policy, or both where they have the same name.

    Raises:
        AcpError: there is no such mode, or the agent refuses it.
    """
    there = agent_modes(session)
    theirs = next((id for id in there if id.lower() == wanted.lower()), None)
    ours = _as_ours(wanted)
    if theirs is None and ours is None:
        every = ", ".join(dict.fromkeys([*there, *(mode.value for mode in PolicyMode)]))
        raise AcpError(f"there is no mode `{wanted}`", hint=f"there are {every}")
    if theirs is not None:
        await session.set_mode(theirs)
        follow_agent(gate, theirs)
    elif ours is not None:
        gate.mode = ours
        await keep_agent_to(session, ours)


def follow_agent(gate: "PermissionGate", chosen: str) -> None:
    """Take over a mode that the user has chosen for the agent."""
    mode = _as_ours(chosen)
    if mode is not None:
        # An agent in plan mode requests approval of its plan, and then goes on: `plan` of ours would still forbid it.
        gate.mode = PolicyMode.DEFAULT if mode is PolicyMode.PLAN else mode


async def keep_agent_to(session: "ClientSession", ours: PolicyMode) -> PolicyMode | None:
    """Set an agent whose mode is wider than ours to our mode, or to one that requests permission. Return the mode it was in, or None.

    Raises:
        AcpError: it refuses.
    """
    theirs = _as_ours(agent_mode(session))
    # In `default` and below it does nothing without a permission request, which is decided here.
    if theirs is None or ORDER.index(theirs) <= max(ORDER.index(ours), ORDER.index(PolicyMode.DEFAULT)):
        return None
    offered = {mode: id for id in agent_modes(session) if (mode := _as_ours(id)) is not None}
    wanted = next(
        (mode for mode in (ours, PolicyMode.DEFAULT, PolicyMode.DONT_ASK, PolicyMode.PLAN) if mode in offered), None
    )
    if wanted is None:
        raise AcpError(f"the agent is in `{theirs.value}` and offers no mode that allows less")
    await session.set_mode(offered[wanted])
    return theirs
