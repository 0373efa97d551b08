"""Sessions in a list: the last used first, with titles, a page at a time, and without what is no session."""

import json
import os
from pathlib import Path

import pytest

from antiphon.engines.claude.history import History
from antiphon.engines.claude.history.records import folder_name
from antiphon.engines.claude.history.session_list import PAGE
from antiphon.engines.claude.launch import environment_of
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.engines.claude.history.files import NEW, OLD, SessionFile, text


def titles(root: Path, cwd: str | None = None) -> list[str | None]:
    return [one.title for one in History(root).list(v1.ListSessions(cwd=cwd)).sessions]


def a_session(root: Path, prompt: str = "hello", at: str = "2026-03-01T10:00:00", **how: str) -> SessionFile:
    session = SessionFile(root, at=at, **how)
    session.user(prompt)
    session.setting()
    session.assistant(text("yes"))
    session.alone("last-prompt", lastPrompt=prompt, leafUuid=session.last)
    return session


@pytest.mark.parametrize("shape", [NEW, OLD])
def test_a_session_is_listed_with_its_place_title_and_time(tmp_path: Path, shape: str) -> None:
    session = a_session(tmp_path, "fix\n  the   bug", cwd="/song/my proj.x", version=shape)
    [found] = History(tmp_path).list(v1.ListSessions()).sessions
    assert found.session_id == session.id and found.cwd == "/song/my proj.x"
    assert found.title == "fix the bug" and found.updated_at == "2026-03-01T10:00:00.004000Z"


def test_the_last_used_come_first_whatever_the_times_of_the_files(tmp_path: Path) -> None:
    for name, at in {
        "old": "2026-01-01T00:00:00",
        "new": "2026-03-01T00:00:00",
        "middle": "2026-02-01T00:00:00",
    }.items():
        a_session(tmp_path, name, at)
    assert titles(tmp_path) == ["new", "middle", "old"]


def test_without_a_time_in_it_the_files_own_time_counts(tmp_path: Path) -> None:
    session = SessionFile(tmp_path)
    line = {
        "type": "user",
        "uuid": "u",
        "cwd": "/song",
        "message": {"role": "user", "content": "hi"},
        "timestamp": "soon",
    }
    session.write(line)
    os.utime(session.path, (1_700_000_000, 1_700_000_000))
    [found] = History(tmp_path).list(v1.ListSessions()).sessions
    assert found.updated_at == "2023-11-14T22:13:20.000000Z"


def test_pages_follow_one_another_and_new_sessions_do_not_disturb_them(tmp_path: Path) -> None:
    for number in range(PAGE + 7):
        a_session(tmp_path, f"n{number:03}", f"2026-03-01T10:{number // 60:02}:{number % 60:02}")
    history = History(tmp_path)
    first = history.list(v1.ListSessions())
    a_session(tmp_path, "newest", "2026-03-02T10:00:00")
    second = history.list(v1.ListSessions(cursor=first.next_cursor))
    names = [one.title for one in [*first.sessions, *second.sessions]]
    assert names == [f"n{number:03}" for number in reversed(range(PAGE + 7))]
    assert len(first.sessions) == PAGE and second.next_cursor is None


def test_a_foreign_cursor_is_refused(tmp_path: Path) -> None:
    for cursor in ("nonsense", "e30=", "é"):
        with pytest.raises(RequestError) as refused:
            History(tmp_path).list(v1.ListSessions(cursor=cursor))
        assert refused.value.code == Code.INVALID_PARAMS


def test_the_name_that_was_given_wins_over_the_made_up_one_and_that_over_the_prompt(tmp_path: Path) -> None:
    session = a_session(tmp_path, "the prompt")
    assert titles(tmp_path) == ["the prompt"]
    session.alone("summary", summary="A summary", leafUuid="x")
    assert titles(tmp_path) == ["A summary"]
    session.alone("ai-title", aiTitle="A made up title")
    assert titles(tmp_path) == ["A made up title"]
    session.alone("custom-title", customTitle="My title")
    session.alone("ai-title", aiTitle="Another made up title")
    assert titles(tmp_path) == ["My title"]
    session.alone("custom-title", customTitle="")
    assert titles(tmp_path) == ["Another made up title"]


