"""Short ways to say actions and rules in these tests."""

import posixpath
from collections.abc import Callable, Sequence

from antiphon.policy import Action, PolicyMode, Rules, Ruling, Verdict, decide
from antiphon.protocol.v1.client_services import CreateTerminal
from antiphon.protocol.v1.tools import ToolCall, ToolKind

CWD = "/home/me/song"
HOME = "/home/me"


def line(command: str, cwd: str = CWD) -> Action:
    """A shell line, as an agent sends it."""
    call = ToolCall(
        tool_call_id="t", title="harmless", name="Bash", kind=ToolKind.EXECUTE, raw_input={"command": command}
    )
    return Action.of_tool_call(call, cwd, [CWD], home=HOME)


def words(*argv: str) -> Action:
    """A program with its arguments."""
    request = CreateTerminal(session_id="s", command=argv[0], args=list(argv[1:]))
    return Action.of_terminal(request, CWD, [CWD], home=HOME)


def files(
    path: str,
    *more: str,
    name: str | None = "Edit",
    kind: ToolKind = ToolKind.EDIT,
    resolve: Callable[[str], str] = posixpath.normpath,
) -> Action:
    """Work on files."""
    call = ToolCall(
        tool_call_id="t", title="harmless", name=name, kind=kind, raw_input={"file_path": path, "paths": list(more)}
    )
    return Action.of_tool_call(call, CWD, [CWD], home=HOME, resolve=resolve)


def ruling(
    action: Action,
    *,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    ask: Sequence[str] = (),
    mode: PolicyMode = PolicyMode.DEFAULT,
) -> Ruling:
    """Decide with rules as people write them."""
    return decide(action, Rules.parse(allow=allow, deny=deny, ask=ask, source="test"), mode)


def verdict(action: Action, **rules: Sequence[str]) -> Verdict:
    """Only the verdict, in `default`."""
    return ruling(action, **rules).verdict  # type: ignore[arg-type]  # `mode` is not among them
