"""The errors of the library: one tree, of which this module imports nothing before it is used.

    AcpError
    ├── ResponseError         a response with an error: code, message and data
    │   ├── RequestError          ours: raise it in a handler to refuse a request of the peer
    │   └── RequestRefused        the peer's: it refused a request of ours
    │       └── AuthRequired      because the user has to sign in first
    ├── RequestTimeout        the peer did not respond in time; the request was cancelled
    ├── NotSupported          the peer does not advertise the capability, so nothing was sent
    ├── ProtocolError         the rules of the protocol were broken
    │   ├── LocalProtocolError    by us: fix the caller
    │   │   ├── TurnOver          something was sent in a turn that has been answered
    │   │   └── StdioClosed       this program was started without stdin or stdout
    │   └── RemoteProtocolError   by the peer
    ├── ConnectionClosed      the connection is closed; pending requests end with this
    │   ├── ConnectionRefused it was not opened: a remote agent was not reached, or its server refused
    │   ├── ProcessDied       because the program at the other end ended, with its status and the end of its stderr
    │   └── TurnLost          in the middle of a turn; it may have done some of its work, so it was not sent again
    ├── SpawnFailed           a program could not be started
    ├── ExtraMissing          a package of an extra is not installed
    ├── UnsupportedPlatform   Windows, for now
    │
    │   These are defined where they are raised, and can be imported from here too:
    ├── OverBudget, NoMatch, SchemaError, PatchError, WorktreeError, ComparisonError, PolicyFileError    what a run of a script needs
    ├── AgentMissing, UnknownAgent, UnknownEngine, CliProblem (CliMissing, CliTooOld), RegistryProblem    what was to be started
    ├── FileProblem           a file of this machine: NotThere, NotAFile, NotText, NotPermitted, OutsideRoots, TooLarge
    ├── AttachmentError       a file that was to go along with a prompt
    ├── RuleError             a rule of the policy that means nothing
    ├── StoreError            what is stored: BadCursor, DirectoryInUse, NoSuchSession, SessionExists; LiveElsewhere, AmbiguousId, NothingToTrust
    └── EditRefused, NoSuchAgent, NotJsonc, WrongAgent    a file of settings that was to be changed

Commands and engines have errors of their own besides, which never leave them; they are AcpErrors too.

The codes and their names are in `Code`. Documents disagree about three; `Code` has the meaning that we send, and `meaning_of` how we
read the others.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.codes import Code as Code
    from antiphon.codes import meaning_of as meaning_of

__all__ = [
    "AcpError", "Advice", "AuthRequired", "Code", "ConnectionClosed", "ExtraMissing", "LocalProtocolError", "NotSupported", "ProcessDied",
    "ProtocolError", "RemoteProtocolError", "RequestError", "RequestRefused", "RequestTimeout", "ResponseError",
    "SpawnFailed", "StdioClosed", "TurnLost", "TurnOver",
    "UnsupportedPlatform", "fresh", "meaning_of", "sentence_and_hint",
]  # fmt: skip


_MADE_IN: "Mapping[str, str]" = {
    "AgentMissing": "catalogue.agents", "AmbiguousId": "client.agent", "AttachmentError": "client.attachments",
    "BadCursor": "store.errors", "CliMissing": "catalogue.programs", "CliProblem": "catalogue.programs", "CliTooOld": "engines.cli_program",
    "ComparisonError": "runs.comparison", "ConnectionRefused": "transports.remote",
    "DirectoryInUse": "store.errors", "EditRefused": "config.edits", "FileProblem": "local.problems", "LiveElsewhere": "store.locks", "NoMatch": "runs.answer_schema", "NoSuchAgent": "config.edits",
    "NoSuchSession": "store.errors", "NotAFile": "local.problems", "NotJsonc": "editors.jsonc", "NotPermitted": "local.problems",
    "NotText": "local.problems", "NotThere": "local.problems", "NothingToTrust": "permission.project_trust", "OutsideRoots": "local.problems",
    "OverBudget": "runs.budget", "PatchError": "runs.patches", "PolicyFileError": "permission.settings", "RegistryProblem": "catalogue.registry", "RuleError": "policy.rules", "SchemaError": "runs.answer_schema", "SessionExists": "store.errors", "StoreError": "store.errors",
    "TooLarge": "local.problems", "UnknownAgent": "catalogue.agents", "UnknownEngine": "engines.known", "WorktreeError": "runs.worktrees",
    "WrongAgent": "config.edits",
}  # fmt: skip
"""The module of each error that is defined elsewhere: it is loaded when the error is first used."""


def __getattr__(name: str) -> "type[AcpError]":
    from importlib import import_module

    home = "codes" if name in ("Code", "meaning_of") else _MADE_IN.get(name)
    if home is None:
        raise AttributeError(f"{__name__} has no `{name}`")
    found: type[AcpError] = getattr(import_module(f"antiphon.{home}"), name)
    return found


_HINT = "\nhint: "
"""Separates the sentence of an error from its hint where both are one text: in a traceback, and in messages of older peers."""


class Advice(tuple[str, str]):
    """Something a user should know: a sentence, and what to do about it. Like an error that is not raised."""

    __slots__ = ()

    def __new__(cls, sentence: str, hint: str = "") -> "Advice":
        return super().__new__(cls, (sentence, hint))  # no NamedTuple: `typing` would be loaded at every start

    def __getnewargs__(self) -> tuple[str, str]:
        return self[0], self[1]

    @property
    def sentence(self) -> str:
        """What there is to know."""
        return self[0]

    @property
    def hint(self) -> str:
        """What to do about it; empty if there is nothing to do."""
        return self[1]

    def __str__(self) -> str:
        return f"{self.sentence}{_HINT}{self.hint}" if self.hint else self.sentence


class AcpError(Exception):
    """Base of every error that this package raises on purpose: one sentence, and a hint with what to do."""

    code: int = -32603
    """The JSON-RPC code of the response, where the error ends a request of the peer."""

    def __init__(self, sentence: str = "", *, hint: str = "") -> None:
        super().__init__(sentence)
        self._hint = hint

    @property
    def sentence(self) -> str:
        """What went wrong."""
        return str(self.args[0]) if self.args else ""

    @property
    def hint(self) -> str:
        """What to do about it; empty if that is not known."""
        return self._hint

    @property
    def recoverable(self) -> "bool | None":
        """Whether another try can succeed; None if that is not known."""
        return False

    @property
    def action(self) -> str:
        """What a program can do about it, in a few words that do not change; empty if there is nothing."""
        return ""

    @property
    def advice(self) -> Advice:
        """The sentence and the hint, without the error's type and traceback."""
        return Advice(*((found or "") for found in sentence_and_hint(self)))

    def __str__(self) -> str:
        return str(Advice(self.sentence, self.hint))


