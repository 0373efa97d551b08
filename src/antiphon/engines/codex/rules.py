"""When Codex asks and what its sandbox lets it do, in each mode and under the policy's deny and ask rules. Pure.

Codex takes no list of files that it may not write, and no rules. So it is made to ask about what these are about, and the policy answers.

================== ===================== =========================== ============================= ============================
mode               in Codex's own words  as it is sent               with rules about edits alone  with rules about commands
================== ===================== =========================== ============================= ============================
default            on request, read-only (the same)                  (the same: edits are asked)   untrusted, workspace-write
acceptEdits        on request, workspace on request, read-only       on request, read-only         untrusted, workspace-write
dontAsk            never, workspace      on request, read-only       on request, read-only         untrusted, workspace-write
bypassPermissions  never, no sandbox     (the same)                  untrusted, no sandbox         untrusted, no sandbox
plan               on request, read-only (the same)                  (the same)                    (the same)
================== ===================== =========================== ============================= ============================

Where commands run unasked the sandbox may not write the workspace: it would protect `.git`, `.codex` and `.agents`, and none of the
other files that name programs to run. A sandbox with all of these carved out makes each command 1.7 s slower and shows them as empty files.

`untrusted` asks about every edit and every command. A command that is allowed then runs in the sandbox first, so that has to let it write.
In `plan` commands are how Codex looks around, and its sandbox lets none of them change anything.
"""

from typing import TYPE_CHECKING, Final

from antiphon.engines.codex.modes import CONFIGURED, WORKSPACE, Setup, mode_of
from antiphon.policy.rules import FILE_KINDS, KIND_OF

if TYPE_CHECKING:
    from antiphon.policy import Rule, Rules

__all__ = ["held", "is_held", "mode_under"]

_ASKS_EDITS: Final = Setup("on-request", "read-only")
_ASKS_ALL: Final = Setup("untrusted", WORKSPACE)
_ASKS_ALL_UNBOUND: Final = Setup("untrusted", "danger-full-access")


def is_held(rules: "Rules | None") -> bool:
    """Whether there is anything that Codex has to ask about for their sake."""
    return rules is not None and any(_about(rule) for rule in (*rules.deny, *rules.ask))


def held(setup: Setup, rules: "Rules | None" = None) -> Setup:
    """What is sent for a mode, where these rules hold."""
    if setup.plans:
        return setup
    about = set() if rules is None else {_about(rule) for rule in (*rules.deny, *rules.ask)} - {None}
    if setup.sandbox == _ASKS_ALL_UNBOUND.sandbox:
        return _ASKS_ALL_UNBOUND if about else setup
    if "execute" in about:
        return _ASKS_ALL
    return _ASKS_EDITS if about or setup.sandbox == WORKSPACE else setup


def mode_under(rules: "Rules | None", approval: object, sandbox: object, plans: bool) -> str:
    """The mode that Codex is in, by what it says of itself. What several modes are made of is taken for the most careful of them."""
    found = mode_of(approval, sandbox, plans)
    if found != CONFIGURED.id or not is_held(rules) or plans:
        return found
    kind = sandbox.get("type") if isinstance(sandbox, dict) else sandbox
    made = {"workspaceWrite": "default", "dangerFullAccess": "bypassPermissions"}
    return made.get(str(kind), found) if approval == _ASKS_ALL.approval else found


def _about(rule: "Rule") -> str | None:
    """What Codex has to ask about: edits, or commands; None if it would not help."""
    kind = rule.kind or KIND_OF.get(rule.tool or "")
    return kind if kind == "execute" else "edit" if kind in FILE_KINDS else None
