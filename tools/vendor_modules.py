"""Fetch the JavaScript modules that the page uses from npm, and write them into the package as they are served.

    python tools/vendor_modules.py            # fetch the versions below, and write everything anew
    python tools/vendor_modules.py --check    # fetch them, and compare with what is there; ends with 1 if something differs

A browser takes a module by its path, so the names of packages in imports become relative paths; comments that name a source map
are left out; nothing else is changed. `vendor.json` beside the modules has the name, version and licence of each package, the
integrity that npm gives its archive, and for each file where it comes from and its SHA-256 before and after. It has no address:
npm fetches from where the user is used to fetch. A version that is pinned already has to have the integrity that it had.
"""

import argparse
import hashlib
import json
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

VENDOR: Final = Path(__file__).resolve().parent.parent / "src" / "antiphon" / "web" / "static" / "vendor"
MANIFEST: Final = "vendor.json"
LICENCES: Final = "licences"

LANGUAGES: Final = (
    "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json", "kotlin", "lua",
    "makefile", "markdown", "perl", "php", "python", "ruby", "rust", "shell", "sql", "swift", "typescript", "xml", "yaml",
)  # fmt: skip
"""What code in sessions is written in; each is a file of its own, which the page loads when it meets the language."""


class Package(NamedTuple):
    """One package of npm: which files of it are served, and under which names."""

    name: str
    version: str
    files: Mapping[str, str]
    """Path in the package → path in the vendor directory."""
    exports: Mapping[str, str]
    """What others import it by → path in the package."""


PACKAGES: Final = (
    Package(
        "preact",
        "11.2.0",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js"},
        {"preact": "dist/preact.mjs", "preact/hooks": "hooks/dist/hooks.mjs"},
    ),
    Package(
        "@preact/signals-core",
        "1.14.5",
        {"dist/signals-core.mjs": "signals-core.js"},
        {"@preact/signals-core": "dist/signals-core.mjs"},
    ),
    Package("@preact/signals", "2.11.4", {"dist/signals.mjs": "signals.js"}, {}),
    Package("htm", "3.1.1", {"dist/htm.mjs": "htm.js"}, {}),
    Package("marked", "18.2.0", {"lib/marked.esm.js": "marked.js"}, {}),
    Package(
        "diff",
        "9.0.0",
        {
            "libesm/diff/base.js": "diff/base.js",
            "libesm/diff/character.js": "diff/character.js",
            "libesm/diff/line.js": "diff/line.js",
            "libesm/diff/word.js": "diff/word.js",
            "libesm/util/params.js": "diff/params.js",
            "libesm/util/string.js": "diff/string.js",
        },
        {},
    ),
    Package(
        "@highlightjs/cdn-assets",
        "11.12.0",
        {
            "es/core.min.js": "highlight/core.js",
            **{f"es/languages/{name}.min.js": f"highlight/languages/{name}.js" for name in LANGUAGES},
        },
        {},
    ),
)

_SPECIFIER: Final = re.compile(
    r"""((?:^|[;}])\s*(?:(?:import|export)\b[^;"'()`]*?\bfrom|import)\s*)(["'])([^"'\n]+)\2""", re.MULTILINE
)
"""What a statement imports from. In the lists of a language's words, `import` stands in quotes."""
_SOURCE_MAP: Final = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)


class Fetched(NamedTuple):
    """A package as npm gave it."""

    package: Package
    integrity: str
    licence: str
    licence_text: str
    texts: Mapping[str, str]
    """Path in the package → text of the file."""


