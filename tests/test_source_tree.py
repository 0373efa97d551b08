"""The limits of the source tree, tried on small trees, and the names on the page about the architecture."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.limits import limit

ROOT = Path(__file__).resolve().parent.parent


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tool = _loaded("source_tree")
LONG = "x = 1\n" * 40
"""A module that is long enough to stand by itself."""


def write(root: Path, files: dict[str, str]) -> Path:
    """A tree whose package holds these files; every directory gets an `__init__` that lists what is beside it."""
    top = root / "src" / "antiphon"
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for directory in {top, *(path.parent for path in top.rglob("*.py"))}:
        init = directory / "__init__.py"
        if not init.exists():
            beside = [f"    {path.name}  a subject" for path in directory.glob("*.py")]
            beside += [f"    {path.name}/  a subject" for path in directory.iterdir() if path.is_dir()]
            init.write_text('"""A package.\n\n' + "\n".join(beside) + '\n"""\n', encoding="utf-8")
    return root


def broken(root: Path) -> list[str]:
    return [f"{one.limit}: {one.text}" for one in tool.offences(tool.SourceTree(root))]


def test_a_small_tree_in_order_breaks_no_limit(tmp_path: Path) -> None:
    write(tmp_path, {"choir/song.py": LONG, "choir/tenor.py": "from antiphon.choir.song import x\n" + LONG})
    assert broken(tmp_path) == []


def test_what_is_too_large_is_named_with_its_line(tmp_path: Path) -> None:
    methods = "\n".join(f"    def sing_{n}(self): ..." for n in range(21))
    write(
        tmp_path,
        {
            "choir/loud.py": f"class Loud:\n{methods}\n    def _hum(self): ...\n",
            "choir/slow.py": "async def slow():\n" + "    ...\n" * 60,
            "choir/utils.py": LONG,
        },
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_long.py").write_text("...\n" * 601, encoding="utf-8")
    assert broken(tmp_path) == [
        "file: tests/test_long.py: 601 lines, at most 600",
        "methods: src/antiphon/choir/loud.py:1: `Loud` has 21 public methods, at most 20",
        "function: src/antiphon/choir/slow.py:1: `slow` has 61 lines, at most 60",
        "name: src/antiphon/choir/utils.py: name a module after its subject",
    ]


def test_old_words_are_found_in_names_docstrings_and_comments_and_nowhere_else(tmp_path: Path) -> None:
    song = """'''What nobody `told` us.'''
class ToldTwice:
    def sing(self, withdrawn): ...  # as they heard it
    retold = "whoever was told"
