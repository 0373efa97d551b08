"""Settings from real files."""

import hashlib
import os
from pathlib import Path

import pytest

from antiphon.config.reader import MAX_FILE, read_file
from antiphon.config.settings import Loaded, load


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with a config directory in it."""
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(home / "config"))
    return home


def user(home: Path, text: str) -> Path:
    path = home / "config" / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def project(folder: Path, text: str) -> Path:
    path = folder / ".antiphon" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def untrusted(folder: Path) -> Loaded:
    return load(folder, lambda directory, digest: False)


def test_without_files_there_are_defaults_and_no_problems(home: Path) -> None:
    loaded = untrusted(home)
    assert (loaded.problems, loaded.notes, loaded.policy_broken) == ((), (), False)
    assert (loaded.settings.agent, loaded.settings.permission_mode, loaded.settings.on_ask) == ("", "default", "deny")


def test_the_nearest_project_counts_from_below(home: Path) -> None:
    work = home / "work"
    project(work, '[policy]\ndeny = ["Bash"]\n')
    inner = work / "inner"
    project(inner, '[policy]\ndeny = ["Edit"]\n')
    (inner / "deep" / "deeper").mkdir(parents=True)
    (work / "other").mkdir()
    assert [rule.text for rule in untrusted(inner / "deep" / "deeper").settings.deny] == ["Edit"]
    assert [rule.text for rule in untrusted(work / "other").settings.deny] == ["Bash"]


def test_home_makes_no_project_of_everything_in_it(home: Path) -> None:
    project(home, '[policy]\ndeny = ["Bash"]\n')
    (home / "work").mkdir()
    assert untrusted(home / "work").settings.deny == ()
    assert [rule.text for rule in untrusted(home).settings.deny] == ["Bash"]


def test_a_rule_has_its_file_and_line(home: Path) -> None:
    path = user(home, '\n[policy]\nallow = [\n"Read",\n]\n')
    (rule,) = untrusted(home).settings.allow
    assert (rule.source, rule.where) == ("user config", f"{path}, line 4")


def test_trust_is_asked_with_the_directory_and_the_digest_of_the_very_text(home: Path, tmp_path: Path) -> None:
    work = home / "work"
    path = project(work, '[policy]\nallow = ["Edit"]\n')
    link = tmp_path / "link"
    link.symlink_to(work)
    asked: list[tuple[Path, str]] = []

    def trusted(directory: Path, digest: str) -> bool:
        asked.append((directory, digest))
        return True

    loaded = load(link, trusted)
    assert asked == [(work, hashlib.sha256(path.read_bytes()).hexdigest())]
    assert [rule.text for rule in loaded.settings.allow] == ["Edit"] and loaded.notes == ()


def test_what_does_not_count_yet_is_reported_with_what_to_do(home: Path) -> None:
    work = home / "work"
    path = project(work, '[policy]\nallow = ["Edit"]\n[agents.x]\ncommand = ["x"]\n')
    (note,) = untrusted(work).notes
    assert str(path) in note.sentence and "`policy.allow`, `agents.x`" in note.sentence
    assert "antiphon policy trust" in note.hint


def test_a_corrupt_file_means_ask_and_never_allow(home: Path) -> None:
    path = user(home, '[policy]\nallow = ["Read"]\nmode = "bypassPermissions\n')
    loaded = untrusted(home)
    assert loaded.policy_broken and loaded.settings.allow == () and loaded.settings.permission_mode == "default"
    assert loaded.problems[0].sentence.startswith(f"{path}, line 3: ") and loaded.problems[0].hint


def test_a_corrupt_project_file_breaks_the_policy_of_the_user_too(home: Path) -> None:
    user(home, '[policy]\nallow = ["Read"]\nmode = "acceptEdits"\n')
    work = home / "work"
    project(work, "deny = \n")
    loaded = untrusted(work)
    assert loaded.policy_broken and loaded.settings.allow == () and loaded.settings.permission_mode == "default"


def test_a_rule_that_means_nothing_breaks_the_policy(home: Path) -> None:
    user(home, '[policy]\nallow = ["Read"]\ndeny = [\n  "Bush(rm *)",\n]\n')
    loaded = load(home, lambda *_: False, rule_problem=lambda text: "no such tool" if "Bush" in text else None)
    assert loaded.policy_broken and loaded.settings.allow == ()
    assert "line 4" in loaded.problems[0].sentence and "no such tool" in loaded.problems[0].sentence


def unreadable(kind: str, path: Path) -> None:
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "circle":
            path.symlink_to(path)
        case "large":
            path.write_bytes(b"#" * (MAX_FILE + 1))
        case "binary":
            path.write_bytes(b"a = 1\n\xff\xfe")
        case _:
            raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "circle", "large", "binary"])
def test_a_file_that_cannot_be_read_is_reported_and_breaks_the_policy(home: Path, kind: str) -> None:
    path = home / "config" / "config.toml"
    unreadable(kind, path)
    loaded = untrusted(home)
    assert loaded.policy_broken and len(loaded.problems) == 1
    assert str(path) in loaded.problems[0].sentence and loaded.problems[0].hint


def test_an_unreadable_project_file_is_never_trusted(home: Path) -> None:
    work = home / "work"
    (work / ".antiphon").mkdir(parents=True)
    unreadable("pipe", work / ".antiphon" / "config.toml")
    loaded = load(work, lambda *_: pytest.fail("there is nothing to trust"))
    assert loaded.policy_broken


def test_a_file_in_the_way_of_the_folder_is_not_a_project(home: Path) -> None:
    work = home / "work"
    work.mkdir()
    (work / ".antiphon").write_text("x", encoding="utf-8")
    assert untrusted(work).problems == ()


def test_secrets_are_not_shown(home: Path) -> None:
    user(home, '[agents.x]\ncommand = ["x", "--key=s3cret"]\nenv = { K = "s3cret" }\n[mcp.y]\nurl = "https://s3cret"\n')
    loaded = untrusted(home)
    assert loaded.problems == () and "s3cret" not in repr(loaded.settings)


def test_a_file_that_is_largest_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"#" * MAX_FILE)
    found = read_file(path)
    assert found is not None and found.trouble is None and len(found.text) == MAX_FILE


@pytest.mark.parametrize("engine", ["claude", "codex"])
def test_a_project_never_chooses_the_program_of_an_engine(engine: str, home: Path) -> None:
    path = project(home / "work", f'[engines.{engine}]\nexecutable = "/tmp/mine"\n')
    for trusted in (False, True):
        loaded = load(home / "work", lambda directory, digest, trusted=trusted: trusted)  # type: ignore[misc]
        note = f"{path} sets `engines.{engine}.executable`, which counts only in your own config file"
        assert [advice.sentence for advice in loaded.notes] == [note]


def test_engines_and_the_command_for_tasks_of_a_project_are_reported_to_count_only_in_the_users_file(
    home: Path,
) -> None:
    path = project(home / "work", '[duet]\nengines = ["evil --acp"]\ntasks = ["rm"]\nroute = "duet"\n')
    loaded = load(home / "work", lambda directory, digest: True)
    assert (loaded.settings.duet.engines, loaded.settings.duet.tasks, loaded.settings.duet.route) == (
        None,
        None,
        "duet",
    )
    note = f"{path} sets `duet.engines`, `duet.tasks`, which counts only in your own config file"
    assert [advice.sentence for advice in loaded.notes] == [note]
