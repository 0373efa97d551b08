"""The modes, and what each means to Codex: when it asks, and what its sandbox lets it do. A table; no I/O.

================== ============ ==================== =====================================================
mode               asks         sandbox              so
================== ============ ==================== =====================================================
default            on request   read-only            reads freely; every edit is asked
acceptEdits        on request   workspace-write      edits the workspace freely
plan               on request   read-only            the same as default, and Codex plans and asks questions
dontAsk            never        workspace-write      edits the workspace; what goes beyond that fails
bypassPermissions  never        danger-full-access   no sandbox and no questions
================== ============ ==================== =====================================================

On request: what goes beyond the sandbox is asked if Codex asks for it, else it fails. By these words a user's own configuration is
recognized. What is sent for a mode stands in `rules`: the sandbox that may write the workspace is not.
"""

from typing import Any, Final

import msgspec

from antiphon.protocol import v1

__all__ = ["CONFIGURED", "MODES", "WORKSPACE", "Setup", "mode_of", "modes_with", "sandbox_policy", "setup_of"]

WORKSPACE: Final = "workspace-write"


class Setup(msgspec.Struct, frozen=True):
    """What a mode is made of, in Codex's words."""

    approval: Any
    """A word, or an object with the kinds of questions that are asked."""
    sandbox: str
    plans: bool = False


MODES: Final = {
    "default": (
        v1.Mode(
            "default",
            "Default",
            "Reads freely, and asks before it edits files; what else the sandbox stops is asked or fails",
        ),
        Setup("on-request", "read-only"),
    ),
    "acceptEdits": (
        v1.Mode(
            "acceptEdits",
            "Accept edits",
            "Edits files of the workspace without asking, but for those that name programs to run; commands only read, or are asked",
        ),
        Setup("on-request", WORKSPACE),
    ),
    "plan": (
        v1.Mode("plan", "Plan", "Looks, asks you questions and plans"),
        Setup("on-request", "read-only", plans=True),
    ),
    "dontAsk": (
        v1.Mode("dontAsk", "Don't ask", "Edits files of the workspace and never asks: what would be asked is declined"),
        Setup("never", WORKSPACE),
    ),
    "bypassPermissions": (
        v1.Mode(
            "bypassPermissions",
            "Bypass permissions",
            "Never asks, and without a sandbox: only where nothing can be harmed",
        ),
        Setup("never", "danger-full-access"),
    ),
}
"""Id → how it is shown, and what it is made of."""

CONFIGURED: Final = v1.Mode("configured", "As configured", "What your own Codex configuration says")
"""For a combination that is none of the modes."""

_TYPES: Final = {"read-only": "readOnly", WORKSPACE: "workspaceWrite", "danger-full-access": "dangerFullAccess"}


def setup_of(mode: str) -> Setup | None:
    """What a mode is made of; None for the user's own combination."""
    return MODES[mode][1] if mode in MODES else None


def mode_of(approval: object, sandbox: object, plans: bool = False) -> str:
    """The mode that Codex is in, by what it says of itself."""
    kind = sandbox.get("type") if isinstance(sandbox, dict) else sandbox
    for id, (_, setup) in MODES.items():
        if (approval, kind, plans) == (setup.approval, _TYPES[setup.sandbox], setup.plans):
            return id
    return CONFIGURED.id


def modes_with(current: str) -> list[v1.Mode]:
    """Those on offer. The user's own combination is only there while it is in force: there is no way back to it."""
    known = [mode for mode, _ in MODES.values()]
    return known if current in MODES else [CONFIGURED, *known]


def sandbox_policy(
    setup: Setup, usual: Setup | None, roots: "list[str]", known: "dict[str, Any] | None"
) -> dict[str, Any]:
    """The sandbox as a turn takes it. `known` is how the user's own configuration has the workspace; `usual` is the mode's own setup.

    The network of the user's workspace is reached in a mode that works there, also where the sandbox does not let it write.
    """
    kind = _TYPES[setup.sandbox]
    if kind == "workspaceWrite":
        policy: dict[str, Any] = dict(known) if known is not None else {"type": kind}
        also = [root for root in roots if root not in policy.get("writableRoots", ())]
        return {**policy, "writableRoots": [*policy.get("writableRoots", ()), *also]}
    network = usual is not None and usual.sandbox == WORKSPACE and (known or {}).get("networkAccess") is True
    return {"type": kind, "networkAccess": True} if network and kind == "readOnly" else {"type": kind}
