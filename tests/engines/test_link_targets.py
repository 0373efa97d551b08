"""What links mean: the paths and lines that editors write, and what is not a file."""

import pytest

from antiphon.engines.content import LinkTarget, link_target
from tests.rows import each_row


@each_row(
    ("uri", "place"),
    [
        ("file:///w/a.py", LinkTarget("/w/a.py")),
        ("file://localhost/w/a.py", LinkTarget("/w/a.py")),
        ("file:///w/a%20b%23c%C3%A9.py", LinkTarget("/w/a b#cé.py")),
        ("src/a.py", LinkTarget("/cwd/src/a.py")),
        ("../a.py#L3", LinkTarget("/a.py", 3, 3)),
        ("/abs/a.py", LinkTarget("/abs/a.py")),
        ("file:///w/src/", LinkTarget("/w/src/")),
        ("file:///", LinkTarget("/")),
        ("file:///w/../x/./a", LinkTarget("/x/a")),
    ],
)
def test_paths_are_absolute_and_decoded(uri: str, place: LinkTarget) -> None:
    assert link_target(uri, "/cwd") == place


@each_row(
    ("ending", "first", "last"),
    [
        ("#L42", 42, 42),
        ("#L42:50", 42, 50),
        ("#L42-50", 42, 50),
        ("#L42-L50", 42, 50),
        ("#L42..50", 42, 50),
        ("#42-50", 42, 50),
        ("#L42C7-L50C1", 42, 50),
        ("?line=42", 42, 42),
        ("?line=42:50", 42, 50),
        ("?symbol=run#L10:20", 10, 20),
        ("#L50:42", 42, 50),
        ("#L0:3", 1, 3),
    ],
)
def test_lines_are_read_however_they_are_written(ending: str, first: int, last: int) -> None:
    place = link_target(f"file:///w/a.py{ending}", "/cwd")
    assert place is not None
    assert (place.path, place.first, place.last, place.count) == ("/w/a.py", first, last, last - first + 1)


@pytest.mark.parametrize("ending", ["#Lines", "#heading-2", "?line=abc", "#L", "#L9999999999"])
def test_other_endings_mean_the_whole_file(ending: str) -> None:
    assert link_target(f"file:///w/a.md{ending}", "/cwd") == LinkTarget("/w/a.md")


def test_a_symbol_is_kept() -> None:
    assert link_target("file:///w/a.py?symbol=my_name#L10:20", "/cwd") == LinkTarget("/w/a.py", 10, 20, "my_name")


def test_an_editors_own_link_to_a_path_is_one_to_a_file() -> None:
    assert link_target("zed:///agent/selection?path=/w/a.py#L5:15", "/cwd") == LinkTarget("/w/a.py", 5, 15)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C:/w/a.py", "C:/w/a.py"),
        ("C:\\w\\a.py", "C:\\w\\a.py"),
        ("C:/w/a.py#L3", "C:/w/a.py"),
        ("\\\\share\\a.py", "\\\\share\\a.py"),
    ],
)
def test_paths_with_drives_stay_as_they_are(uri: str, path: str) -> None:
    place = link_target(uri, "/cwd")
    assert place is not None
    assert place.path == path


@pytest.mark.parametrize(
    "uri", ["https://example.com/a#L3", "zed:///agent/thread/7?name=x", "file://host/share/a", "", "http://[", "#L3"]
)
def test_what_lies_elsewhere_is_not_a_file(uri: str) -> None:
    assert link_target(uri, "/cwd") is None


@pytest.mark.parametrize(
    ("place", "words"),
    [(LinkTarget("/a"), ""), (LinkTarget("/a", 3, 3), "line 3"), (LinkTarget("/a", 3, 5), "lines 3-5")],
)
def test_lines_are_put_in_words(place: LinkTarget, words: str) -> None:
    assert place.lines == words