def test_a_name_may_stand_in_a_file_beside_the_session(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    session.path.with_suffix("").mkdir()
    (session.path.with_suffix("") / "custom-title.json").write_text(
        json.dumps({"customTitle": "Aside"}), encoding="utf-8"
    )
    assert titles(tmp_path) == ["Aside"]


def test_words_that_look_like_a_title_are_not_taken_for_one(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    session.result("t1", "x", {"lines": [{"type": "custom-title", "customTitle": "Not mine"}]})
    assert titles(tmp_path) == ["hello"]


def test_a_title_is_one_short_line(tmp_path: Path) -> None:
    a_session(tmp_path, "word\x1b\u2028" * 500)
    [title] = titles(tmp_path)
    assert title is not None and len(title) <= 200 and title.startswith("word␛ word␛ ") and title.endswith("…")


def test_a_first_prompt_longer_than_what_is_read_still_gives_the_title(tmp_path: Path) -> None:
    session = SessionFile(tmp_path, version=OLD)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 200_000}}
    session.user([text('look at "this"'), picture])
    session.assistant(text("yes"))
    assert titles(tmp_path) == ['look at "this"']


def test_a_command_is_a_title_only_without_another_prompt(tmp_path: Path) -> None:
    session = SessionFile(tmp_path)
    session.command("/context", printed="usage")
    assert titles(tmp_path) == ["/context"]
    session.user("now really")
    assert titles(tmp_path) == ["now really"]


def test_what_is_not_a_session_is_left_out(tmp_path: Path) -> None:
    SessionFile(tmp_path)
    nameless = SessionFile(tmp_path)
    nameless.alone("custom-title", customTitle="Only a name")
    nameless.command("/clear", printed="")
    aside = SessionFile(tmp_path)
    aside.common = {"isSidechain": True}
    aside.user("a sub-agent's prompt")
    broken = SessionFile(tmp_path)
    broken.path.write_bytes(b"\x00\xff not json\n")
    (broken.folder / "notes.txt").write_text("x", encoding="utf-8")
    (broken.folder / "odd name.jsonl").write_text("x", encoding="utf-8")
    (broken.folder / "folder.jsonl").mkdir()
    assert titles(tmp_path) == []


def test_nothing_kept_gives_an_empty_list(tmp_path: Path) -> None:
    assert titles(tmp_path / "nowhere") == []


def test_nothing_is_archived_here(tmp_path: Path) -> None:
    a_session(tmp_path)
    assert History(tmp_path).list(v1.ListSessions(archived=v1.ArchiveFilter.ONLY)).sessions == []


def test_a_directory_has_its_own_sessions_also_where_the_folder_is_shared(tmp_path: Path) -> None:
    a_session(tmp_path, "dash", cwd="/song/a-b")
    a_session(tmp_path, "slash", cwd="/song/a/b")
    assert folder_name("/song/a-b") == folder_name("/song/a/b")
    assert titles(tmp_path, cwd="/song/a-b") == ["dash"]
    assert titles(tmp_path, cwd="/song/a/b/") == ["slash"]
    assert titles(tmp_path, cwd="/song") == []


def test_a_directory_is_found_through_a_link(tmp_path: Path) -> None:
    place = tmp_path / "real"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    a_session(tmp_path / "claude", "here", cwd=str(place))
    assert titles(tmp_path / "claude", cwd=str(tmp_path / "link")) == ["here"]


def test_the_name_of_a_long_directory_is_cut_and_hashed(tmp_path: Path) -> None:
    cwd = "/long/" + "/".join(f"part_{number}" for number in range(40))
    a_session(tmp_path, "deep", cwd=cwd)
    assert len(folder_name(cwd)) > 200 and folder_name(cwd)[:200] == folder_name(cwd + "x")[:200]
    assert titles(tmp_path, cwd=cwd) == ["deep"] and titles(tmp_path, cwd=cwd + "x") == []


def test_names_of_folders_are_those_of_claude_code() -> None:
    assert folder_name("/tmp/my proj.x_1") == "-tmp-my-proj-x-1"
    assert folder_name("/ünï/日本/🎵") == "--n-------"
    long = "/home/me/" + "/".join(f"abcdefghi_{number}" for number in range(30))
    assert folder_name(long).endswith(
        "-abcdefghi-14-abcdef-welgpi"
    )  # 200 characters, and what 31 makes of all UTF-16 units


