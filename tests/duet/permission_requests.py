"""What tests of the guard share: questions of engines, and a user who answers them."""

from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.duet.permission import Guard
from antiphon.protocol import v1
from antiphon.store.database import Database
from antiphon.store.schema import open_database

__all__ = [
    "CLAUDE", "CODEX", "IDS", "OPTIONS", "Editor", "bash", "chosen", "configure", "database", "edit", "ids", "opened", "own_place", "read",
    "texts", "work",
]  # fmt: skip

Kind = v1.PermissionOptionKind
CLAUDE, CODEX = "Claude Code", "Codex"
IDS = ("antiphon_always_session", "antiphon_always_project")

OPTIONS = [
    v1.PermissionOption("allow", "Allow once", Kind.ALLOW_ONCE),
    v1.PermissionOption("allow_session", "Always allow edits", Kind.ALLOW_ALWAYS),
    v1.PermissionOption("reject", "Reject", Kind.REJECT_ONCE),
    v1.PermissionOption("never", "Always reject", Kind.REJECT_ALWAYS),
    v1.PermissionOption("reject_with_message", "Reject and say why", Kind.REJECT_ONCE),
]


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("config", "work", "home"):
        (tmp_path / name).mkdir()


@pytest.fixture
def work(tmp_path: Path, own_place: None) -> Path:
    return tmp_path / "work"


@pytest.fixture
async def database(own_place: None) -> AsyncIterator[Database]:
    async with open_database() as opened:
        yield opened


def configure(tmp_path: Path, text: str) -> None:
    (tmp_path / "config" / "config.toml").write_text(text, encoding="utf-8")


def bash(command: str, session_id: str = "joint", **more: Any) -> v1.RequestPermission:
    call = v1.ToolCallPatch(
        "call-1", title=command, kind=v1.ToolKind.EXECUTE, name="Bash", raw_input={"command": command}, **more
    )
    return v1.RequestPermission(session_id, call, OPTIONS)


def edit(path: Path, **more: Any) -> v1.RequestPermission:
    call = v1.ToolCallPatch(
        "call-2", title="Edit", kind=v1.ToolKind.EDIT, name="Edit", raw_input={"file_path": str(path)},
        content=[v1.Diff(str(path), "la\n")],
    )  # fmt: skip
    return v1.RequestPermission("joint", call, OPTIONS, **more)


def read(path: Path) -> v1.RequestPermission:
    call = v1.ToolCallPatch(
        "call-3", title="Read", kind=v1.ToolKind.READ, name="Read", raw_input={"file_path": str(path)}
    )
    return v1.RequestPermission("joint", call, OPTIONS)


class Editor:
    """A user in front of an editor, who answers with these ids in turn."""

    def __init__(self, *answers: str) -> None:
        self.asked: list[v1.RequestPermission] = []
        self._answers = deque(answers)

    async def __call__(self, request: v1.RequestPermission) -> v1.PermissionResult:
        self.asked.append(request)
        answer = self._answers.popleft()
        return v1.PermissionResult(v1.Cancelled() if answer == "cancelled" else v1.Selected(answer))


def chosen(result: v1.PermissionResult) -> str:
    assert isinstance(result.outcome, v1.Selected)
    return result.outcome.option_id


def texts(request: v1.RequestPermission) -> str:
    items = [item.content for item in request.tool_call.content or () if isinstance(item, v1.ContentItem)]
    return "\n".join(item.text for item in items if isinstance(item, v1.TextBlock))


def ids(request: v1.RequestPermission) -> list[str]:
    return [option.option_id for option in request.options]


async def opened(work: Path, database: Database, mode: str = "default") -> Guard:
    guard = await Guard.open(str(work), [], database)
    guard.use_mode(lambda: mode)
    return guard
