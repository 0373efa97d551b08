"""Build the documentation as a site: collect its pages in `build/docs`, have MkDocs write `build/site`, and check the result.

    python tools/docs_site.py build --mkdocs .venv-docs/bin/mkdocs
    python tools/docs_site.py serve --mkdocs .venv-docs/bin/mkdocs

The pages under `docs/` are plain Markdown for a code host. On the way to the site:

- a link that leaves `docs/` (an example, a test, the changelog) gets a page with that file, which the search leaves out;
- a list directly below a paragraph gets the empty line that Python-Markdown wants;
- in code in a table, a `|` loses the backslash that a code host wants before it, and Python-Markdown shows;
- an option (`--cwd DIR`) gets a class, so that no line is broken after its hyphens;
- a diagram of states is drawn here as SVG: the usual script would come from another host;
- `reference/python/` is written: the public names by subject, for mkdocstrings to fill in from the docstrings; so are the pages of events
  and of exit statuses, from the schema and from the pages that have the tables.

The generator sees only the collected pages and `mkdocs.yml`, so another one that reads both can take its place.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import api_page  # type: ignore[import-not-found,unused-ignore]  # a script beside this one
import state_diagrams  # type: ignore[import-not-found,unused-ignore]

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
PAGES: Final = ROOT / "build" / "docs"
SITE: Final = ROOT / "build" / "site"

PROJECT: Final = "project"
"""Where in the site the files are that are not under `docs/`."""

RARE: Final = ("search:", "  boost: 0.3")
FRONT: Final = {
    PROJECT: ("search:", "  exclude: true"),
    "index.md": ("hide:", "  - navigation"),
    "adr": RARE,
    "evidence": RARE,
    "architecture.md": RARE,
    "lives.md": RARE,
}
"""What the generator is given about pages of a directory, or about a page."""

LANGUAGES: Final = {".py": "python", ".json": "json", ".toml": "toml", ".yml": "yaml", ".sh": "sh"}

LINK: Final = re.compile(r"(\]\(|(?:src|href)=\")([^)\s\"#]+)((?:#[^)\s\"]*)?)(?=[)\s\"])")
FENCE: Final = re.compile(r"\s*(```+|~~~+)\s*(\w*)")
ITEM: Final = re.compile(r"([-*]|\d+\.) ")
CODE: Final = re.compile(r"`[^`]+`")
OPTION: Final = re.compile(r"(?<!`)`-[^`]{1,28}`(?!`)")


# --- collecting the pages -------------------------------------------------------------------------------------------


class Collection:
    """The files of the site's source, by their path in it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._waiting: list[Path] = []
        self._linked: set[Path] = set()
        for path in sorted(DOCS.rglob("*")):
            if path.is_file():
                name = path.relative_to(DOCS).as_posix()
                self.files[name] = self._page(path, name) if path.suffix == ".md" else path.read_bytes()
        while self._waiting:
            path = self._waiting.pop()
            name = _name_in_project(path)
            self.files[name] = self._page(path, name) if path.suffix == ".md" else _source_page(path)
        written = {**python_pages(), "../events.md": events_page(), "../exit-statuses.md": statuses_page()}
        for name, text in written.items():
            self.files[os.path.normpath(f"reference/python/{name}")] = text.encode()

    def _page(self, path: Path, name: str) -> bytes:
        lines = path.read_text(encoding="utf-8").splitlines()
        about = FRONT.get(name.partition("/")[0])
        front = ["---", *about, "---", ""] if about else []
        return "\n".join([*front, *self._prepared(lines, path.parent, name)]).encode() + b"\n"

    def _prepared(self, lines: list[str], directory: Path, name: str) -> Iterator[str]:
        """Yield the lines of a page as the generator needs them."""
        fence, diagram, before = "", False, ""
        drawn: list[str] = []
        for line in lines:
            opened = FENCE.match(line)
            if fence:
                over = bool(opened) and line.strip() == fence
                if diagram and over:
                    yield state_diagrams.svg("\n".join(drawn))
                elif diagram:
                    drawn.append(line)
                else:
                    yield line
                fence = "" if over else fence
            elif opened:
                fence, diagram, drawn = opened[1], opened[2] == "mermaid", []
                if not diagram:
                    yield line
            else:
                if ITEM.match(line) and before.strip() and not (ITEM.match(before.lstrip()) or before[:1] in " #|"):
                    yield ""
                if line.startswith("|"):
                    line = CODE.sub(lambda found: found[0].replace("\\|", "|"), line)
                if not line.startswith("#"):  # there it would be an attribute of the heading
                    line = OPTION.sub(r"\g<0>{ .option }", line)
                yield LINK.sub(lambda found: found[1] + self._target(found[2], directory, name) + found[3], line)
            before = line

    def _target(self, link: str, directory: Path, name: str) -> str:
        """Return where a link of a page leads in the site."""
        if re.match(r"[a-z]+:", link):
            return link
        path = (directory / unquote(link)).resolve()
        if path.is_dir() and (path / "README.md").exists():
            path /= "README.md"
        if not path.exists():
            raise SystemExit(f"error: {name} links to {link}, which does not exist")
        if path.is_relative_to(DOCS):
            target = path.relative_to(DOCS).as_posix()
        else:
            target = _name_in_project(path)
            if path not in self._linked:
                self._linked.add(path)
                self._waiting.append(path)
        return PurePosixPath(os.path.relpath(target, os.path.dirname(name) or ".")).as_posix()

    def write(self, directory: Path) -> None:
        """Write what has changed, and remove what is no longer part of it."""
        for name, data in self.files.items():
            path = directory / name
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        for path in sorted(directory.rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(directory).as_posix() not in self.files:
                path.unlink()


def _name_in_project(path: Path) -> str:
    name = f"{PROJECT}/{path.relative_to(ROOT).as_posix()}"
    if path.is_dir():
        return f"{name}/index.md"
    return name if path.suffix == ".md" else f"{name}.md"


def _source_page(path: Path) -> bytes:
    """Return a page that shows a file of the project, or the names of those in a directory."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        text = "\n".join(sorted(each.name for each in path.iterdir() if each.name != "__pycache__"))
    else:
        text = path.read_text(encoding="utf-8").rstrip("\n")
    language = LANGUAGES.get(path.suffix, "text")
    front = f'---\ntitle: "{path.name}"\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n'
    return f"{front}# `{name}`\n\n`````{language}\n{text}\n`````\n".encode()


# --- the Python API -------------------------------------------------------------------------------------------------


def python_pages() -> dict[str, str]:
    """Return the pages of the Python API: directives for mkdocstrings, by subject."""
    import antiphon
    from antiphon import testing

    def page(title: str, about: str, names: Iterator[tuple[str, object]]) -> str:
        entries = "\n".join(_directive(name, value) for name, value in names)
        return f"# {title}\n\n{about}\n\n{entries}"

    grouped = {name for names in api_page.GROUPS.values() for name in names}
    errors = [name for name in antiphon.__all__ if name not in grouped and name != "__version__"]
    pages = {}
    for file, title, about, names in (
        ("agents.md", "For agents", "How to use these: [writing an agent](../../agents.md).", api_page.GROUPS["For agents"]),
        ("clients.md", "For clients", "How to use these: [writing a client](../../clients.md).", api_page.GROUPS["For clients"]),
        ("both.md", "For both sides", "How to use these: [the core below the SDKs](../../core.md).", api_page.GROUPS["For both"]),
        ("errors.md", "Errors", "All are `AcpError`s. [Error codes](../errors.md) lists the numbers.", errors),
    ):  # fmt: skip
        values = ((name, getattr(antiphon, name)) for name in names if name != "v1")
        pages[file] = page(title, about, values)
    tested = ((f"testing.{name}", getattr(testing, name)) for name in testing.__all__)
    pages["testing.md"] = (
        page("antiphon.testing", "How to use these: [testing](../../howto/testing.md).", tested)
        + "\n## antiphon.testing.fixtures\n\n::: antiphon.testing.fixtures\n    options:\n      heading_level: 3\n"
    )
    return pages | _message_pages()


def _message_pages() -> dict[str, str]:
    """Return a page for each topic of `antiphon.v1`."""
    from antiphon.protocol import v1

    topics = re.findall(r"^    (\w+)\.py +(.+)$", v1.__doc__ or "", re.MULTILINE)
    listed = [
        "# Messages: antiphon.v1",
        "",
        "Every message of ACP v1, by topic. In code all of them are `v1.NAME`.",
        "",
    ]
    pages = {}
    for module, about in topics:
        if module in ("methods", "version", "opt_in"):
            continue
        options = "    options:\n      summary: {attributes: true}\n      docstring_section_style: table\n"
        pages[f"v1/{module}.md"] = f"# {about[0].upper()}{about[1:]}\n\n::: antiphon.protocol.v1.{module}\n{options}"
        listed.append(f"- [`{module}`](v1/{module}.md): {about}")
    return {"v1/index.md": "\n".join(listed).replace("](v1/", "](") + "\n", **pages}


def _directive(name: str, value: object) -> str:
    module = getattr(value, "__module__", None)
    path = f"{module}.{getattr(value, '__qualname__', '')}" if module else str(getattr(value, "__name__", name))
    options = [f'heading: "antiphon.{name}"', f'toc_label: "{name}"', "show_root_heading: true", "heading_level: 2"]
    bases = [base for base in getattr(value, "__bases__", ()) if base.__qualname__ in api_page.UNFOLDED]
    inherited = [member for base in bases for member in vars(base) if not member.startswith("_")]
    if inherited:
        options.append(f"inherited_members: [{', '.join(inherited)}]")
    return f"::: {path}\n    options:\n" + "".join(f"      {option}\n" for option in options)


# --- other pages that are written for the site ------------------------------------------------------------------------


def events_page() -> str:
    """Return the page of the events of `antiphon run --json`, from their schema."""
    schema = json.loads((DOCS / "run-events.schema.json").read_text(encoding="utf-8"))
    shapes: dict[str, Any] = schema["$defs"]
    events = {tag: ref.rpartition("/")[2] for tag, ref in schema["discriminator"]["mapping"].items()}
    parts = [
        "# Events",
        "What `antiphon run --json` prints: one JSON object per line, each with a `type`. [antiphon run](../run.md#json-events) says when each comes; this page has "
        "every field, from the [schema](../run-events.schema.json). Fields may be added; ignore those that you do not know.",
    ]
    for tag, name in events.items():
        parts.append(f"## `{tag}` {{#{name.lower()}}}\n\n{_shape(shapes[name])}")
    parts.append("# Objects in events")
    for name, shape in shapes.items():
        if name not in events.values():
            parts.append(f"## {name}\n\n{_shape(shape)}")
    return "\n\n".join(parts) + "\n"


def _shape(shape: "dict[str, Any]") -> str:
    lines = [shape.get("description", ""), "", "| field | value | |", "|---|---|---|"]
    needed = shape.get("required", ())
    for name, value in shape.get("properties", {}).items():
        about = " ".join(value.get("description", "").split())
        lines.append(f"| `{name}` | {_value(value)}{'' if name in needed else ', optional'} | {about} |")
    return "\n".join(lines)


def _value(value: "dict[str, Any]") -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(_value(one) for one in value["anyOf"])
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if value.get("type") == "array":
        return f"list of {_value(value['items'])}" if value.get("items") else "list"
    return str(value.get("type", "any JSON value"))


def statuses_page() -> str:
    """Return the page of exit statuses: the tables of the pages that explain them."""
    return (
        f"# Exit statuses\n\n## All commands\n\n{_section('command-line.md', 'Exit statuses')}\n\n"
        f"## `antiphon run`\n\n{_section('run.md', 'Exit status')}\n\n## `antiphon doctor`\n\n{_section('doctor.md', 'Exit status')}\n"
    )


def _section(page: str, heading: str) -> str:
    """Return the text below a heading, with its links as the pages in `reference/` need them."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"error: docs/{page} has no section `{heading}`")
    return re.sub(r"\]\((?=[a-z])(?!https?:)", "](../", found[1].strip())


# --- checking the site ----------------------------------------------------------------------------------------------


class Resources(HTMLParser):
    """What a page loads by itself from other hosts, and what it shows and should not."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.pictures_without_text: list[str] = []
        self.escaped: list[str] = []
        self._cells = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Look at the addresses of what a browser fetches; links are for people."""
        found = dict(attributes)
        addresses = [found.get("src"), found.get("href") if tag == "link" else None, found.get("data")]
        followed = found.get("rel") in ("canonical", "prev", "next")
        if not followed:
            self.foreign += [each for each in addresses if each and re.match(r"(https?:)?//", each)]
        self._cells += tag == "td"
        if tag == "img" and not found.get("alt"):
            self.pictures_without_text.append(found.get("src") or "")

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a cell of a table."""
        self._cells -= tag == "td"

    def handle_data(self, data: str) -> None:
        """Look for what only the source of a table has."""
        if self._cells and "\\|" in data:
            self.escaped.append(data)


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a built site that its generator does not look at."""
    for path in sorted(site.rglob("*.html")):
        page = Resources()
        page.feed(path.read_text(encoding="utf-8"))
        name = path.relative_to(site)
        yield from (f"{name} loads {address}: the site has to work without other hosts" for address in page.foreign)
        yield from (f"{name} has a picture without a text: {source}" for source in page.pictures_without_text)
        yield from (f"{name} shows a backslash before a `|`: {text}" for text in page.escaped)
    for path in sorted(site.rglob("*.css")):
        for address in re.findall(r"url\([\"']?((?:https?:)?//[^)]+)", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads {address}"


# --- commands -------------------------------------------------------------------------------------------------------

ENVIRONMENT: Final = {"NO_MKDOCS_2_WARNING": "1"}
"""Material's note about its successor is an ADR of ours, and no line of every build."""


def build(mkdocs: str) -> int:
    """Build the site strictly: a warning is an error."""
    begin = time.monotonic()
    Collection().write(PAGES)
    command = [
        mkdocs,
        "build",
        "--strict",
        "--config-file",
        str(ROOT / "mkdocs.yml"),
    ]  # `--quiet` would count no warning
    done = subprocess.run(
        command, check=False, env={**os.environ, **ENVIRONMENT}, stderr=subprocess.PIPE, encoding="utf-8"
    )
    if done.returncode:
        sys.stderr.writelines(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("INFO"))
    found = list(problems(SITE)) if done.returncode == 0 else []
    sys.stderr.writelines(f"error: {each}\n" for each in found)
    if done.returncode or found:
        return 1
    pages = sum(1 for _ in SITE.rglob("*.html"))
    sys.stdout.write(f"{pages} pages in {SITE / 'index.html'}, {time.monotonic() - begin:.0f} s\n")
    return 0


def serve(mkdocs: str, address: str) -> int:
    """Serve the site on this machine, and collect its pages again while they change."""
    Collection().write(PAGES)
    command = [mkdocs, "serve", "--config-file", str(ROOT / "mkdocs.yml"), "--dev-addr", address]
    with subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}) as server:
        try:
            while server.poll() is None:
                time.sleep(1)
                Collection().write(PAGES)
        except KeyboardInterrupt:
            server.terminate()
    return 0


def main() -> int:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description="The documentation as a site.")
    parser.add_argument("command", choices=["build", "serve", "collect"])
    parser.add_argument("--mkdocs", default="mkdocs", help="the program")
    parser.add_argument("--address", default="127.0.0.1:8000", help="where to serve")
    options = parser.parse_args()
    if options.command == "collect":
        Collection().write(PAGES)
        return 0
    return build(options.mkdocs) if options.command == "build" else serve(options.mkdocs, options.address)


if __name__ == "__main__":
    sys.exit(main())
