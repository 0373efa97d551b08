"""What the modes are made of where rules of the policy hold."""

import pytest

from antiphon.engines.codex.modes import MODES, held, is_held, mode_under
from antiphon.policy import Rules

EDITS = Rules.parse(deny=["Edit(secret/**)"])
COMMANDS = Rules.parse(ask=["Bash(git push *)"])


def made_of(rules: Rules | None) -> dict[str, tuple[object, str]]:
    return {mode: (held(setup, rules).approval, held(setup, rules).sandbox) for mode, (_, setup) in MODES.items()}


def test_rules_about_edits_make_codex_ask_about_every_edit() -> None:
    assert made_of(EDITS) == {
        "default": ("on-request", "read-only"),
        "acceptEdits": ("on-request", "read-only"),
        "plan": ("on-request", "read-only"),
        "dontAsk": ("on-request", "read-only"),
        "bypassPermissions": ("untrusted", "danger-full-access"),
    }


def test_rules_about_commands_make_it_ask_about_every_command_too() -> None:
    assert made_of(COMMANDS) == {
        "default": ("untrusted", "workspace-write"),
        "acceptEdits": ("untrusted", "workspace-write"),
        "plan": ("on-request", "read-only"),
        "dontAsk": ("untrusted", "workspace-write"),
        "bypassPermissions": ("untrusted", "danger-full-access"),
    }
    assert held(MODES["plan"][1], COMMANDS).plans


@pytest.mark.parametrize(
    "rules", [None, Rules(), Rules.parse(allow=["Edit", "Bash"], deny=["Read(a)", "WebFetch", "mcp__a"])]
)
def test_without_such_rules_only_a_sandbox_that_may_write_is_narrowed(rules: Rules | None) -> None:
    assert not is_held(rules)
    assert made_of(rules) == {
        "default": ("on-request", "read-only"),
        "acceptEdits": ("on-request", "read-only"),
        "plan": ("on-request", "read-only"),
        "dontAsk": ("on-request", "read-only"),
        "bypassPermissions": ("never", "danger-full-access"),
    }


@pytest.mark.parametrize("rule", ["Bash", "kind:execute", "Write(a)", "Delete", "kind:move", "kind:edit"])
def test_whatever_touches_edits_or_commands_counts(rule: str) -> None:
    assert is_held(Rules.parse(deny=[rule])) and is_held(Rules.parse(ask=[rule]))


def test_what_rules_have_made_is_not_taken_for_a_configuration_of_the_users_own() -> None:
    assert mode_under(COMMANDS, "untrusted", {"type": "workspaceWrite"}, False) == "default"
    assert mode_under(EDITS, "untrusted", {"type": "dangerFullAccess"}, False) == "bypassPermissions"
    assert mode_under(None, "untrusted", {"type": "workspaceWrite"}, False) == "configured"
    assert mode_under(COMMANDS, "never", {"type": "readOnly"}, False) == "configured"
    assert mode_under(COMMANDS, "on-request", {"type": "workspaceWrite"}, False) == "acceptEdits"