def test_a_session_belongs_where_it_was_begun_or_moved_to(tmp_path: Path) -> None:
    session = a_session(tmp_path, cwd="/song/one")
    session.cwd = "/song/one/below"
    session.user("gone below")
    assert History(tmp_path).cwd_of(session.id) == "/song/one"
    moved = SessionFile(tmp_path, cwd="/song/two")
    moved.cwd = "/song/three"
    moved.user("hello")
    moved.alone("relocated", relocatedCwd="/song/two")
    assert History(tmp_path).cwd_of(moved.id) == "/song/two"


def test_the_branch_comes_along(tmp_path: Path) -> None:
    session = SessionFile(tmp_path)
    session.common = {"gitBranch": "feature/x"}
    session.user("hello")
    [found] = History(tmp_path).list(v1.ListSessions()).sessions
    assert found.meta == {"claudeCode": {"gitBranch": "feature/x"}}


def test_a_session_that_is_there_twice_is_listed_once_and_the_newer_is_found(tmp_path: Path) -> None:
    old = a_session(tmp_path, "old", "2026-01-01T00:00:00", cwd="/song/one", id="same")
    os.utime(old.path, (1, 1))
    new = a_session(tmp_path, "new", "2026-02-01T00:00:00", cwd="/song/two", id="same")
    assert titles(tmp_path) == ["new"] and History(tmp_path).find("same") == new.path


def test_a_change_is_seen_by_the_next_list(tmp_path: Path) -> None:
    history = History(tmp_path)
    session = a_session(tmp_path)
    assert [one.title for one in history.list(v1.ListSessions()).sessions] == ["hello"]
    session.alone("custom-title", customTitle="Renamed")
    assert [one.title for one in history.list(v1.ListSessions()).sessions] == ["Renamed"]


@pytest.mark.parametrize("id", ["", ".", "..", "../x", "a/b", "a\\b", "a.b", "\x00", "x" * 200, "-rf"])
def test_an_id_that_leads_elsewhere_names_nothing(tmp_path: Path, id: str) -> None:
    outside = tmp_path / "x.jsonl"
    outside.write_text("{}", encoding="utf-8")
    history = History(tmp_path)
    a_session(tmp_path)
    assert history.find(id) is None and history.cwd_of(id) is None and not history.delete(id)
    assert outside.exists()


def test_a_deleted_session_is_gone_with_its_sub_agents_and_the_others_stay(tmp_path: Path) -> None:
    session, other = a_session(tmp_path), a_session(tmp_path)
    session.agent("a1", "t1").user("x")
    history = History(tmp_path)
    assert history.delete(session.id) and history.find(session.id) is None
    assert not session.path.with_suffix("").exists() and other.path.exists()
    assert not history.delete(session.id)


def test_the_directory_is_the_one_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert History().root == tmp_path
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert History().root == tmp_path / ".claude"


def test_a_directory_without_a_root_is_the_same_one_for_us_and_for_the_cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "mine")
    assert History().root == tmp_path / "mine"
    assert environment_of({"CLAUDE_CONFIG_DIR": "mine"})["CLAUDE_CONFIG_DIR"] == str(tmp_path / "mine")
    assert "CLAUDE_CONFIG_DIR" not in environment_of({})


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what is read")
def test_of_five_hundred_sessions_only_the_ends_of_the_files_are_read(tmp_path: Path) -> None:
    for number in range(500):
        session = a_session(tmp_path, f"n{number}", cwd=f"/song/{number % 20}")
        filler = json.dumps({"type": "api-request-shape", "shape": "x" * 300_000}) + "\n"
        session.path.write_text(session.path.read_text(encoding="utf-8") + filler, encoding="utf-8")
        session.alone("last-prompt", lastPrompt=f"n{number}", leafUuid=session.last)
    before = bytes_read()
    page = History(tmp_path).list(v1.ListSessions())
    assert len(page.sessions) == PAGE and bytes_read() - before < 500 * 300_000 / 2


def bytes_read() -> int:
    """What this process has read so far."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])
