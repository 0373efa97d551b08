"""Whole sessions as documents, and names of files and directories, as clients of the gateway get them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.methods import files
from tests.gateway.peers import HubClients, RawClient, stage
from tests.gateway.test_turns import end
from tests.waits import until

OPTIONS = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]


def call(id: str, status: str, *diffs: tuple[str, str | None, str], kind: str = "tool_call") -> dict[str, Any]:
    content = [{"type": "diff", "path": path, "oldText": old, "newText": new} for path, old, new in diffs]
    more: dict[str, Any] = {"title": f"Edit {id}", "kind": "edit"} if kind == "tool_call" else {}
    return {
        "sessionUpdate": kind,
        "toolCallId": id,
        "status": status,
        **more,
        **({"content": content} if diffs else {}),
    }


async def worked(place: HubClients, tmp_path: Path, *updates: dict[str, Any]) -> tuple[RawClient, str]:
    """A client and its session, in which a turn brought these updates."""
    client = await place.client()
    session = await client.new(tmp_path)
    asked = client.prompt(session, "Do *it* now\nplease")
    await place.agent.got("session/prompt")
    for update in updates:
        place.agent.notify("session/update", {"sessionId": session, "update": update})
    await end(place)
    await client.response(asked)
    return client, session


async def test_the_changes_of_a_session_are_those_of_its_calls_that_completed(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        _, session = await worked(
            place,
            tmp_path,
            call("1", "completed", ("/w/a", None, "one"), ("/w/b", "x", "y")),
            call("2", "pending", ("/w/a", "one", "two")),
            call("2", "completed", kind="tool_call_update"),
            call("3", "failed", ("/w/a", "two", "three")),
            call("4", "in_progress", ("/w/c", None, "never known")),
            call("5", "completed", ("/w/b", "elsewhere", "z")),
            call("6", "completed", ("/w/d", "same", "same")),
        )
        watcher = await place.client(Principal("eve"))
        found = await watcher.request("_antiphon/session/changes", {"sessionId": session})
        assert found["changes"] == [
            {"path": "/w/a", "old": None, "new": "two"},
            {"path": "/w/b", "old": "x", "new": "y"},
            {"path": "/w/b", "old": "elsewhere", "new": "z"},
        ]


async def test_a_diff_that_only_the_permission_request_has_counts(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "go")
        await place.agent.got("session/prompt")
        asked = {
            name: value for name, value in call("1", "pending", ("/w/a", "x", "y")).items() if name != "sessionUpdate"
        }
        params = {"sessionId": session, "toolCall": asked, "options": OPTIONS}
        place.agent.request(7, "session/request_permission", params)
        client.choose(await client.asked())
        place.agent.notify(
            "session/update", {"sessionId": session, "update": call("1", "completed", kind="tool_call_update")}
        )
        await end(place)
        await until(lambda: place.hub.agents["demo"].sessions[b"s1"].turns.running is None)
        found = await client.request("_antiphon/session/changes", {"sessionId": session})
        assert found["changes"] == [{"path": "/w/a", "old": "x", "new": "y"}]


@pytest.mark.parametrize(("kind", "word"), [("reject_once", "denied"), ("allow_once", "failed")])
async def test_an_export_distinguishes_what_was_rejected_from_what_failed(tmp_path: Path, kind: str, word: str) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "go")
        await place.agent.got("session/prompt")
        call_now = {"toolCallId": "1", "title": "Edit", "kind": "edit", "status": "pending"}
        params = {"sessionId": session, "toolCall": call_now, "options": OPTIONS}
        place.agent.request(7, "session/request_permission", params)
        client.choose(await client.asked(), kind)
        place.agent.notify(
            "session/update", {"sessionId": session, "update": call("1", "failed", kind="tool_call_update")}
        )
        await end(place)
        await until(lambda: place.hub.agents["demo"].sessions[b"s1"].turns.running is None)
        found = await client.request("_antiphon/session/export", {"sessionId": session, "format": "markdown"})
        assert word in found["text"]


async def test_a_session_is_exported_in_three_formats(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
        answer = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "<b>Done</b> & well"}}
        done = call("1", "completed", ("/w/a", "old line", "new line"))
        client, session = await worked(place, tmp_path, thought, done, answer)
        await client.request("_antiphon/session/rename", {"sessionId": session, "title": "My / work"})
        exported = {
            each: await client.request("_antiphon/session/export", {"sessionId": session, "format": each})
            for each in ("markdown", "html", "json")
        }
        assert [each["name"] for each in exported.values()] == ["My-work.md", "My-work.html", "My-work.json"]
        assert [each["mimeType"] for each in exported.values()] == ["text/markdown", "text/html", "application/json"]
        text = exported["markdown"]["text"]
        assert text.startswith("# My / work\n") and "+new line" in text and "## demo ·" in text and "## You ·" in text
        assert "&lt;b&gt;Done&lt;/b&gt;" in exported["html"]["text"] and "<b>Done" not in exported["html"]["text"]
        whole = json.loads(exported["json"]["text"])
        assert [each["type"] for each in whole["entries"]] == ["message", "thought", "call", "message"]
        assert whole["session"]["turns"] == 1 and whole["session"]["cwd"] == str(tmp_path)
        assert whole["entries"][0]["at"] > "2020"
        refused = await client.refused("_antiphon/session/export", {"sessionId": session, "format": "pdf"})
        assert "markdown" in refused["data"]["hint"]


# Names of files.


def git(directory: Path, *words: str) -> None:
    subprocess.run(["git", "-C", directory, *words], check=True, capture_output=True)


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")


async def found(client: RawClient, session: str, query: str, limit: int = 50) -> list[str]:
    params = {"sessionId": session, "query": query, "limit": limit}
    names = (await client.request("_antiphon/session/files", params))["files"]
    return [f"{each['path']}/" if each["directory"] else each["path"] for each in names]


async def test_files_are_found_by_their_letters_without_what_git_ignores(tmp_path: Path) -> None:
    write(
        tmp_path, "src/app/main.py", "src/app/domain.py", "docs/main page.md", "build/main.o", ".gitignore", "kept.log"
    )
    write(tmp_path, ".ssh/id_ed25519_main", "späti.txt")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n", encoding="utf-8")
    git(tmp_path, "init")
    git(tmp_path, "add", "-f", "kept.log")
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        assert await found(client, session, "main") == ["src/app/main.py", "docs/main page.md", "src/app/domain.py"]
        assert await found(client, session, "SrAM") == ["src/app/main.py", "src/app/domain.py"]
        assert await found(client, session, "app/") == ["src/app/", "src/app/main.py", "src/app/domain.py"]
        assert await found(client, session, "kept") == ["kept.log"] and await found(client, session, "spä") == [
            "späti.txt"
        ]
        assert await found(client, session, "", 4) == [".gitignore", "docs/", "kept.log", "späti.txt"]
        assert await found(client, session, "[a-z]*") == []


async def test_files_of_a_directory_below_the_repository_are_relative_to_it(tmp_path: Path) -> None:
    git(tmp_path, "init")
    write(tmp_path, "sub/one.py", "two.py", "sub/three.tmp")
    (tmp_path / ".gitignore").write_text("*.tmp\n", encoding="utf-8")
    async with stage(tmp_path) as place:
        client = await place.client()
        assert await found(client, await client.new(tmp_path / "sub"), "") == ["one.py"]


async def test_a_directory_without_a_repository_is_looked_through_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_NAMES", 9)
    write(tmp_path, "a/one.py", "a/b/two.py", "node_modules/x/y.js", ".hidden/z", *(f"c/{each}" for each in range(10)))
    (tmp_path / "link").symlink_to("/etc")
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        assert await found(client, session, "one") == ["a/one.py"]
        assert await found(client, session, "y.js") == await found(client, session, "passwd") == []


async def test_a_hostile_repository_has_git_run_nothing(tmp_path: Path) -> None:
    write(tmp_path, "main.py", "evil")
    git(tmp_path, "init")
    ran = tmp_path / "ran"
    (tmp_path / "evil").write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    (tmp_path / "evil").chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "filter.x.clean", "core.sshCommand", "alias.ls-files"):
        git(tmp_path, "config", name, f"!{tmp_path}/evil" if name.startswith("alias") else f"{tmp_path}/evil")
    (tmp_path / ".gitattributes").write_text("* filter=x\n", encoding="utf-8")
    async with stage(tmp_path) as place:
        client = await place.client()
        assert "main.py" in await found(client, await client.new(tmp_path), "main")
        assert not ran.exists()


async def test_the_index_of_a_repository_elsewhere_is_not_read(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, "secret name.txt")
    git(other, "init")
    git(other, "add", ".")
    write(tmp_path, "mine.py")
    (tmp_path / ".git").write_text(f"gitdir: {other}/.git\n", encoding="utf-8")
    async with stage(tmp_path) as place:
        client = await place.client()
        assert await found(client, await client.new(tmp_path), "") == [".git", "mine.py"]


# Directories.


async def test_directories_are_listed_inside_the_roots(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in ("b", "a/inner", ".hidden", "a/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    write(tmp_path, "file")
    (tmp_path / "out").symlink_to(tmp_path_factory.mktemp("other"))
    async with stage(tmp_path) as place:
        client = await place.client()
        ask = "_antiphon/gateway/directories"
        assert await client.request(ask, {}) == {"path": str(tmp_path), "parent": None, "directories": ["a", "b"]}
        inner = {"path": str(tmp_path / "a"), "parent": str(tmp_path), "directories": ["inner"]}
        assert await client.request(ask, {"path": str(tmp_path / "b" / ".." / "a")}) == inner
        for path in ("/", str(tmp_path / "out"), str(tmp_path / "file"), "a"):
            assert (await client.refused(ask, {"path": path}))["message"]
        for principal in (Principal("eve"), Principal("guest", AccessRole.DRIVE, frozenset({"key0"}))):
            other = await place.client(principal)
            assert "may not" in (await other.refused(ask, {}))["message"]
