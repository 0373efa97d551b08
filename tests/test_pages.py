"""Every command and example of the documentation is run, or has a note that says why not and which test does; all of them are parsed."""

import ast
import html
import json
import re
import shlex
import tomllib
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

import antiphon
from antiphon.cli.main import COMMANDS, load
from antiphon.cli.outcome import Misused
from antiphon.codes import Code, meaning_of, recovery_from
from tests.cli.program import NO_ENGINES
from tests.pages import ROOT, SHELLS, Block, RunningPage, blocks, commands, matches
from tests.rows import each_row

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
MADE = ("docs/adr/", "docs/evidence/", "docs/commands.md")
"""Pages that report something, or that a tool writes and a test compares."""
SITE = [page for page in PAGES[1:] if not page.relative_to(ROOT).as_posix().startswith(MADE)]
RUN = [
    page
    for page in SITE
    if any(each.runs for each in blocks(page.read_text(encoding="utf-8")) if each.language in SHELLS)
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_a_page_that_is_followed_from_top_to_bottom_does_what_it_says(page: Path, tmp_path: Path) -> None:
    with closing(RunningPage(tmp_path, NO_ENGINES)) as running:
        differences = running.run(page.read_text(encoding="utf-8"))
    assert not differences, "\n\n".join(differences)


def test_what_a_page_does_not_say_is_found(tmp_path: Path) -> None:
    page = (
        "```console\n$ antiphon --version\nantiphon 99\n$ antiphon run hello\n…demo without a model…\n$ false\n```\n"
        '```text title="a.txt"\nsong\n```\n```console\n$ cat a.txt\nsong\n$ antiphon sing\n$ echo $?\n2\n```\n'
    )
    with closing(RunningPage(tmp_path, NO_ENGINES)) as running:
        version, answer, ended = running.run(page)
    assert "antiphon 99" in version and "You are in" in answer and "ended with 1" in ended


def test_an_ellipsis_stands_for_text_and_for_lines() -> None:
    assert matches("a … c\n…\nz", "a b c\nd\ne\nz") and matches("…\nz", "z")
    assert not matches("a … c\nz", "a b c\nd\nz") and not matches("…\nz", "z\ny")


@each_row("page", SITE, ids=name_of)
def test_a_note_on_what_is_not_run_names_tests_and_pages_that_there_are(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        assert not block.note or block.note == "background" or block.note.startswith("no: "), block.note
        named = re.findall(r"(?:tests|tools|docs)/[\w/]+(?:\.\w+)?", block.note)
        assert all((ROOT / path).exists() for path in named), block.note


FRAGMENTS = ("await ", "async with ", "async for ")
"""What an example begins with, or contains at its top level, that is a part of a program."""


def standing_alone() -> list[tuple[str, str]]:
    """The examples in Python that are no files of a page which is run, and no parts of a program."""
    found = []
    for page in SITE:
        for block in blocks(page.read_text(encoding="utf-8")):
            lines = block.text.splitlines()
            part = any(line.startswith(FRAGMENTS) or (" = await " in line and line[0] != " ") for line in lines)
            if block.language == "python" and block.title is None and not part:
                found.append((f"{name_of(page)}:{block.line}", block.text))
    return found


@each_row(("where", "text"), standing_alone())
def test_an_example_that_stands_alone_runs(where: str, text: str) -> None:
    exec(compile(text, where, "exec"), {"__name__": "example", "__file__": str(ROOT / "examples" / "example.py")})


# --- all pages ---


def words_of(command: str) -> list[str]:
    """The words of `antiphon` in a command line: up to a pipe, a redirection or the end of the command."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if re.fullmatch(r"[|&;<>()]+", word):
            if words[:1] == ["antiphon"]:
                break
            words = []
        elif words or not re.fullmatch(r"[A-Z_]+=.*", word):  # variables before it
            words.append(word)
    return words


def parsed(command: str) -> None:
    """Have the command parse its words, without running it."""
    words = words_of(command)
    if words[:1] != ["antiphon"] or len(words) == 1 or words[1].startswith("-"):
        return
    assert words[1] in COMMANDS, command
    given = words[2 : words.index("--")] if "--" in words else words[2:]
    try:
        load(words[1]).parser().parse_args(given)
    except Misused as error:
        if "--" not in words:
            raise AssertionError(f"{command}: {error}") from error
    except SystemExit as end:
        if end.code:  # `--help` ends with 0
            raise AssertionError(command) from end


def check(block: Block) -> None:
    if block.language in SHELLS:
        for command in commands(block):
            if "…" not in command.words:
                parsed(command.words)
    elif block.language == "yaml":
        for line in re.findall(r"^ *(?:- )?(?:run: )?(antiphon (?:\\\n|[^\n])*)", block.text, re.MULTILINE):
            parsed(line)
    elif block.language == "python":
        compile(block.text, "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
    elif block.language == "json":
        lines = block.text.splitlines()
        for text in lines if all(line.startswith("{") for line in lines) else [block.text]:
            json.loads(text)
    elif block.language == "toml":
        tomllib.loads(block.text)


@each_row("page", PAGES, ids=name_of)
def test_the_commands_exist_and_the_examples_are_valid(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        check(block)


@each_row("page", PAGES, ids=name_of)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        inside = link.startswith(("python/", "../reference/python/", "reference/python/"))  # written for the site
        assert inside or (page.parent / link).exists(), link


# --- troubleshooting ---

OF_OTHERS = ("antiphon: command not found", "No module named 'antiphon'")
"""Errors of a shell and of Python, which do not stand in our source."""

IN_PARTS = {
    "is open in another Antiphon": ("is open {where}", "in another Antiphon"),
    "cannot be used: Address already in use": ("cannot be used: {error.strerror}",),
}
"""Text that the source puts together, or that the system adds."""


def test_the_errors_of_the_troubleshooting_page_are_in_the_source_and_are_twenty_or_more() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    quoted = [heading.strip("`") for heading in headings if heading.startswith("`") and heading.endswith("`")]
    assert len(headings) >= 20 and len(quoted) >= 18
    for error in quoted:
        parts = [part.strip(" ,") for part in error.split("…") if len(part.strip(" ,")) > 3]
        pieces = [piece for part in parts for piece in IN_PARTS.get(part, (part,))]
        assert error in OF_OTHERS or (pieces and all(piece in source for piece in pieces)), error


# --- error codes ---


def test_the_page_of_error_codes_has_every_code_with_its_meaning() -> None:
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \u2212(\d+) \| `(\w+)` \| (.+?) \| (.+?) \| ?(.*?) ?\|$", text, re.MULTILINE)
    tries = {True: "yes", False: "no", None: "not known"}
    expected = []
    for code in Code:
        again, first = recovery_from(meaning_of(code))
        expected.append((str(-code), code.name, meaning_of(code), tries[again], first))
    assert rows == expected


def test_the_page_of_error_codes_has_every_public_error() -> None:
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    public = {name for name in antiphon.__all__ if isinstance(getattr(antiphon, name), type)}
    errors = {name for name in public if issubclass(getattr(antiphon, name), antiphon.AcpError)}
    bases = {"AcpError", "ProtocolError", "ResponseError"}
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == errors - bases


# --- recorded terminal sessions ---


@pytest.mark.slow
def test_the_recorded_session_of_run_shows_what_the_program_prints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import casts  # type: ignore[import-not-found,unused-ignore]  # scripts beside the package
    import terminal_film  # type: ignore[import-not-found,unused-ignore]

    monkeypatch.setattr(terminal_film, "KEYS", 1000)  # a whole command at once
    monkeypatch.setattr(casts, "HOME", tmp_path / "ada")  # the usual one is for one recording at a time
    shown = (DOCS / "assets" / "casts" / "run.svg").read_text(encoding="utf-8")
    last = casts.record("run").text()[-1]
    written = {html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", shown)}
    for line in filter(str.strip, last):
        assert any(line in text or text in line for text in written if text.strip()), (
            f"`python tools/casts.py run` writes it: {line}"
        )


@each_row("name", ["run", "chat", "setup", "duet"])
def test_a_recorded_session_is_one_small_picture_that_fetches_nothing(name: str) -> None:
    text = (DOCS / "assets" / "casts" / f"{name}.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert len(text) < 200_000 and "prefers-reduced-motion" in text and "<title>" in text
    assert re.findall(r"https?://[^\"' ]+", text) == ["http://www.w3.org/2000/svg"]
    paths = re.findall(r"(?<![\w.:/])/(?:home|tmp|Users|root|work)/[\w./-]*", text)
    assert all(path.startswith("/tmp/ada/") for path in paths), "a path of the machine that recorded it"
