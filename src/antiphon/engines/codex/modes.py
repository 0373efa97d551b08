"""The modes, and what each means to Codex: when it asks, and what its sandbox lets it do. Tables; of I/O only a look for rule files.

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

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.policy.rules import FILE_KINDS, KIND_OF
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject

if TYPE_CHECKING:
    from antiphon.engines.codex.thread import CodexConfig
    from antiphon.policy import Rule, Rules

__all__ = [
    "CONFIGURED",
    "MODES",
    "PROFILE",
    "WORKSPACE",
    "ModeSetup",
    "config_with_profile",
    "has_rules",
    "held",
    "is_held",
    "mode_of",
    "mode_under",
    "modes_with",
    "sandbox_policy",
    "setup_of",
]

WORKSPACE: Final = "workspace-write"


class ModeSetup(msgspec.Struct, frozen=True):
    """Approval policy and sandbox of a mode, in Codex's words."""

    approval: object
    """A word, or an object with the kinds of requests that Codex makes."""
    sandbox: str
    plans: bool = False


MODES: Final = {
    "default": (
        v1.Mode(
            "default",
            "Default",
            "Reads freely, and asks before it edits files; what else the sandbox stops is asked or fails",
        ),
        ModeSetup("on-request", "read-only"),
    ),
    "acceptEdits": (
        v1.Mode(
            "acceptEdits",
            "Accept edits",
            "Edits files of the workspace without asking, but for those that name programs to run; commands only read, or are asked",
        ),
        ModeSetup("on-request", WORKSPACE),
    ),
    "plan": (
        v1.Mode("plan", "Plan", "Looks, asks you questions and plans"),
        ModeSetup("on-request", "read-only", plans=True),
    ),
    "dontAsk": (
        v1.Mode("dontAsk", "Don't ask", "Edits files of the workspace and never asks: what would be asked is declined"),
        ModeSetup("never", WORKSPACE),
    ),
    "bypassPermissions": (
        v1.Mode(
            "bypassPermissions",
            "Bypass permissions",
            "Never asks, and without a sandbox: only where nothing can be harmed",
        ),
        ModeSetup("never", "danger-full-access"),
    ),
}
"""Id → how it is shown, and its setup."""

CONFIGURED: Final = v1.Mode("configured", "As configured", "As in your own Codex configuration")
"""Stands for a combination of approval policy and sandbox that no mode has."""

_TYPES: Final = {"read-only": "readOnly", WORKSPACE: "workspaceWrite", "danger-full-access": "dangerFullAccess"}


def setup_of(mode: str) -> ModeSetup | None:
    """Return the setup of a mode; None for the user's own combination."""
    return MODES[mode][1] if mode in MODES else None


def mode_of(approval: object, sandbox: object, plans: bool = False) -> str:
    """Return the mode that Codex is in, by its own report."""
    kind = sandbox.get("type") if isinstance(sandbox, dict) else sandbox
    for id, (_, setup) in MODES.items():
        if (approval, kind, plans) == (setup.approval, _TYPES[setup.sandbox], setup.plans):
            return id
    return CONFIGURED.id


def modes_with(current: str) -> list[v1.Mode]:
    """Return the modes on offer. The user's own combination is only among them while it is in force: there is no way back to it."""
    known = [mode for mode, _ in MODES.values()]
    return known if current in MODES else [CONFIGURED, *known]


def sandbox_policy(
    setup: ModeSetup, usual: ModeSetup | None, roots: "list[str]", known: JsonObject | None
) -> JsonObject:
    """Return the sandbox as a turn takes it. `known` is how the user's own configuration has the workspace; `usual` is the mode's own setup.

    The network of the user's workspace is reached in a mode that works there, also where the sandbox does not let it write.
    """
    kind = _TYPES[setup.sandbox]
    if kind == "workspaceWrite":
        policy: JsonObject = dict(known) if known is not None else {"type": kind}
        also = [root for root in roots if root not in policy.get("writableRoots", ())]
        return {**policy, "writableRoots": [*policy.get("writableRoots", ()), *also]}
    network = usual is not None and usual.sandbox == WORKSPACE and (known or {}).get("networkAccess") is True
    return {"type": kind, "networkAccess": True} if network and kind == "readOnly" else {"type": kind}