def fetch(package: Package, directory: Path) -> Fetched:
    """Fetch a package into a directory, and read the files that are wanted."""
    words = [
        "npm",
        "pack",
        f"{package.name}@{package.version}",
        "--json",
        "--silent",
        "--pack-destination",
        str(directory),
    ]
    [packed] = json.loads(subprocess.run(words, check=True, capture_output=True, encoding="utf-8").stdout)
    with tarfile.open(directory / Path(packed["filename"]).name) as archive:
        names = {name.partition("/")[2]: name for name in archive.getnames()}

        def read(path: str) -> str:
            member = archive.extractfile(names[path]) if path in names else None
            if member is None:
                raise SystemExit(f"error: {package.name} {package.version} has no {path}")
            return member.read().decode("utf-8")

        about = json.loads(read("package.json"))
        licence = next(
            (name for name in names if re.fullmatch(r"licen[cs]e(\.(md|txt))?", name, re.IGNORECASE)), "LICENSE"
        )
        texts = {path: read(path) for path in package.files}
        return Fetched(package, packed["integrity"], about["license"], read(licence), texts)


def rewritten(fetched: Fetched, path: str) -> str:
    """Return a module with its imports as paths from where it is served."""
    package = fetched.package
    target = package.files[path]

    def rewrite(match: re.Match[str]) -> str:
        before, quote, name = match.groups()
        found = served_path(package, path, name)
        shown = posixpath.relpath(found, posixpath.dirname(target) or ".")
        return f"{before}{quote}{shown if shown.startswith('.') else f'./{shown}'}{quote}"

    return _SPECIFIER.sub(rewrite, _SOURCE_MAP.sub("", fetched.texts[path]))


def served_path(package: Package, path: str, name: str) -> str:
    """Return the path in the vendor directory of what a module imports by a name."""
    if name.startswith("."):
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if inside in package.files:
            return package.files[inside]
    for other in PACKAGES:
        if name in other.exports:
            return other.files[other.exports[name]]
    raise SystemExit(f"error: {path} of {package.name} imports {name}, which is not vendored")


def vendored(directory: Path) -> Iterator[tuple[str, str]]:
    """Fetch everything, and give each file of the vendor directory with its text; the list of them comes last."""
    packages: list[dict[str, str]] = []
    files: list[dict[str, str]] = []
    for package in PACKAGES:
        fetched = fetch(package, directory)
        licence = f"{LICENCES}/{package.name.strip('@').replace('/', '-')}.txt"
        yield licence, fetched.licence_text
        packages.append(
            {"name": package.name, "version": package.version, "licence": fetched.licence, "text": licence,
             "integrity": fetched.integrity}
        )  # fmt: skip
        for path, target in package.files.items():
            text = rewritten(fetched, path)
            yield target, text
            files.append(
                {"file": target, "package": package.name, "from": path, "original": digest(fetched.texts[path]),
                 "sha256": digest(text)}
            )  # fmt: skip
    files.sort(key=lambda each: each["file"])
    yield MANIFEST, json.dumps({"packages": packages, "files": files}, indent=2) + "\n"


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def changed_archives(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the packages whose version is as it was and whose archive is not: npm never changes one."""
    pinned = {(each["name"], each["version"]): each["integrity"] for each in before.get("packages", [])}
    return [
        each["name"]
        for each in after["packages"]
        if pinned.get((each["name"], each["version"]), each["integrity"]) != each["integrity"]
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Fetch the JavaScript modules of the page.")
    parser.add_argument("--check", action="store_true", help="compare with what is there, and write nothing")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        found = dict(vendored(Path(directory)))
    there = {path.relative_to(VENDOR).as_posix(): path for path in VENDOR.rglob("*") if path.is_file()}
    before = json.loads(there[MANIFEST].read_text(encoding="utf-8")) if MANIFEST in there else {}
    if changed := changed_archives(before, json.loads(found[MANIFEST])):
        print(f"error: npm has another archive for the same version of {', '.join(changed)}", file=sys.stderr)
        return 1
    old = {name: path.read_text(encoding="utf-8") for name, path in there.items()}
    differing = sorted(name for name in {*found, *old} if found.get(name) != old.get(name))
    for name in differing:
        print(name)
        if chosen.check:
            continue
        (VENDOR / name).parent.mkdir(parents=True, exist_ok=True)
        if name in found:
            (VENDOR / name).write_text(found[name], encoding="utf-8")
        else:
            there[name].unlink()
    return int(chosen.check and bool(differing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
