"""Count what makes a source tree easy or hard to read, and list what stands out.

    python tools/package_counts.py            # the numbers of the whole package
    python tools/package_counts.py duet cli   # and what stands out in these packages, name by name

Everything is read from the syntax trees: nothing is imported.
"""

import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

PACKAGE: Final = "antiphon"
SMALL: Final = 40
"""Lines below which a module with one importer belongs into that importer."""
DIRECTORY: Final = 15
"""Modules in a directory, without its `__init__`."""
NOT_GERUNDS: Final = frozenset({"string", "ring", "nothing", "everything", "thing", "framing", "setting", "pending"})
"""Words in -ing that are nouns or adjectives."""


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
        return [
            node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        ]

    @cached_property
    def any_count(self) -> int:
        """Uses of `typing.Any`, its import left out."""
        return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(self.tree)) + sum(
            isinstance(node, ast.Attribute) and node.attr == "Any" for node in ast.walk(self.tree)
        )

    @property
    def is_gerund(self) -> bool:
        words = self.relative.stem.split("_")
        return any(word.endswith("ing") and word not in NOT_GERUNDS for word in words)

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
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known:
                yield node.value  # a late import by name


class Counts:
    """The numbers of a package."""

    def __init__(self, source: Path) -> None:
        root = source / PACKAGE
        self.modules = {module.name: module for module in (Module(path, root) for path in sorted(root.rglob("*.py")))}
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

    def repeated_classes(self) -> dict[str, list[str]]:
        where: dict[str, list[str]] = defaultdict(list)
        for module in self.modules.values():
            for name in module.public_classes:
                where[name].append(module.name)
        return {name: modules for name, modules in sorted(where.items()) if len(modules) > 1}

    def full_directories(self) -> dict[Path, int]:
        sizes: dict[Path, int] = defaultdict(int)
        for module in self.modules.values():
            sizes[module.relative.parent] += not module.is_package
        return {path: size for path, size in sorted(sizes.items()) if size > DIRECTORY}

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

    def any_per_thousand(self) -> float:
        modules = self.modules.values()
        return 1000 * sum(module.any_count for module in modules) / sum(module.code_lines for module in modules)


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


def summary(counts: Counts) -> Iterator[tuple[str, object]]:
    modules = counts.modules.values()
    lengths = [module.lines for module in modules]
    yield "files", len(lengths)
    yield "lines", sum(lengths)
    yield "lines of code", sum(module.code_lines for module in modules)
    yield "median lines of a file", int(statistics.median(lengths))
    yield "largest file", max(lengths)
    yield f"directories with more than {DIRECTORY} modules", len(counts.full_directories())
    yield "modules with one importer", len(counts.single_importer())
    yield f"of these under {SMALL} lines", len(counts.too_small())
    yield "modules named by a gerund", len(counts.gerunds())
    yield "public class names used twice", len(counts.repeated_classes())
    yield "Any per thousand lines of code", f"{counts.any_per_thousand():.1f}"
    yield "cycles between packages, type checking included", len(counts.cycles())


def details(counts: Counts, package: str) -> Iterator[str]:
    """What stands out in one package, given as `duet` or `engines/claude`."""
    prefix = f"{PACKAGE}.{package.replace('/', '.')}"
    inside = {name for name in counts.modules if name == prefix or name.startswith(f"{prefix}.")}
    directory = Path(package)
    yield f"{package}: {len(inside)} files"
    for path, size in counts.full_directories().items():
        if path == directory or directory in path.parents:
            yield f"  directory {path}: {size} modules"
    for module in counts.too_small():
        if module.name in inside:
            [importer] = counts.importers[module.name]
            yield f"  small: {module.relative} ({module.lines} lines), only for {importer}"
    yield from (f"  gerund: {module.relative}" for module in counts.gerunds() if module.name in inside)
    for name, modules in counts.repeated_classes().items():
        if inside & set(modules):
            yield f"  class {name}: {', '.join(module.removeprefix(f'{PACKAGE}.') for module in modules)}"
    for module in counts.modules.values():
        if module.name in inside and module.any_count:
            yield f"  Any: {module.any_count} in {module.relative}"


def main(source: Path, packages: list[str]) -> int:
    counts = Counts(source)
    for name, number in summary(counts):
        print(f"{number!s:>8}  {name}")
    for cycle in counts.cycles():
        print(f"          cycle: {' '.join(cycle)}")
    for package in packages:
        print("\n".join(details(counts, package)))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path("src"), sys.argv[1:]))
