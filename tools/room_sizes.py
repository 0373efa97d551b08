"""Keep the rooms small: counts lines, functions and methods, names what is too big, and ends with 1 if anything is.

A file has at most 600 lines, here and in the code around the package. In the package also: a function has at most 60
lines, a class at most 20 public methods, and nothing is called `utils.py`: a helper lives beside its one caller, or
earns a module named after what it does.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 600
FUNCTION_LINES = 60
PUBLIC_METHODS = 20
PACKAGE = "src"
AROUND = ("tests", "tools", "benchmarks", "examples")


def offences(root: Path) -> Iterator[str]:
    """Every limit that a file under `root` breaks, one sentence each."""
    for folder in (PACKAGE, *AROUND):
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root)
            if "node_modules" in name.parts:
                continue
            text = path.read_text(encoding="utf-8")
            if (lines := len(text.splitlines())) > FILE_LINES:
                yield f"{name}: {lines} lines, at most {FILE_LINES}"
            if folder == PACKAGE:
                if path.name == "utils.py":
                    yield f"{name}: name a module after what it does"
                yield from (f"{name}:{offence}" for offence in large_parts(ast.parse(text)))


def large_parts(tree: ast.Module) -> Iterator[str]:
    """Functions and classes of one module that are too big."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    yield f"{node.lineno}: `{node.name}` has {lines} lines, at most {FUNCTION_LINES}"
            case ast.ClassDef():
                count = len(public_methods(node))
                if count > PUBLIC_METHODS:
                    yield f"{node.lineno}: `{node.name}` has {count} public methods, at most {PUBLIC_METHODS}"
            case _:
                pass


def public_methods(node: ast.ClassDef) -> set[str]:
    """Names, so that a property and its setter count once."""
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
    return {method.name for method in methods if not method.name.startswith("_")}


def main(root: Path) -> int:
    """Print what is too big under `root`; the exit status says whether anything is."""
    found = list(offences(root))
    for offence in found:
        print(offence)
    if found:
        print("\nhint: split by purpose; a limit is never raised to admit a file", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent))
