"""Hold the source tree to its limits, count what makes it easy or hard to read, and list what stands out.

    python tools/source_tree.py                     # name every limit that is broken; ends with 1 if one is
    python tools/source_tree.py --numbers           # the numbers of the whole package
    python tools/source_tree.py --numbers duet cli  # and what stands out in these packages, name by name
    python tools/source_tree.py --shrink            # write the known offences anew, where there are fewer by now

A file has 600 lines at most, here and in the code around the package. No docstring, comment, function or class there uses an old word. The
other limits are those of the package:

    function    60 lines at most
    methods     20 public methods of a class at most
    name        no `utils`, `helpers` or `common`: a module is named after its subject
    gerund      no module and no public class is named by what it does (`opening.py`); a noun that ends in -ing is no gerund
    directory   15 modules at most, but for those that hold a module for each chapter or message family
    small       no module under 40 lines that only one other module imports: it belongs into that one
    class       a public class name is used once in the whole package; the same message of two versions counts as one
    any         `Any` at most 4 times per thousand lines of code
    cycle       no package imports another one that imports it, those for type checking included
    map         the docstring of a package lists its modules, one line each
    word        no name, docstring or comment uses a word of `OLD_WORDS`: the terms of the protocol say the same

What was there before its limit stands in `tools/known_offences.toml`, as a number for each limit and package. The
numbers only shrink. Everything is read from the syntax trees: nothing is imported.
"""

import argparse
import ast
import io
import re
import statistics
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = "antiphon"
AROUND: Final = ("tests", "tools", "benchmarks", "examples")
"""Code outside of the package, which has the limits on files and words alone."""
KNOWN: Final = Path("tools") / "known_offences.toml"

FILE_LINES: Final = 600
FUNCTION_LINES: Final = 60
PUBLIC_METHODS: Final = 20
SMALL: Final = 40
"""Lines below which a module with one importer belongs into that importer."""
DIRECTORY: Final = 15
"""Modules in a directory, without its `__init__`."""
ANY: Final = 4.0
"""Uses of `Any` per thousand lines of code."""

VAGUE: Final = frozenset({"utils", "helpers", "common"})
NOT_GERUNDS: Final = frozenset(
    {"string", "ring", "nothing", "everything", "thing", "framing", "setting", "pending", "testing"}
)
"""Words in -ing that are nouns or adjectives; `testing` is the usual name of such a module."""
CLASS_NOUNS: Final = frozenset(
    {"buffering", "finding", "heading", "listing", "missing", "ping", "reasoning", "recording", "ruling", "warning"}
)
"""More of them, as the last word of a class. An error may be called after what is missing."""
FAMILIES: Final = frozenset(
    {"conformance/suites/agent", "conformance/suites/client", "traffic/rules", "protocol/v1", "protocol/v2"}
)
"""Directories with a module for each chapter of the specification, or for each family of messages."""
VERSIONS: Final = {"protocol/v1": "messages", "protocol/v2": "messages"}
"""Directories with the same messages in two versions of the protocol, which have the same names."""

