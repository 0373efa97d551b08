"""Scripts and styles are sent without comments, and are what they were."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.web.comments import without_script_comments, without_style_comments
from tests.limits import limit
from tests.rows import each_row

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "src" / "antiphon" / "web" / "static"
SCRIPTS = sorted((STATIC / "js").rglob("*.js"))

STAYS = (
    "const address = 'https://example.org'; // gone",
    'const both = "/* a */" + "it\\"s // b"; /* gone */',
    "const text = `// ${one /* gone */} /* ${`//${two}`} ${{ a: {} }.a} // end`; // gone",
    "const pattern = /[/*]\\/\\/ \"'`/gu; // gone",
    "if (a) /['\"]/.test(b); // gone",
    "const half = (a + b) / 2; // gone /",
    "const quarter = list[0] / 2 / 2; // gone '",
    "return /[^/]*\\//.exec(name) ?? a / b; // gone",
    "names.map((name) => /`/.test(name)); // gone",
)
"""Lines with something that looks like a comment, a string or a pattern and is none."""


def read_by_typescript(pairs: list[tuple[str, str, str]]) -> list[str]:
    """Return the names of the pairs that TypeScript does not read as the same program."""
    if not (HERE / "node_modules" / "typescript").exists():
        pytest.skip("npm has not installed TypeScript: `make test` does")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # Node is in the environment
    done = subprocess.run(
        ["node", str(HERE / "js" / "same_program.mjs")],
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=limit(),
        check=True,
        cwd=HERE,
        env=env,
    )
    return done.stdout.splitlines()


@pytest.mark.slow  # starts a program of others
def test_a_script_without_comments_is_the_same_program() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS} | {line: line for line in STAYS}
    pairs = [(name, text, without_script_comments(text)) for name, text in texts.items()]
    assert read_by_typescript(pairs) == []
    assert read_by_typescript([("other", "const a = `/* b */`;", "const a = ``;")]) == ["other"]


@each_row("line", STAYS)
def test_only_comments_are_left_out_of_a_script(line: str) -> None:
    found = without_script_comments(line)
    assert "gone" not in found and found != line
    assert without_script_comments(found) == found


@each_row("path", SCRIPTS)
def test_every_script_of_the_page_is_read_for_sure_and_keeps_the_numbers_of_its_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = without_script_comments(text)
    assert found != text and found.count("\n") == text.count("\n")
    assert "@param" not in found and "@type" not in found


@each_row("text", ("const a = `unfinished ${b} text", "const a = 'unfinished;", "} /a/ // unclear", "f(a // open"))
def test_a_script_that_cannot_be_read_for_sure_is_sent_as_it_is(text: str) -> None:
    assert without_script_comments(text) == text


def test_a_line_break_inside_a_comment_still_ends_a_statement() -> None:
    assert without_script_comments("const a = b /*\n*/ (c)") == "const a = b \n (c)"
    assert without_script_comments("a/**/b") == "a/**/b"


def test_only_comments_are_left_out_of_a_style_sheet() -> None:
    text = """a/* b */.c { /* d */
  content: "/* e */"; background: url(data:x/*y*/z);
  /* f
  g */ color: red;
}
"""
    assert (
        without_style_comments(text)
        == """a/**/.c { \ncontent: "/* e */"; background: url(data:x/*y*/z);\n\n color: red;\n}\n"""
    )
