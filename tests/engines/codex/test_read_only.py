"""Codex as a reviewer, which only reads: what it is started with, and where that needs a profile."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.session import AgentSession
from antiphon.engines.codex.modes import PROFILE, config_with_profile, has_rules
from antiphon.engines.codex.settings import CodexSettings
from antiphon.engines.codex.thread import CodexConfig


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write(folder: Path, name: str) -> None:
    folder.mkdir(parents=True)
    (folder / name).write_text("", encoding="utf-8")


@pytest.mark.parametrize("where", ["home/rules", "work/.codex/rules", ".codex/rules"])
def test_rules_are_found_where_codex_finds_them(tmp_path: Path, home: Path, where: str) -> None:
    assert not has_rules(str(tmp_path / "work"))
    write(tmp_path / where, "default.rules")
    assert has_rules(str(tmp_path / "work"))


def test_a_damaged_file_of_rules_has_no_rules(tmp_path: Path, home: Path) -> None:
    write(home / "rules", "notes.txt")
    write(tmp_path / "work" / ".codex", "rules")
    assert not has_rules(str(tmp_path / "work"))


@pytest.mark.parametrize(
    "text", [CodexConfig(sandbox_mode="workspace-write"), CodexConfig(default_permissions=":workspace")]
)
def test_the_users_setting_of_the_sandbox_stays_in_force(text: CodexConfig) -> None:
    assert set(config_with_profile(text)) == {"permissions"}
    assert config_with_profile(CodexConfig())["default_permissions"] == ":read-only"


def begun(mode: str, *, looking: bool, profile: bool) -> dict[str, Any]:
    session = AgentSession("s", "/w", None, ["/also"])  # type: ignore[arg-type]  # no user is asked here
    choosing = CodexSettings(session)
    choosing.set_option("mode", mode)
    session.host.read_only, choosing.has_profile = looking, profile
    return choosing.begin_turn()


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "configured"])
def test_a_turn_that_only_looks_has_no_right_to_change_anything_in_any_mode(mode: str) -> None:
    bound = begun(mode, looking=True, profile=False)
    assert (bound["approvalPolicy"], bound["sandboxPolicy"]) == ("on-request", {"type": "readOnly"})
    assert "permissions" not in bound
    profiled = begun(mode, looking=True, profile=True)
    assert (profiled["approvalPolicy"], profiled["permissions"]) == ("on-request", PROFILE)
    assert "sandboxPolicy" not in profiled
    assert "permissions" not in begun(mode, looking=False, profile=True)
