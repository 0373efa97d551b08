"""The files of the page: read once, named by a hash over all of them, compressed when they are first sent.

The hash is in the address of every file, so a browser may keep a file for ever, and never mixes the files of two versions. The page
itself (`index.html`), the service worker, the manifest and the icons have addresses that stay. Our scripts and styles are sent without
their comments; modules of others, whose comments may be licences, as they are.

Three texts in `index.html` and `worker.js` are filled in here: `@HASH@`; `"@FIRST_LOAD@"`, the addresses of all styles and modules that
the page needs before it shows anything, as a JSON array; and in `index.html` the comment `<!-- first load -->`, the links to the styles
and those that let the browser fetch the modules at once instead of one level of imports after the other.
"""

import gzip
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from antiphon.web.comments import without_script_comments, without_style_comments

__all__ = ["PAGE_POLICY", "WORKER_POLICY", "PageAsset", "PageAssets", "page_assets", "page_hash"]

MAIN: Final = "js/main.js"
"""The module that the page starts with."""

HASH_LENGTH: Final = 16
"""Hexadecimal digits of the hash that are in addresses."""

SCRIPTS, STYLES = "js/", "css/"
"""Where our own scripts and styles are."""

INDEX, WORKER, MANIFEST, ICONS = "index.html", "worker.js", "app.webmanifest", "icons/"

PAGE_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types antiphon",
    )
)
"""What the page may load and run: its own files. Text never becomes HTML or script, whatever an agent sends."""

WORKER_POLICY: Final = "default-src 'none'; script-src 'self'; connect-src 'self'"
"""The same for the service worker, which has the policy that its own response carries."""

TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}
"""Content types of the files that there may be."""

_PACKED: Final = frozenset({".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"})
_IMPORT: Final = re.compile(
    r"""^\s*(?:import|export)\b[^;"'()`]*?\bfrom\s*["']([^"']+)["']|^\s*import\s*["']([^"']+)["']"""
    r"""|[;}](?:import|export)\b[^;"'()`]*?\bfrom\s*["']([^"']+)["']""",
    re.MULTILINE,
)
"""A static import. A type in a comment, `import("…")`, has a parenthesis, and so has one that is loaded later."""


class PageAsset:
    """One file as it is sent."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self._source = source
        suffix = posixpath.splitext(path)[1]
        self.media_type = TYPES[suffix]
        self._packs = suffix in _PACKED

    @cached_property
    def body(self) -> bytes:
        """The content."""
        if self.path.startswith(SCRIPTS):
            return without_script_comments(self._source.decode()).encode()
        if self.path.startswith(STYLES):
            return without_style_comments(self._source.decode()).encode()
        return self._source

    @cached_property
    def etag(self) -> str:
        """A name for this content."""
        return f'"{sha256(self.body).hexdigest()[:HASH_LENGTH]}"'

    @cached_property
    def packed(self) -> bytes | None:
        """The body compressed by gzip; None if that does not make it smaller. The same bytes at every start."""
        packed = gzip.compress(self.body, 9, mtime=0) if self._packs else self.body
        return packed if len(packed) < len(self.body) else None


class PageAssets:
    """All files of the page, by their paths."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        total = sha256()
        for path, body in sorted(contents.items()):
            total.update(f"{path}\0{len(body)}\0".encode())
            total.update(body)
        self.hash = total.hexdigest()[:HASH_LENGTH]
        self._contents = contents
        self._assets = {path: PageAsset(path, self._filled(path, body)) for path, body in contents.items()}

    @property
    def paths(self) -> list[str]:
        """The paths of all files."""
        return sorted(self._contents)

    def hashed(self, address: str) -> PageAsset | None:
        """Return the file at an address below `/static/`; None without such a file, or if it is of another version."""
        version, _, path = address.partition("/")
        return self._assets.get(path) if version == self.hash else None

    def fixed(self, address: str) -> PageAsset | None:
        """Return the file at an address that stays: `/`, `/worker.js`, `/app.webmanifest` and `/icons/…`."""
        path = address.removeprefix("/") or INDEX
        stays = path in (WORKER, MANIFEST) or path.startswith(ICONS) or address == "/"
        return self._assets.get(path) if stays else None

    @cached_property
    def first_modules(self) -> list[str]:
        """The modules that the page needs before it can show anything: all that `js/main.js` imports, the nearest first."""
        found = [MAIN] if MAIN in self._contents else []
        for path in found:  # grows while it is walked
            found += [each for each in self.imports(path) if each not in found and each in self._contents]
        return found

    @property
    def styles(self) -> list[str]:
        """The style sheets, in the order of their names: `base.css` is the first."""
        return [path for path in self.paths if path.startswith(STYLES)]

    def imports(self, path: str) -> Iterator[str]:
        """Give the paths that a module imports when it is loaded, each once, whether they are there or not."""
        names: dict[str, None] = {}
        for match in _IMPORT.finditer(self._contents[path].decode()):
            name = next(filter(None, match.groups()))
            names[posixpath.normpath(posixpath.join(posixpath.dirname(path), name))] = None
        yield from names

    def _filled(self, path: str, body: bytes) -> bytes:
        if path not in (INDEX, WORKER):
            return body
        styles = [f"/static/{self.hash}/{each}" for each in self.styles]
        modules = [f"/static/{self.hash}/{each}" for each in self.first_modules]
        links = [f'<link rel="stylesheet" href="{each}">' for each in styles]
        links += [f'<link rel="modulepreload" href="{each}">' for each in modules]
        text = body.decode().replace("@HASH@", self.hash).replace('"@FIRST_LOAD@"', json.dumps([*styles, *modules]))
        return text.replace("<!-- first load -->", "\n".join(links)).encode()


@cache
def page_assets() -> PageAssets:
    """Return the files of the page in this package."""
    return PageAssets(dict(_files(files("antiphon.web").joinpath("static"))))


def page_hash() -> str:
    """Return the hash over all files of the page: a page that was loaded with another one is of another version."""
    return page_assets().hash


def _files(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif posixpath.splitext(entry.name)[1] in TYPES:  # an editor may leave files of its own there
            yield f"{prefix}{entry.name}", entry.read_bytes()
