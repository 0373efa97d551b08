"""What a project gives to an engine is found wherever the engine would find it, and trusted only as it was."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.config.environment import GIT_SAFETY, OWNERS, environment_for, harmless_git, owner_of
from antiphon.config.project_files import (
    ANY,
    CLAUDE,
    CODEX,
    MAX_FILES,
    ProjectFileKinds,
    directories_above,
    main_repository,
    project_files,
    untrusted,
)  # fmt: skip

FAMILIES = (CLAUDE, CODEX, ANY)
LEVELS = ("", "one", "one/two")
BELOW = ("", "settings.json", "a/b.md", "hooks/x.sh", "config.toml")
"""A file that is named itself, or one below a directory that is."""

places = st.tuples(st.sampled_from(LEVELS), st.sampled_from(ANY.paths), st.sampled_from(BELOW))
projects = st.dictionaries(places, st.binary(max_size=8), max_size=6)


@contextmanager
def written(project: dict[tuple[str, str, str], bytes]) -> Iterator[tuple[Path, set[str]]]:
    """A project with these files: its directory, and the paths of those that could be written."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(os.path.realpath(folder))
        (top / LEVELS[-1]).mkdir(parents=True)
        paths = set()
        for (level, name, below), content in project.items():
            file = top / level / name / below if below else top / level / name
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            except OSError:  # a file where another needs a directory
                continue
            paths.add(str(file))
        yield top, {path for path in paths if os.path.isfile(path)}


def belongs(family: ProjectFileKinds, path: str, top: Path) -> bool:
    """Whether a file is one that the family names."""
    relative = Path(path).relative_to(top).as_posix().removeprefix("one/").removeprefix("two/")
    return any(relative == name or relative.startswith(f"{name}/") for name in family.paths)


@settings(max_examples=60, deadline=None)
@given(projects, st.sampled_from(FAMILIES))
def test_every_file_is_found_from_every_directory_below_it(
    project: dict[tuple[str, str, str], bytes], family: ProjectFileKinds
) -> None:
    with written(project) as (top, paths):
        found = {file.path for file in project_files(family, [top / LEVELS[-1]]) if file.path.startswith(f"{top}/")}
        assert found == {path for path in paths if belongs(family, path, top)}


@settings(max_examples=60, deadline=None)
@given(projects, st.data())
def test_trust_ends_for_exactly_the_files_that_changed_or_came(
    project: dict[tuple[str, str, str], bytes], data: st.DataObject
) -> None:
    with written(project) as (top, paths):
        trusted = {file.path: file.digest for file in project_files(ANY, [top / LEVELS[-1]])}
        assert untrusted(project_files(ANY, [top / LEVELS[-1]]), trusted) == []
        changed = data.draw(st.sets(st.sampled_from(sorted(paths)))) if paths else set()
        for path in changed:
            Path(path).write_bytes(Path(path).read_bytes() + b"x")
        new = top / "one" / ".claude" / "new.json"
        if (top / "one" / ".claude").is_dir():
            new.write_bytes(b"")
            changed |= {str(new)}
        assert {file.path for file in untrusted(project_files(ANY, [top / LEVELS[-1]]), trusted)} == changed


def test_what_cannot_be_read_is_never_trusted(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / ".claude").mkdir()
    os.mkfifo(tmp_path / ".claude" / "pipe")
    many = tmp_path / ".codex"
    many.mkdir()
    for number in range(MAX_FILES + 1):
        (many / str(number)).touch()
    for family, path in ((CLAUDE, ".mcp.json"), (CODEX, ".codex")):
        found = {file.path: file.digest for file in project_files(family, [tmp_path])}
        assert found[str(tmp_path / path)] == ""
        assert str(tmp_path / path) in [file.path for file in untrusted(project_files(family, [tmp_path]), found)]


def test_the_home_directory_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").touch()
    (tmp_path / "work").mkdir()
    for start in (tmp_path, tmp_path / "work"):
        assert str(tmp_path) not in directories_above(start)
        assert [file for file in project_files(ANY, [start]) if file.path.startswith(str(tmp_path))] == []


def test_instructions_are_trusted_by_their_path_and_given_where_the_session_works(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "CLAUDE.md").write_text("a", encoding="utf-8")
    (tmp_path / "below" / "CLAUDE.md").write_text("b", encoding="utf-8")
    before = project_files(CLAUDE, [tmp_path / "below"])
    assert [file.path for file in before if file.path.startswith(str(tmp_path))] == [str(tmp_path / "CLAUDE.md")]
    (tmp_path / "CLAUDE.md").write_text("c", encoding="utf-8")
    assert project_files(CLAUDE, [tmp_path / "below"]) == before


def test_a_linked_work_tree_belongs_to_its_repository(tmp_path: Path) -> None:
    tree, repository = tmp_path / "tree", tmp_path / "repository"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {repository}/.git/worktrees/tree\n", encoding="utf-8")
    assert main_repository(str(tree)) == str(repository)
    assert main_repository(str(tmp_path)) is None


# The environment.

words = st.sampled_from([word for every in OWNERS.values() for word in every])
variables = st.dictionaries(
    st.one_of(st.builds(str.__add__, words, st.text("ABC_", max_size=4)), st.text("ABCXYZ_", min_size=1, max_size=8)),
    st.text("xyz", max_size=3),
)


@given(variables, st.sets(st.sampled_from(sorted(OWNERS))), variables)
def test_a_program_gets_the_keys_of_its_owners_and_all_that_is_nobodys(
    environment: dict[str, str], owners: set[str], own: dict[str, str]
) -> None:
    given = environment_for(owners, environment, own)
    for name in environment.keys() - own.keys():
        assert (name in given) == (owner_of(name) is None or owner_of(name) in owners)
    assert {name: given[name] for name in own} == own


@given(st.dictionaries(st.sampled_from(["GIT_CONFIG_COUNT", "PATH"]), st.sampled_from(["", "0", "2", "x", "-1"])))
def test_git_runs_nothing_that_a_repository_names(environment: dict[str, str]) -> None:
    changed = harmless_git(environment)
    last = int(changed["GIT_CONFIG_COUNT"])
    shown = {
        changed[f"GIT_CONFIG_KEY_{n}"]: changed[f"GIT_CONFIG_VALUE_{n}"]
        for n in range(last)
        if f"GIT_CONFIG_KEY_{n}" in changed
    }
    assert shown == GIT_SAFETY
