"""Roots: whatever path is thrown at them, it ends inside or is refused."""

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.errors import LocalProtocolError
from antiphon.local.files import FileProblem, NotAFile, NotPermitted, OutsideRoots, Roots, read_text, write_text
from antiphon.local.roots import EVERYWHERE
from tests.local.places import SECRET, as_unknown_user, trapped
from tests.rows import each_row

PARTS = [
    "a.txt", "sub", "b.txt", "in", "in_file", "up", "out", "out_file", "sideways", "dangling_out", "dangling_in", "chain",
    "chain2", "loop", "loop2", "loop3", "back", "deep", "roundabout", "slash", "secret", "root", "root2", "outside", "..",
    "..", ".", "", "~", "...", "nothing", "\0", "ü", "\udcff", "\ud800", "-", " ", "x" * 300, "\n", "proc", "self", "cwd",
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trapped(tmp_path_factory.mktemp("roots"))


def everything_in(folder: Path) -> dict[str, bytes]:
    """All files of a folder with what they hold, links not followed."""
    found = {}
    for where, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = os.path.join(where, name)
            mode = os.lstat(path).st_mode
            found[path] = Path(path).read_bytes() if stat.S_ISREG(mode) else str(mode).encode()
    return found


paths = st.tuples(
    st.sampled_from(["root", "root2", "", "root/sub"]), st.lists(st.sampled_from(PARTS) | st.text(max_size=5))
)


@given(paths)
@example(("root", ["nothing", "..", "..", "outside", "secret"]))
@example(("root", ["in", "..", "..", "root2", "secret"]))
def test_whatever_is_asked_for_is_inside_or_refused(root: Path, asked: tuple[str, list[str]]) -> None:
    start, parts = asked
    path = "/".join([str(root.parent), start, *parts])
    roots = Roots([root])
    try:
        place = roots.resolve(path)
    except FileProblem as error:
        words = str(error)
    else:
        words = ""
        check_inside(roots, root, place)
    assert not words or path in words or repr(path) in words


def check_inside(roots: Roots, root: Path, place: Path) -> None:
    assert place == root or root in place.parents
    assert os.path.realpath(place) == str(place)  # no link is left in it
    assert roots.resolve(place) == place


@given(paths)
def test_what_is_outside_is_never_read(root: Path, asked: tuple[str, list[str]]) -> None:
    start, parts = asked
    path = "/".join([str(root.parent), start, *parts])
    with suppress(FileProblem):
        assert read_text(path, roots=Roots([root])) != SECRET


@given(paths)
def test_what_is_outside_is_never_written(
    tmp_path_factory: pytest.TempPathFactory, asked: tuple[str, list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("written")
    root = trapped(folder)
    start, parts = asked
    before = {path: held for path, held in everything_in(folder).items() if not path.startswith(f"{root}/")}
    try:
        write_text("/".join([str(folder), start, *parts]), "mine", roots=Roots([root]))
    except FileProblem:
        assert not [path for path in everything_in(folder) if ".antiphon-" in path]
    after = {path: held for path, held in everything_in(folder).items() if not path.startswith(f"{root}/")}
    assert after == before


@given(st.text())
def test_any_text_at_all_is_a_path_inside_or_a_clear_error(root: Path, path: str) -> None:
    try:
        place = Roots([root]).resolve(path)
    except FileProblem:
        return
    assert place == root or root in place.parents


@each_row(
    ("path", "end"),
    [
        ("a.txt", "a.txt"), ("sub/../a.txt", "a.txt"), ("in/b.txt", "sub/b.txt"), ("in_file", "sub/b.txt"),
        ("new/deep/file", "new/deep/file"), ("new/../x", "x"), ("dangling_in", "nothing_yet"), ("roundabout/b.txt", "sub/b.txt"),
        ("up/root/a.txt", "a.txt"), (".", "."), ("~/x", "~/x"), ("sub/back/root/a.txt", "a.txt"), ("a.txt/", "a.txt"),
    ],
)  # fmt: skip
def test_what_leads_back_inside_is_fine(root: Path, path: str, end: str) -> None:
    assert Roots([root]).resolve(f"{root}/{path}") == root / end


@each_row(
    "path",
    ["..", "../secret", "out/secret", "out_file", "sideways/secret", "dangling_out", "chain/secret", "sub/deep/out/secret",
     "../root2/secret", "up/secret", "slash/etc/passwd", "sub/back/secret", "new/../../secret", "out/new/file"],
)  # fmt: skip
def test_what_leads_outside_is_refused(root: Path, path: str) -> None:
    with pytest.raises(OutsideRoots):
        Roots([root]).resolve(f"{root}/{path}")


def test_a_refusal_names_the_path_where_it_leads_and_the_roots(root: Path) -> None:
    with pytest.raises(OutsideRoots) as caught:
        Roots([root, root.parent / "root3"]).resolve(root / "out_file")
    for name in (root / "out_file", root.parent / "outside" / "secret", root, root.parent / "root3"):
        assert f"`{name}`" in str(caught.value)
    assert "hint: " in str(caught.value)


def test_a_folder_whose_name_only_begins_like_a_root_is_outside(root: Path) -> None:
    with pytest.raises(OutsideRoots):
        Roots([root]).resolve(f"{root}2/secret")


@each_row("path", ["a.txt", "./a.txt", "../x", "", "~/x", "~root/x", "file:///etc/passwd", "C:\\x"])
def test_a_relative_path_is_refused_with_a_hint(root: Path, path: str) -> None:
    with pytest.raises(NotAFile, match="relative path\nhint: "):
        Roots([root]).resolve(path)


@pytest.mark.parametrize("path", ["/x\0y", "/\ud800"])
def test_what_no_file_can_be_called_is_not_a_path(path: str) -> None:
    with pytest.raises(NotAFile, match="is not a path"):
        EVERYWHERE.resolve(path)


def test_a_loop_of_links_is_refused(root: Path) -> None:
    with pytest.raises(NotAFile, match="loop of links"):
        Roots([root]).resolve(root / "loop2")


def test_a_path_longer_than_the_system_takes_is_refused(root: Path) -> None:
    with pytest.raises(NotAFile):
        Roots([root]).resolve(f"{root}/{'x' * 300}/a")
    with pytest.raises(NotAFile):
        Roots([root]).resolve(str(root) + "/sub" + "/missing" * 2000)


def test_several_roots_are_all_open_and_may_be_links_themselves(root: Path) -> None:
    roots = Roots([root / "in", root.parent / "root2"])
    assert roots.folders == (root / "sub", root.parent / "root2")
    assert roots.resolve(root / "in" / "b.txt") == root / "sub" / "b.txt"
    assert roots.resolve(root.parent / "root2" / "secret").name == "secret"
    with pytest.raises(OutsideRoots):
        roots.resolve(root / "a.txt")


def test_without_roots_nothing_is_inside(root: Path) -> None:
    with pytest.raises(OutsideRoots, match="none at all"):
        Roots([]).resolve(root / "a.txt")


def test_roots_are_a_list_of_absolute_folders(root: Path) -> None:
    with pytest.raises(LocalProtocolError, match="hint: "):
        Roots(str(root))
    with pytest.raises(NotAFile):
        Roots(["."])


def test_a_folder_that_may_not_be_entered_is_refused_and_not_guessed_about() -> None:
    with as_unknown_user() as folder:
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0)
        with pytest.raises(NotPermitted):
            Roots([folder]).resolve(folder / "closed" / "x")


def test_a_folder_that_may_be_entered_but_not_listed_is_used() -> None:
    with as_unknown_user() as folder:
        (folder / "dark").mkdir()
        (folder / "dark" / "f").write_text("found", encoding="utf-8")
        (folder / "dark").chmod(0o311)
        assert read_text(folder / "dark" / "f", roots=Roots([folder])) == "found"
        (folder / "dark").chmod(0o700)


def test_a_link_put_in_the_way_after_the_check_is_not_followed(tmp_path: Path) -> None:
    root = trapped(tmp_path)
    roots = Roots([root])
    place = roots.resolve(root / "sub" / "secret")
    (root / "sub").rename(root / "was_sub")
    (root / "sub").symlink_to("../outside")
    with pytest.raises(NotADirectoryError), roots.way_to(place) as way:
        way.go_down()


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """A user turns a folder into a link and back, as fast as they can."""
    stop = threading.Event()

    def move(name: str, to: str) -> None:
        while True:
            try:
                (root / name).rename(root / to)
            except OSError:  # a write found no folder there and made one
                shutil.rmtree(root / to, ignore_errors=True)
            else:
                return

    def swap() -> None:
        while not stop.is_set():
            for name, to in (("sub", "aside"), ("swap", "sub"), ("sub", "swap"), ("aside", "sub")):
                move(name, to)

    rival = threading.Thread(target=swap)
    rival.start()
    try:
        yield
    finally:
        stop.set()
        rival.join()


def test_no_process_wins_a_race_against_the_check(tmp_path: Path) -> None:
    root = trapped(tmp_path)
    roots = Roots([root])
    (root / "sub" / "secret").write_text("ours\n", encoding="utf-8")
    (root / "swap").symlink_to("../outside")
    with swapping(root):
        for turn in range(600):
            with suppress(FileProblem):
                if turn % 20:
                    assert read_text(root / "sub" / "secret", roots=roots) != SECRET
                else:
                    write_text(root / "sub" / "secret", "ours\n", roots=roots)
    assert (tmp_path / "outside" / "secret").read_text(encoding="utf-8") == SECRET