def sentence_and_hint(error: BaseException) -> "tuple[str, str | None]":
    """Return an error as people read it: a sentence, without the code of a refused request, and its hint if it has one."""
    if isinstance(error, ResponseError):
        sentence = error.reason or error.meaning
    else:
        sentence = getattr(error, "sentence", None) or str(error) or type(error).__name__
    return "\n".join([sentence, *getattr(error, "__notes__", [])]), getattr(error, "hint", None) or None


def fresh(error: "AcpError") -> "AcpError":
    """The same error as a new object: one that is raised again and again would collect tracebacks, and the frames they hold."""
    twin = type(error).__new__(type(error), *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    return twin


class ResponseError(AcpError):
    """A response with an error: a code, a message and data. `RequestError` is one of ours, `RequestRefused` one of the peer's."""

    def __init__(self, code: int, message: str, data: object = None, *, hint: str = "") -> None:
        if hint:
            more = data if isinstance(data, dict) else {} if data is None else {"details": data}
            data = {**more, "hint": hint}
        super().__init__(message)
        self.args = (code, message, data)
        self.code = code
        self.message = message
        self.data = data

    @property
    def sentence(self) -> str:
        """What went wrong, without the code."""
        return self.reason

    @property
    def meaning(self) -> str:
        """The code in words."""
        from antiphon.codes import meaning_of

        return meaning_of(self.code, self.message)

    @property
    def recoverable(self) -> "bool | None":
        """Whether another try can succeed: as `data` says, or else by the code. None if that is not known."""
        from antiphon.codes import recovery_from

        found = self.data.get("recoverable") if isinstance(self.data, dict) else None
        return found if isinstance(found, bool) else recovery_from(self.meaning)[0]

    @property
    def action(self) -> str:
        """What a program can do about it: as `data` says, or else by the code."""
        from antiphon.codes import recovery_from

        found = self.data.get("action") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else recovery_from(self.meaning)[1]

    @property
    def wants_sign_in(self) -> bool:
        """Whether the user has to sign in first: by its meaning, since -32000 is also sent for a closed connection."""
        return self.meaning == "authentication required"

    @property
    def reports_closed(self) -> bool:
        """Whether the peer responds that a connection was closed: its own to what does the work, since it still responds."""
        return self.meaning == "connection closed"

    @property
    def reason(self) -> str:
        """The message, with the text in `data`: peers put the part that helps in there, as text or under one of these names.

        The hint is not in it, and "Internal error" only where there are no better words.
        """
        return self._words.partition(_HINT)[0]

    @property
    def hint(self) -> str:
        """What to do about it: from `data`, or from the message of a peer that writes it there."""
        found = self.data.get("hint") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else self._words.partition(_HINT)[2]

    @property
    def _words(self) -> str:
        data = self.data
        if isinstance(data, dict):
            data = next(
                (data[name] for name in ("details", "detail", "reason", "message", "error") if name in data), None
            )
        sentence, _, hint = self.message.partition(_HINT)
        if not isinstance(data, str) or not data.strip() or data in sentence:
            return self.message
        if self.meaning == "internal error" and self.message.strip(" .").lower() in ("", "internal error"):
            return data
        return f"{sentence}: {data}{f'{_HINT}{hint}' if hint and _HINT not in data else ''}"

    def __str__(self) -> str:
        hint = f"{_HINT}{self.hint}" if self.hint else ""
        code = int(self.code)
        if self.reason.lower().startswith(self.meaning):  # "Internal error (-32603, internal error)" would repeat it
            return f"{self.reason} ({code}){hint}"
        return f"{self.reason} ({code}, {self.meaning}){hint}"


class RequestError(ResponseError):
    """Raise it in a handler to answer a request with an error. The constructors below have the code and the usual message.

    The peer's own refusal of a request of ours is `RequestRefused`, which is no `RequestError`: `except RequestError` in a handler catches
    what the handler itself refuses.
    """

    @classmethod
    def parse_error(cls, details: str = "", *, hint: str = "") -> "RequestError":
        """The frame is not JSON: -32700."""
        return cls(-32700, "Parse error", details or None, hint=hint)

    @classmethod
    def invalid_request(cls, details: str = "", *, hint: str = "") -> "RequestError":
        """The message is not a valid request, or not at this point: -32600."""
        return cls(-32600, "Invalid request", details or None, hint=hint)

    @classmethod
    def method_not_found(cls, method: str, *, hint: str = "") -> "RequestError":
        """The method does not exist or is not supported: -32601."""
        return cls(-32601, "Method not found", method, hint=hint)

    @classmethod
    def invalid_params(cls, details: str = "", *, hint: str = "") -> "RequestError":
        """The params are wrong: -32602."""
        return cls(-32602, "Invalid params", details or None, hint=hint)

    @classmethod
    def internal(cls, details: str = "", *, hint: str = "") -> "RequestError":
        """Something failed here: -32603."""
        return cls(-32603, "Internal error", details or None, hint=hint)

    @classmethod
    def cancelled(cls, details: str = "") -> "RequestError":
        """The request was cancelled: -32800."""
        return cls(-32800, "Request cancelled", details or None)

    @classmethod
    def auth_required(cls, details: str = "", *, hint: str = "") -> "RequestError":
        """The user has to sign in first: -32000."""
        return cls(-32000, "Authentication required", details or None, hint=hint)

    @classmethod
    def not_found(cls, what: str, *, hint: str = "") -> "RequestError":
        """A session, a file or another resource does not exist: -32002."""
        return cls(-32002, "Resource not found", what, hint=hint)


class RequestRefused(ResponseError):
    """The peer refused a request of ours. In a handler of ours it is a failure, not our own refusal: catch it to add a hint."""


class AuthRequired(RequestRefused):
    """The user has to sign in first. `methods` are the ways that the agent offers (`v1.AuthMethod`)."""

    def __init__(self, code: int, message: str, data: object = None, methods: "Sequence[object]" = ()) -> None:
        super().__init__(code, message, data)
        self.methods = tuple(methods)

    @property
    def hint(self) -> str:
        """What to do about it: the peer's own hint, or else how to sign in."""
        if found := super().hint:
            return found
        names = ", ".join(f"`{getattr(method, 'id', method)}`" for method in self.methods)
        return (
            f"authenticate with one of {names}"
            if names
            else "the agent offers no way to sign in: see its documentation"
        )


class RequestTimeout(AcpError):
    """The peer did not respond in time. The request was cancelled; a response that comes later is dropped.

    `method` is that of the request, `timeout` the seconds that it had.
    """

    def __init__(self, method: str, timeout: float, hint: str = "", peer: str = "the peer", printed: str = "") -> None:
        self.method, self.timeout = method, timeout
        hint = hint or "give it longer with `timeout=`, or look at what it is waiting for"
        super().__init__(f"{peer} did not respond to `{method}` within {timeout:g} seconds{printed}", hint=hint)

    @property
    def recoverable(self) -> "bool | None":
        """Another try may succeed."""
        return True

    @property
    def action(self) -> str:
        """What a program can do about it."""
        return "try again later"


class NotSupported(AcpError):
    """The peer does not advertise the capability, so nothing was sent: an omitted capability is an unsupported one."""


class ProtocolError(AcpError):
    """The rules of the protocol were broken."""


class LocalProtocolError(ProtocolError):
    """We broke the rules: the caller asked for something the protocol does not allow."""


class TurnOver(LocalProtocolError):
    """The turn has its response: nothing can be sent in it any more."""


class StdioClosed(LocalProtocolError):
    """This program was started without the stdin and stdout that the protocol needs."""

    def __init__(self) -> None:
        super().__init__(
            "stdin or stdout is closed, and the protocol needs both",
            hint="start this program from an ACP client, or with its stdin and stdout connected to something",
        )


class RemoteProtocolError(ProtocolError):
    """The peer broke the rules."""


class ConnectionClosed(AcpError):
    """The connection is closed."""

    retry_after: float = 0.0
    """Seconds for which the server wants to be left alone."""

    @property
    def recoverable(self) -> "bool | None":
        """Whether another connection can be opened."""
        return True

    @property
    def action(self) -> str:
        """What a program can do about it."""
        return "reconnect" if self.recoverable else ""


LAST_WORDS = 8
"""Lines of a dead program's stderr that are shown; `ProcessDied.stderr` has more."""


class ProcessDied(ConnectionClosed):
    """The program at the other end ended; `status` and its last lines on stderr have the reason."""

    def __init__(self, command: str, status: int | None, stderr: str = "") -> None:
        self.command, self.status, self.stderr = command, status, stderr
        how = "closed its output" if status is None else _ending(status)
        last = "\n".join(stderr.splitlines()[-LAST_WORDS:])
        words = f"; its last lines on stderr:\n{last}" if last else ""
        super().__init__(f"`{command}` {how}{words}")


class TurnLost(ConnectionClosed):
    """The connection was lost in the middle of a turn. It may have done some of its work, so the prompt was not sent again."""

    @property
    def recoverable(self) -> "bool | None":
        """Not known: the work may be done."""
        return None


def _ending(status: int) -> str:
    return f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"


class SpawnFailed(AcpError):
    """A program could not be started."""

    def __init__(self, command: str, cause: Exception, missing_directory: str | None = None) -> None:
        self.command = command
        self.missing = missing_directory is not None or isinstance(cause, FileNotFoundError)
        """Whether there is no such program or directory; else it is there, and cannot be run."""
        if missing_directory is not None:
            why, hint = f"there is no directory `{missing_directory}` to start it in", "check `cwd`"
        elif isinstance(cause, FileNotFoundError):
            why, hint = "no such program", "install it, or give its full path"
        elif isinstance(cause, PermissionError):
            why, hint = "permission denied", "check that the file is executable and the directory can be entered"
        else:
            why, hint = str(cause), "check the command and its arguments"
        super().__init__(f"cannot start `{command}`: {why}", hint=hint)


class ExtraMissing(AcpError):
    """A package of an extra is not installed; the hint names the extra."""


class UnsupportedPlatform(AcpError):
    """This system cannot run Antiphon yet."""