"""
    write(tmp_path, {"choir/song.py": song + LONG})
    assert sorted(broken(tmp_path)) == [
        "word: src/antiphon/choir/song.py:1: not `nobody`, but no client, no user: name what is absent",
        "word: src/antiphon/choir/song.py:2: not `told`, but sent, reported, given",
        "word: src/antiphon/choir/song.py:3: not `heard`, but received",
        "word: src/antiphon/choir/song.py:3: not `withdrawn`, but cancelled",
    ]


def test_a_module_named_by_a_gerund_is_an_offence_and_a_noun_in_ing_is_none(tmp_path: Path) -> None:
    write(tmp_path, {"choir/singing.py": LONG, "choir/part_singing.py": LONG, "choir/framing.py": LONG})
    assert broken(tmp_path) == [
        "gerund: choir/part_singing.py: a module is named by a noun",
        "gerund: choir/singing.py: a module is named by a noun",
    ]


def test_a_public_class_named_by_a_gerund_is_an_offence(tmp_path: Path) -> None:
    classes = (
        "class PartSinging: ...\n\n\nclass _Singing: ...\n\n\nclass SingingVoice: ...\n\n\nclass NoteMissing: ...\n"
    )
    write(tmp_path, {"choir/song.py": classes + LONG})
    assert broken(tmp_path) == ["gerund: choir/song.py: a class is named by a noun, `PartSinging` is none"]


def test_an_old_word_in_a_test_is_an_offence_but_as_the_name_of_a_variable(tmp_path: Path) -> None:
    write(tmp_path, {"choir/song.py": LONG})
    (tmp_path / "tests").mkdir()
    lines = ["def test_nobody_sings() -> None:", '    """What is said."""', "    told = `whoever`", ""]
    (tmp_path / "tests" / "test_song.py").write_text(
        "\n".join(lines).replace("`whoever`", '"whoever"'), encoding="utf-8"
    )
    assert [one.split(" not ")[1].partition(",")[0] for one in broken(tmp_path)] == ["`nobody`", "`said`"]


def test_a_directory_holds_fifteen_modules_unless_they_are_chapters(tmp_path: Path) -> None:
    many = {f"{package}/voice_{n}.py": LONG for package in ("choir", "traffic/rules") for n in range(16)}
    write(tmp_path, many)
    assert broken(tmp_path) == ["directory: choir: 16 modules, at most 15"]


def test_a_short_module_belongs_into_the_only_one_that_imports_it(tmp_path: Path) -> None:
    files = {
        "choir/note.py": "x = 1\n",
        "choir/key.py": "y = 1\n",
        "choir/song.py": "from antiphon.choir import key\nfrom antiphon.choir.note import x\n" + LONG,
        "choir/tenor.py": "def sing():\n    from antiphon.choir.key import y\n" + LONG,
    }
    write(tmp_path, files)
    assert broken(tmp_path) == ["small: choir/note.py: 1 lines, and only antiphon.choir.song imports it"]


def test_a_public_class_name_is_used_once(tmp_path: Path) -> None:
    classes = "class Song: ...\nclass _Line: ...\n" + LONG
    write(tmp_path, {"choir/song.py": classes, "organ/song.py": classes})
    assert broken(tmp_path) == [
        "class: class `Song` stands in choir.song, organ.song",
        "class: class `Song` stands in choir.song, organ.song",
    ]
    packages = [one.package for one in tool.offences(tool.SourceTree(tmp_path))]
    assert packages == ["choir", "organ"]


def test_any_is_counted_per_thousand_lines_of_code(tmp_path: Path) -> None:
    write(
        tmp_path, {"choir/song.py": "import typing\nfrom typing import Any\na: Any = 1\n" + '"""Any"""\n' + "\n" * 40}
    )
    assert broken(tmp_path) == ["any: `Any` is used 333.3 times per thousand lines of code, at most 4"]


@pytest.mark.parametrize(
    "back", ["from antiphon.choir.song import x", "if TYPE_CHECKING:\n    from antiphon.choir.song import x"]
)
def test_packages_that_import_each_other_are_an_offence_also_for_types_alone(tmp_path: Path, back: str) -> None:
    write(tmp_path, {"choir/song.py": "from antiphon.organ.pipe import y\n" + LONG, "organ/pipe.py": f"{back}\n{LONG}"})
    assert broken(tmp_path) == ["cycle: these packages import each other: choir, organ"]


def test_the_docstring_of_a_package_lists_its_modules(tmp_path: Path) -> None:
    listed = '"""A choir.\n\n    song.py   songs\n    song.py   songs again\n    opera.py  gone\n"""\n'
    write(
        tmp_path,
        {"choir/song.py": LONG, "choir/tenor.py": LONG, "choir/__init__.py": listed, "choir/low/bass.py": LONG},
    )
    where = "map: src/antiphon/choir/__init__.py: the docstring"
    assert broken(tmp_path) == [
        f"{where} does not list low, tenor",
        f"{where} lists opera, which is not there",
        f"{where} lists song more than once",
    ]


# --- known offences


def run(root: Path, *arguments: str) -> int:
    status: int = tool.main(["--root", str(root), *arguments])
    return status


def test_known_offences_are_let_pass_and_more_of_them_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"choir/singing.py": LONG, "choir/humming.py": LONG})
    (tmp_path / "tools").mkdir()
    known = tmp_path / "tools" / "known_offences.toml"
    known.write_text("[gerund]\nchoir = 2\n", encoding="utf-8")
    assert run(tmp_path) == 0
    assert capsys.readouterr().out == ""
    known.write_text("[gerund]\nchoir = 1\norgan = 5\n", encoding="utf-8")
    assert run(tmp_path) == 1
    output = capsys.readouterr()
    assert output.out.count("gerund: ") == 2
    assert output.err.startswith("\nhint: ")


def test_the_list_of_known_offences_only_shrinks(tmp_path: Path) -> None:
    write(tmp_path, {"choir/singing.py": LONG, "organ/playing.py": LONG, "organ/tuning.py": LONG})
    (tmp_path / "tools").mkdir()
    known = tmp_path / "tools" / "known_offences.toml"
    known.write_text("[gerund]\nchoir = 3\norgan = 1\n\n[small]\nchoir = 1\n", encoding="utf-8")
    assert run(tmp_path, "--shrink") == 1
    assert known.read_text(encoding="utf-8").splitlines()[1:] == ["", "[gerund]", "choir = 1", "organ = 1"]
    (tmp_path / "src" / "antiphon" / "choir" / "singing.py").rename(tmp_path / "src" / "antiphon" / "choir" / "song.py")
    known.write_text("[gerund]\nchoir = 1\n", encoding="utf-8")
    run(tmp_path, "--shrink")
    assert not known.exists()


def test_numbers_are_printed_with_what_stands_out_in_a_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"choir/singing.py": LONG})
    assert run(tmp_path, "--numbers", "choir") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "       3  files" in lines
    assert "       1  modules named by a gerund" in lines
    assert lines[-2:] == ["choir: 2 files, 0.0 Any per thousand lines of code", "  gerund: choir/singing.py"]


# --- the page about the architecture

PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = {path.stem for path in (ROOT / "src" / "antiphon").iterdir() if not path.name.startswith("_")}
DOTTED = re.compile(r"`(?:antiphon\.)?([a-z_0-9]+(?:\.[A-Za-z_][A-Za-z0-9_]*)+)(?:\(\))?`")


def names_on(page: str) -> list[str]:
    """The dotted names in backticks that begin with one of our packages: `duet.routes.RoutePlayer.play`."""
    return [name for name in dict.fromkeys(DOTTED.findall(page)) if name.split(".")[0] in PACKAGES]


def fault_of(name: str) -> str:
    """Why a name does not exist; empty if it does."""
    parts = name.split(".")
    module, known = None, 0
    for end in range(1, len(parts) + 1):
        try:
            module = importlib.import_module(".".join(["antiphon", *parts[:end]]))
        except ModuleNotFoundError:
            break
        known = end
    found: object = module
    for part in parts[known:]:
        attributes = {*dir(found), *getattr(found, "__annotations__", ())}
        if part not in attributes:
            return f"`{name}`: no `{part}` in {getattr(found, '__name__', found)}"
        found = getattr(found, part, None)
    return ""


def test_names_are_taken_from_a_page_and_looked_up() -> None:
    page = (
        "`rpc.envelope.decode` → `antiphon.rpc.peer.Peer.receive()` → `rpc.peer.Peer.dance`, "
        "`config.toml`-like `session.update` and `some.other.name`"
    )
    names = names_on(page)
    assert names == ["rpc.envelope.decode", "rpc.peer.Peer.receive", "rpc.peer.Peer.dance", "config.toml"]
    assert [fault_of(name) for name in names] == [
        "",
        "",
        "`rpc.peer.Peer.dance`: no `dance` in Peer",
        "`config.toml`: no `toml` in antiphon.config",
    ]


def test_every_function_that_the_architecture_page_names_exists() -> None:
    assert [fault for name in names_on(PAGE.read_text(encoding="utf-8")) if (fault := fault_of(name))] == []


@pytest.mark.parametrize("subject", ["prompt", "token", "permission request"])
def test_the_architecture_page_walks_through_real_functions(subject: str) -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    [walk] = [section for section in sections if section.partition(",")[0] == f"A {subject}"]
    assert len(names_on(walk)) >= 5


@pytest.mark.slow
def test_a_prompt_and_a_token_pass_every_function_that_the_architecture_page_names() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "walk_counts.py"],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=limit(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a prompt as it is written down" in done.stdout
