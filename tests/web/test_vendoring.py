"""The tool that vendors modules: imports become paths from where a module is served, and an archive that changed is refused."""

import pytest

from tools import vendor_modules


def rewritten(name: str, path: str, text: str) -> str:
    package = next(package for package in vendor_modules.PACKAGES if package.name == name)
    return str(vendor_modules.rewritten(vendor_modules.Fetched(package, "", "MIT", "", {path: text}), path))


def test_names_of_packages_become_paths() -> None:
    text = 'import{h as t}from"preact";import{x}from"preact/hooks";export{a}from"@preact/signals-core";'
    expected = 'import{h as t}from"./preact.js";import{x}from"./hooks.js";export{a}from"./signals-core.js";'
    assert rewritten("@preact/signals", "dist/signals.mjs", text) == expected


def test_paths_inside_of_a_package_follow_its_files() -> None:
    text = "import Diff from './base.js';\nimport { generateOptions } from '../util/params.js';\n"
    expected = "import Diff from './base.js';\nimport { generateOptions } from './params.js';\n"
    assert rewritten("diff", "libesm/diff/line.js", text) == expected


def test_words_of_a_language_are_no_imports() -> None:
    text = 'export default()=>({keyword:["import","from","preact"]});\n//# sourceMappingURL=x.js.map\n'
    expected = 'export default()=>({keyword:["import","from","preact"]});\n'
    assert rewritten("@highlightjs/cdn-assets", "es/languages/python.min.js", text) == expected


def test_an_import_of_what_is_not_vendored_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"imports \./array\.js, which is not vendored"):
        rewritten("diff", "libesm/diff/line.js", "import x from './array.js';")


def test_another_archive_of_the_same_version_is_refused() -> None:
    pinned = {"packages": [{"name": "htm", "version": "3.1.1", "integrity": "sha512-a"}]}
    other = {"packages": [{"name": "htm", "version": "3.1.1", "integrity": "sha512-b"}]}
    newer = {"packages": [{"name": "htm", "version": "3.1.2", "integrity": "sha512-b"}]}
    assert (
        vendor_modules.changed_archives(pinned, other) == ["htm"]
        and vendor_modules.changed_archives(pinned, newer) == []
    )