OLD_WORDS: Final = {
    "hear": "receive",
    "heard": "received",
    "hears": "receives",
    "nobody": "no client, no user: name what is absent",
    "patience": "timeout",
    "said": "the noun: text, message, value",
    "somebody": "a peer, a user, a process",
    "story": "transcript, analysis",
    "stranger": "peer, untrusted project",
    "strangers": "peers, untrusted projects",
    "tells": "sends, reports",
    "told": "sent, reported, given",
    "whoever": "the caller, the peer: name it",
    "wishes": "options, preferences",
    "withdraw": "cancel",
    "withdrawn": "cancelled",
}
"""Words that are not used here, and what to write instead. In names each is a whole word, between underscores or capitals."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MAY_BE_OLD: Final = re.compile(
    rf"(?<![a-z])(?:{'|'.join(f'[{word[0]}{word[0].upper()}]{word[1:]}' for word in OLD_WORDS)})(?![a-z])"
)
_LISTED: Final = re.compile(r"^ *([a-z_][a-z0-9_]*)(?:\.py|/)(?= +\S)", re.MULTILINE)


class Offence(NamedTuple):
    """A limit that is broken: which one, in which package, and a sentence about it."""

    limit: str
    package: str
    text: str


class Module:
    """One file of the package."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.relative = path.relative_to(root)
        parts = list(self.relative.with_suffix("").parts)
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join([PACKAGE, *(parts[:-1] if self.is_package else parts)])
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @property
    def top(self) -> str:
        """The package at the top level that it belongs to; a module beside the packages belongs to `antiphon`."""
        return self.relative.parts[0] if len(self.relative.parts) > 1 else PACKAGE

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def code_lines(self) -> int:
        """Lines that hold code: without blank ones, comments and docstrings."""
        documented: set[int] = set()
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return sum(
            1
            for number, line in enumerate(self.text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#") and number not in documented
        )

    @cached_property
    def public_classes(self) -> list[str]:
        classes = (node.name for node in self.tree.body if isinstance(node, ast.ClassDef))
        return [name for name in classes if not name.startswith("_")]

    @cached_property
    def any_count(self) -> int:
        """Uses of `typing.Any`, its import left out."""
        return sum(
            (isinstance(node, ast.Name) and node.id == "Any")
            or (isinstance(node, ast.Attribute) and node.attr == "Any")
            for node in ast.walk(self.tree)
        )

    @property
    def is_gerund(self) -> bool:
        words = self.relative.stem.split("_")
        return any(word.endswith("ing") and word not in NOT_GERUNDS for word in words)

    @property
    def gerund_classes(self) -> list[str]:
        """The public classes whose last word is a gerund."""
        last = {name: _WORD.findall(name)[-1].lower() for name in self.public_classes}
        return [name for name, word in last.items() if word.endswith("ing") and word not in NOT_GERUNDS | CLASS_NOUNS]

    @cached_property
    def listed(self) -> list[str]:
        """The modules and packages that its docstring lists: a name with `.py` or `/`, and what it has."""
        return _LISTED.findall(ast.get_docstring(self.tree, clean=False) or "")

    def old_words(self) -> Iterator[tuple[int, str]]:
        """The words of `OLD_WORDS` in names that are defined here, in docstrings and in comments, each with its line."""
        if _MAY_BE_OLD.search(self.text) is not None:
            yield from _old_words((*_defined_names(self.tree), *_prose(self.tree, self.text)))

    def imports(self, known: "dict[str, Module]") -> Iterator[str]:
        """The modules of the package that this one names, those for type checking and inside of functions too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found = whole if whole in known else node.module
                    if found in known:
                        yield found
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in known)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.rstrip(".") in known:
                yield node.value.rstrip(".")  # a late import by name


class SourceTree:
    """All modules of the package and who imports whom."""

    def __init__(self, root: Path) -> None:
        self.root = root
        top = root / "src" / PACKAGE
        self.modules = {module.name: module for module in (Module(path, top) for path in sorted(top.rglob("*.py")))}
        self.importers: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for found in module.imports(self.modules):
                if found != module.name:
                    self.importers[found].add(module.name)

    def single_importer(self) -> list[Module]:
        return [
            module
            for module in self.modules.values()
            if not module.is_package and len(self.importers[module.name]) == 1
        ]

    def too_small(self) -> list[Module]:
        return [module for module in self.single_importer() if module.lines < SMALL]

    def gerunds(self) -> list[Module]:
        return [module for module in self.modules.values() if not module.is_package and module.is_gerund]

    def repeated_classes(self) -> dict[str, list[Module]]:
        where: dict[str, list[Module]] = defaultdict(list)
        for module in self.modules.values():
            for name in module.public_classes:
                where[name].append(module)
        return {
            name: modules
            for name, modules in sorted(where.items())
            if len(modules) > 1
            and len({VERSIONS.get(module.relative.parent.as_posix()) or module for module in modules}) > 1
        }

    def full_directories(self) -> dict[Path, int]:
        sizes: dict[Path, int] = defaultdict(int)
        for module in self.modules.values():
            sizes[module.relative.parent] += not module.is_package
        return {
            path: size for path, size in sorted(sizes.items()) if size > DIRECTORY and path.as_posix() not in FAMILIES
        }

    def cycles(self) -> list[list[str]]:
        """Packages at the top level that import each other, directly or through others."""
        edges: dict[str, set[str]] = defaultdict(set)
        for target, sources in self.importers.items():
            for source in sources:
                one, other = _top(source), _top(target)
                if one != other and one and other:
                    edges[one].add(other)
        reach = {name: _reachable(name, edges) for name in edges}
        components = {
            tuple(sorted({name} | {other for other in reach[name] if name in reach.get(other, ())}))
            for name in edges
            if name in reach[name]
        }
        return [list(component) for component in sorted(components)]

    def any_per_thousand(self, package: str = "") -> float:
        """In the whole source, or in one package at the top level."""
        modules = [module for module in self.modules.values() if package in ("", module.top)]
        return 1000 * sum(module.any_count for module in modules) / max(sum(one.code_lines for one in modules), 1)

    def beside(self, package: Module) -> set[str]:
        """The modules and packages in the directory of a package, by name."""
        below = package.path.parent
        found = {path.stem for path in below.glob("*.py") if path.stem not in ("__init__", "__main__")}
        return found | {path.parent.name for path in below.glob("*/__init__.py")}


def _defined_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name that a module defines: classes, functions, arguments, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def _prose(tree: ast.Module, text: str) -> Iterator[tuple[int, str]]:
    """The docstrings and the comments of a module, without the code in backticks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, re.sub(r"`[^`]*`", "", node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"`[^`]*`", "", token.string)


def _top(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += edges.get(one, ())
    return found


# --- the limits


def offences(tree: SourceTree) -> Iterator[Offence]:
    """Every limit that is broken in a tree, known or not."""
    yield from _long_files(tree)
    yield from _old_words_around(tree)
    for module in tree.modules.values():
        where = Path("src") / PACKAGE / module.relative
        if module.relative.stem in VAGUE:
            yield Offence("name", module.top, f"{where}: name a module after its subject")
        yield from (Offence(limit, module.top, f"{where}:{text}") for limit, text in _large_parts(module.tree))
        if module.is_package and module.name != PACKAGE:
            yield from _map_faults(module, tree.beside(module), where)
        for line, word in module.old_words():
            yield Offence("word", module.top, f"{where}:{line}: not `{word}`, but {OLD_WORDS[word]}")
    yield from _misplaced_modules(tree)
    yield from _repeated_classes(tree)
    if (count := tree.any_per_thousand()) > ANY:
        yield Offence("any", PACKAGE, f"`Any` is used {count:.1f} times per thousand lines of code, at most {ANY:g}")
    for cycle in tree.cycles():
        yield Offence("cycle", PACKAGE, f"these packages import each other: {', '.join(cycle)}")


def _misplaced_modules(tree: SourceTree) -> Iterator[Offence]:
    """Modules with a name, a directory or a file that should not be theirs."""
    for module in tree.gerunds():
        yield Offence("gerund", module.top, f"{module.relative}: a module is named by a noun")
    for module in tree.modules.values():
        for name in module.gerund_classes:
            yield Offence("gerund", module.top, f"{module.relative}: a class is named by a noun, `{name}` is none")
    for path, size in tree.full_directories().items():
        top = path.parts[0] if path.parts else PACKAGE
        yield Offence("directory", top, f"{path}: {size} modules, at most {DIRECTORY}")
    for module in tree.too_small():
        [importer] = tree.importers[module.name]
        yield Offence("small", module.top, f"{module.relative}: {module.lines} lines, and only {importer} imports it")


def _repeated_classes(tree: SourceTree) -> Iterator[Offence]:
    for name, modules in tree.repeated_classes().items():
        names = ", ".join(module.name.removeprefix(f"{PACKAGE}.") for module in modules)
        for top in sorted({module.top for module in modules}):
            yield Offence("class", top, f"class `{name}` stands in {names}")


def _long_files(tree: SourceTree) -> Iterator[Offence]:
    for folder in ("src", *AROUND):
        for name, text in _sources(tree.root, folder):
            lines = len(text.splitlines())
            if lines > FILE_LINES:
                yield Offence("file", folder, f"{name}: {lines} lines, at most {FILE_LINES}")


def _sources(root: Path, folder: str) -> Iterator[tuple[Path, str]]:
    """The Python files below a folder, without packages of others, and their texts."""
    for path in sorted((root / folder).rglob("*.py")):
        if "node_modules" not in path.parts:
            yield path.relative_to(root), path.read_text(encoding="utf-8")


def _old_words_around(tree: SourceTree) -> Iterator[Offence]:
    """Old words in the code around the package. Variables there may have any name."""
    for folder in AROUND:
        for name, text in _sources(tree.root, folder):
            if _MAY_BE_OLD.search(text) is None:
                continue  # most files: to parse them all takes seconds
            parsed = ast.parse(text)
            kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            names = ((node.lineno, node.name) for node in ast.walk(parsed) if isinstance(node, kinds))
            for line, word in _old_words((*names, *_prose(parsed, text))):
                yield Offence("word", folder, f"{name}:{line}: not `{word}`, but {OLD_WORDS[word]}")


def _old_words(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for line, text in texts:
        yield from ((line, word) for found in _WORD.findall(text) if (word := found.lower()) in OLD_WORDS)


def _large_parts(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    yield "function", f"{node.lineno}: `{node.name}` has {lines} lines, at most {FUNCTION_LINES}"
            case ast.ClassDef():
                count = len(_public_methods(node))
                if count > PUBLIC_METHODS:
                    yield (
                        "methods",
                        f"{node.lineno}: `{node.name}` has {count} public methods, at most {PUBLIC_METHODS}",
                    )
            case _:
                pass


def _public_methods(node: ast.ClassDef) -> set[str]:
    """Names, so that a property and its setter count once."""
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
    return {method.name for method in methods if not method.name.startswith("_")}


def _map_faults(package: Module, there: set[str], where: Path) -> Iterator[Offence]:
    listed = package.listed
    if missing := sorted(there - set(listed)):
        yield Offence("map", package.top, f"{where}: the docstring does not list {', '.join(missing)}")
    if gone := sorted(set(listed) - there):
        yield Offence("map", package.top, f"{where}: the docstring lists {', '.join(gone)}, which is not there")
    if twice := sorted({name for name in listed if listed.count(name) > 1}):
        yield Offence("map", package.top, f"{where}: the docstring lists {', '.join(twice)} more than once")


Counts = dict[str, dict[str, int]]
"""Limit → package → number of offences."""


def counted(found: Iterable[Offence]) -> Counts:
    counts: Counts = defaultdict(lambda: defaultdict(int))
    for one in found:
        counts[one.limit][one.package] += 1
    return counts


def unknown(found: Iterable[Offence], known: Counts) -> list[Offence]:
    """All offences of a limit and a package that has more of them than are known."""
    found = list(found)
    counts = counted(found)
    return [one for one in found if counts[one.limit][one.package] > known.get(one.limit, {}).get(one.package, 0)]


def read_known(root: Path) -> Counts:
    path = root / KNOWN
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def shrink(root: Path, found: Iterable[Offence]) -> None:
    """Write the list of known offences anew: no number grows, and the file goes with the last one."""
    counts, known = counted(found), read_known(root)
    text = "# Offences that are older than their limit: limit, package, number. Numbers only shrink (`--shrink`).\n"
    left = False
    for limit, packages in known.items():
        rest = {name: min(number, counts[limit][name]) for name, number in packages.items() if counts[limit][name]}
        if rest:
            left = True
            text += f"\n[{limit}]\n" + "".join(f"{name} = {number}\n" for name, number in sorted(rest.items()))
    if left:
        (root / KNOWN).write_text(text, encoding="utf-8")
    else:
        (root / KNOWN).unlink(missing_ok=True)


# --- the numbers


def summary(tree: SourceTree) -> Iterator[tuple[str, object]]:
    modules = tree.modules.values()
    lengths = [module.lines for module in modules]
    yield "files", len(lengths)
    yield "lines", sum(lengths)
    yield "lines of code", sum(module.code_lines for module in modules)
    yield "median lines of a file", int(statistics.median(lengths))
    yield "largest file", max(lengths)
    yield f"directories with more than {DIRECTORY} modules", len(tree.full_directories())
    yield "modules with one importer", len(tree.single_importer())
    yield f"of these under {SMALL} lines", len(tree.too_small())
    yield "modules named by a gerund", len(tree.gerunds())
    yield "public class names used twice", len(tree.repeated_classes())
    yield "Any per thousand lines of code", f"{tree.any_per_thousand():.1f}"
    yield "cycles between packages, type checking included", len(tree.cycles())
    yield "packages whose docstring is not a map", sum(one.limit == "map" for one in offences(tree))


def details(tree: SourceTree, package: str) -> Iterator[str]:
    """What stands out in one package, given as `duet` or `engines/claude`."""
    prefix = f"{PACKAGE}.{package.replace('/', '.')}"
    inside = {name for name in tree.modules if name == prefix or name.startswith(f"{prefix}.")}
    directory = Path(package)
    yield f"{package}: {len(inside)} files, {tree.any_per_thousand(directory.parts[0]):.1f} Any per thousand lines of code"
    for path, size in tree.full_directories().items():
        if path == directory or directory in path.parents:
            yield f"  directory {path}: {size} modules"
    for module in tree.too_small():
        if module.name in inside:
            [importer] = tree.importers[module.name]
            yield f"  small: {module.relative} ({module.lines} lines), only for {importer}"
    yield from (f"  gerund: {module.relative}" for module in tree.gerunds() if module.name in inside)
    for name, modules in tree.repeated_classes().items():
        if inside & {module.name for module in modules}:
            yield f"  class {name}: {', '.join(module.name.removeprefix(f'{PACKAGE}.') for module in modules)}"
    for module in (one for one in tree.modules.values() if one.name in inside):
        if module.any_count:
            yield f"  Any: {module.any_count} in {module.relative}"
        if module.is_package:
            yield from (f"  map: {one.text}" for one in _map_faults(module, tree.beside(module), module.relative))


def show_numbers(tree: SourceTree, packages: Iterable[str]) -> None:
    for name, number in summary(tree):
        print(f"{number!s:>8}  {name}")
    for cycle in tree.cycles():
        print(f"          cycle: {' '.join(cycle)}")
    for package in packages:
        print("\n".join(details(tree, package)))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Hold the source tree to its limits.")
    parser.add_argument(
        "packages", nargs="*", help="with --numbers: packages to look into, such as duet or engines/claude"
    )
    parser.add_argument("--numbers", action="store_true", help="print numbers instead of broken limits")
    parser.add_argument(
        "--shrink", action="store_true", help="write the known offences anew, where there are fewer by now"
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the top of the tree")
    chosen = parser.parse_args(arguments)
    tree = SourceTree(chosen.root)
    if chosen.numbers:
        show_numbers(tree, chosen.packages)
        return 0
    found = list(offences(tree))
    if chosen.shrink:
        shrink(chosen.root, found)
    broken = unknown(found, read_known(chosen.root))
    for one in broken:
        print(f"{one.limit}: {one.text}")
    if broken:
        print(
            "\nhint: fold or split by subject; a limit is never raised, and no known offence is added", file=sys.stderr
        )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
