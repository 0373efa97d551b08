"""The files of the page: vendored modules are what npm had, nothing in them makes script of text, and addresses change with content."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from antiphon.web.assets import PageAssets, page_assets, page_hash
from tests.rows import each_row

STATIC = Path(__file__).resolve().parents[2] / "src" / "antiphon" / "web" / "static"
VENDOR = STATIC / "vendor"
SCRIPT_FROM_TEXT = ("eval(", "new Function", "document.write", "innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc")
"""What makes script or elements of text."""
KNOWN_USES = {"vendor/preact.js": {"innerHTML"}, "vendor/highlight/core.js": {"innerHTML"}}
"""Paths of libraries that we never take, `dangerouslySetInnerHTML` and `highlightElement`; the policy of the page forbids both."""


def manifest() -> Any:
    return json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8"))


# Vendored modules.


def test_every_vendored_module_is_the_one_that_was_fetched() -> None:
    for entry in manifest()["files"]:
        assert hashlib.sha256((VENDOR / entry["file"]).read_bytes()).hexdigest() == entry["sha256"], entry["file"]


def test_nothing_lies_beside_the_vendored_modules_that_is_not_listed() -> None:
    listed = {"vendor.json", *(entry["file"] for entry in manifest()["files"])}
    listed |= {package["text"] for package in manifest()["packages"]}
    assert {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()} == listed


def test_every_vendored_package_has_its_licence() -> None:
    packages = {package["name"]: package for package in manifest()["packages"]}
    assert {entry["package"] for entry in manifest()["files"]} == set(packages)
    for package in packages.values():
        assert package["licence"] in ("MIT", "Apache-2.0", "BSD-3-Clause"), package
        assert len((VENDOR / package["text"]).read_text(encoding="utf-8")) > 500, package


def test_the_list_of_vendored_modules_has_no_address() -> None:
    assert not re.search(r"https?:|://|\.tgz", (VENDOR / "vendor.json").read_text(encoding="utf-8"))


def test_types_are_checked_against_the_vendored_versions() -> None:
    tools = json.loads(Path(__file__).with_name("package.json").read_text(encoding="utf-8"))["dependencies"]
    vendored = {package["name"]: package["version"] for package in manifest()["packages"]}
    vendored["highlight.js"] = vendored.pop("@highlightjs/cdn-assets")
    del vendored["@preact/signals-core"]  # @preact/signals names its version
    assert {name: version for name, version in tools.items() if name in vendored} == vendored


# Script from text.


@each_row("path", sorted(STATIC.rglob("*.js")))
def test_no_script_makes_script_or_elements_of_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = {word for word in SCRIPT_FROM_TEXT if word in text}
    assert found <= KNOWN_USES.get(path.relative_to(STATIC).as_posix(), set())
    assert path.is_relative_to(VENDOR) or "dangerouslySet" not in text


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]


# Addresses.


def test_every_import_of_a_script_names_a_file_that_is_there() -> None:
    assets = page_assets()
    missing = [
        f"{path} imports {name}"
        for path in assets.paths
        if path.endswith(".js")
        for name in assets.imports(path)
        if name not in assets.paths
    ]
    assert missing == []


def test_the_first_load_is_small() -> None:
    assets = page_assets()
    names = [f"{page_hash()}/{name}" for name in (*assets.styles, *assets.first_modules)]
    found = [asset for asset in map(assets.hashed, names) if asset is not None]
    sizes = {asset.path: len(asset.packed or asset.body) for asset in found}
    assert sum(sizes.values()) < 95_000, sorted(sizes.items(), key=lambda each: -each[1])


def test_the_page_names_all_modules_of_its_first_load_with_the_hash() -> None:
    assets = page_assets()
    index = assets.fixed("/")
    assert index is not None and b"@" not in re.sub(rb"<meta[^>]*>", b"", index.body)
    named = re.findall(r'rel="modulepreload" href="/static/([^/]+)/([^"]+)"', index.body.decode())
    assert [path for _, path in named] == assets.first_modules and {version for version, _ in named} == {page_hash()}


def test_everything_that_the_page_names_is_there() -> None:
    index = page_assets().fixed("/")
    assert index is not None
    for address in re.findall(r'(?:href|src)="(/[^"]+)"', index.body.decode()):
        found = page_assets().hashed(address.removeprefix("/static/")) or page_assets().fixed(address)
        assert found is not None, address


FILES = {
    "index.html": b"<!-- first load -->",
    "worker.js": b'const hash = "@HASH@", first = "@FIRST_LOAD@";',
    "css/a.css": b"p { color: red }",
    "js/main.js": b'import { a } from "./a.js";\nimport "../js/c.js";\nconst later = () => import("./later.js");\n',
    "js/a.js": b'/** @type {import("./types.js").T} */\nexport {\n  b,\n} from "./b.js";\nexport const a = 1;\n',
    "js/b.js": b'import{a as x}from"./a.js";import{c}from"./c.js";export const b = x;',
    "js/c.js": b"export const c = 1;",
    "js/later.js": b"export {};",
}


def test_the_first_load_is_what_is_imported_at_once_and_not_what_is_imported_later() -> None:
    assert PageAssets(FILES).first_modules == ["js/main.js", "js/a.js", "js/c.js", "js/b.js"]


def test_the_worker_knows_the_version_and_the_files_of_the_first_load() -> None:
    assets = PageAssets(FILES)
    worker = assets.fixed("/worker.js")
    names = ["css/a.css", "js/main.js", "js/a.js", "js/c.js", "js/b.js"]
    shown = json.dumps([f"/static/{assets.hash}/{name}" for name in names])
    assert worker is not None and worker.body.decode() == f'const hash = "{assets.hash}", first = {shown};'


def test_another_content_has_another_hash_and_the_old_one_is_not_found() -> None:
    before, after = PageAssets(FILES), PageAssets({**FILES, "js/c.js": b"export const c = 2;"})
    assert before.hash != after.hash
    assert before.hashed(f"{before.hash}/js/c.js") is not None and after.hashed(f"{before.hash}/js/c.js") is None


def test_only_some_files_have_an_address_that_stays() -> None:
    assets = page_assets()
    assert [assets.fixed(address) for address in ("/index.html", "/js/main.js", "/icons/", "/../assets.py")] == [
        None
    ] * 4


def test_a_compressed_file_is_the_same_at_every_start() -> None:
    one, other = (PageAssets({**FILES, "js/d.js": b"export const d = 1;" * 99}).hashed for _ in range(2))
    version = PageAssets({**FILES, "js/d.js": b"export const d = 1;" * 99}).hash
    first, second = one(f"{version}/js/d.js"), other(f"{version}/js/d.js")
    assert first is not None and second is not None and first.packed is not None and first.packed == second.packed


def test_scripts_are_as_small_as_modules_and_as_few_in_a_directory() -> None:
    scripts = sorted((STATIC / "js").rglob("*.js"))
    long = [str(each) for each in scripts if len(each.read_text(encoding="utf-8").splitlines()) > 600]
    counts = Counter(each.parent for each in scripts)
    assert long == [] and [str(each) for each, count in counts.items() if count > 15] == []