# The setup that is sent, in each mode and under the policy's deny and ask rules.
# Codex takes no list of files that it may not write, and no rules. So it is made to ask about what these are about, and the policy answers.
#
# ================== ===================== =========================== ============================= ============================
# mode               in Codex's own words  as it is sent               with rules about edits alone  with rules about commands
# ================== ===================== =========================== ============================= ============================
# default            on request, read-only (the same)                  (the same: edits are asked)   untrusted, workspace-write
# acceptEdits        on request, workspace on request, read-only       on request, read-only         untrusted, workspace-write
# dontAsk            never, workspace      on request, read-only       on request, read-only         untrusted, workspace-write
# bypassPermissions  never, no sandbox     (the same)                  untrusted, no sandbox         untrusted, no sandbox
# plan               on request, read-only (the same)                  (the same)                    (the same)
# ================== ===================== =========================== ============================= ============================
#
# Where commands run unasked the sandbox may not write the workspace: it would protect `.git`, `.codex` and `.agents`, and none of the
# other files that name programs to run. A sandbox with all of these carved out makes each command 1.7 s slower and shows them as empty files.
#
# `untrusted` asks about every edit and every command. A command that is allowed then runs in the sandbox first, so that has to let it write.
# In `plan` commands are how Codex looks around, and its sandbox lets none of them change anything.

_ASKS_EDITS: Final = ModeSetup("on-request", "read-only")
_ASKS_ALL: Final = ModeSetup("untrusted", WORKSPACE)
_ASKS_ALL_UNBOUND: Final = ModeSetup("untrusted", "danger-full-access")


def is_held(rules: "Rules | None") -> bool:
    """Whether Codex has to ask about anything because of these rules."""
    return rules is not None and any(_about(rule) for rule in (*rules.deny, *rules.ask))


def held(setup: ModeSetup, rules: "Rules | None" = None) -> ModeSetup:
    """Return the setup that is sent for a mode under these rules."""
    if setup.plans:
        return setup
    about = set() if rules is None else {_about(rule) for rule in (*rules.deny, *rules.ask)} - {None}
    if setup.sandbox == _ASKS_ALL_UNBOUND.sandbox:
        return _ASKS_ALL_UNBOUND if about else setup
    if "execute" in about:
        return _ASKS_ALL
    return _ASKS_EDITS if about or setup.sandbox == WORKSPACE else setup


def mode_under(rules: "Rules | None", approval: object, sandbox: object, plans: bool) -> str:
    """Return the mode that Codex is in, by its own report. A setup of several modes is taken for the most careful of them."""
    found = mode_of(approval, sandbox, plans)
    if found != CONFIGURED.id or not is_held(rules) or plans:
        return found
    kind = sandbox.get("type") if isinstance(sandbox, dict) else sandbox
    made = {"workspaceWrite": "default", "dangerFullAccess": "bypassPermissions"}
    return made.get(str(kind), found) if approval == _ASKS_ALL.approval else found


def _about(rule: "Rule") -> str | None:
    """Return what Codex has to ask about because of a rule: edits, or commands; None if it would not help."""
    kind = rule.kind or KIND_OF.get(rule.tool or "")
    return kind if kind == "execute" else "edit" if kind in FILE_KINDS else None


# A read-only turn, also where rules of the user's own let commands out of the sandbox.
#
# In `plan` the sandbox lets nothing change. But a command that the user has allowed among Codex's rules runs without any sandbox, in every
# mode, and the user is not asked. It stays inside where the sandbox has to keep something from being read: outside it could be. So the turn of a
# reviewer gets a profile of permissions in which everything may be read but one place that does not exist.
#
# A profile has to stand in the configuration that a thread is opened with, and Codex then requires the name of the default one. That
# changes how the thread begins where the user has not configured the sandbox: it asks before it edits. So the profile is there only if
# there are such rules.

PROFILE: Final = "antiphon-looks"

_NOWHERE: Final = "/antiphon-looks-nowhere"
_SYSTEM: Final = Path("/etc/codex")


def has_rules(cwd: str) -> bool:
    """Whether Codex has rules about commands: of the user, of the machine, or of this directory or one above it."""
    user = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    here = Path(cwd)
    folders = [user, _SYSTEM, *(folder / ".codex" for folder in (here, *here.parents))]
    return any(_any_in(folder / "rules") for folder in folders)


def _any_in(folder: Path) -> bool:
    try:
        return any(name.endswith(".rules") for name in os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it may be readable for Codex
        return True


def config_with_profile(found: "CodexConfig") -> JsonObject:
    """Return the configuration of a thread in which a turn can have the profile. What the user has configured for the sandbox still holds."""
    config: JsonObject = {"permissions": {PROFILE: {"filesystem": {":root": "read", _NOWHERE: "deny"}}}}
    if found.sandbox_mode is None and found.default_permissions is None:
        config["default_permissions"] = ":read-only"
    return config
