"""Build the Zed extension: a folder to install or publish, and beside it an archive for each target.

`python tools/zed_extension.py [--repository URL] [--out DIR] [--target NAME …]`

An archive has the launcher, our wheel and the wheels it needs, for the versions of Python in PYTHONS: those that the lock names, with their
hashes. The same tree gives the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "packages" / "zed"
PYTHONS = ("311", "312", "313", "314")
PACKAGES = ("msgspec", "tree-sitter", "tree-sitter-bash")
"""What the agent needs: our dependency, and what the policy judges Bash rules with."""

TARGETS = {
    "darwin-aarch64": ("macosx_11_0_arm64",),
    "darwin-x86_64": ("macosx_10_15_x86_64",),
    "linux-x86_64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
}
"""What Zed calls it → what Python calls it."""

UNPUBLISHED = "https://antiphon.example/antiphon"
"""An address that cannot exist: the project is not published yet."""


def version() -> str:
    """Our version, from the one place where it stands."""
    text = (ROOT / "src" / "antiphon" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    assert found is not None
    return found[1]


def manifest(repository: str, digests: dict[str, str]) -> str:
    """The text of `extension.toml`. `digests`: target → SHA-256 of its archive."""
    license_name = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license"]
    assert license_name == "Apache-2.0"  # one of those that Zed accepts
    parts = [
        f"""\
id = "antiphon"
name = "Antiphon"
version = "{version()}"
schema_version = 1
description = "Claude Code and Codex as one agent"
authors = ["The Antiphon authors"]
repository = "{repository}"

[agent_servers.antiphon]
name = "Antiphon"
icon = "icon/antiphon.svg"
"""
    ]
    for target, digest in digests.items():
        archive = f"{repository}/releases/download/v{version()}/{archive_name(target)}"
        parts.append(
            f"""
[agent_servers.antiphon.targets.{target}]
archive = "{archive}"
cmd = "./antiphon"
args = ["agent"]
sha256 = "{digest}"
"""
        )
    return "".join(parts)


def archive_name(target: str) -> str:
    """The file that is put beside a release."""
    return f"antiphon-{target}.tar.gz"


def our_wheel(folder: Path) -> Path:
    """Build our wheel."""
    command: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, ROOT]
    env = {"SOURCE_DATE_EPOCH": "315532800", **os.environ}  # 1980: zip files know nothing before
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("antiphon-*.whl")
    return wheel


def locked() -> str:
    """The part of the lock that is about PACKAGES."""
    text = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0] in PACKAGES)


def fetch(target: str, folder: Path, pythons: Sequence[str] = PYTHONS) -> list[Path]:
    """Download the wheels for a target, for every Python, all at once."""
    lock = folder / "lock.txt"
    lock.write_text(locked(), encoding="utf-8")
    platforms = [word for platform in TARGETS[target] for word in ("--platform", platform)]

    def fetch_for(python: str) -> None:
        command = [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"),
            *("--only-binary", ":all:", "--implementation", "cp", "--python-version", python, *platforms),
            *("--require-hashes", "--requirement", str(lock), "--dest", str(folder / python)),
        ]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(len(pythons)) as pool:
        list(pool.map(fetch_for, pythons))
    return [*{wheel.name: wheel for wheel in folder.glob("*/*.whl")}.values()]  # one wheel may be for all of them


def pack(wheels: list[Path]) -> bytes:
    """The archive of one target."""
    files = {f"wheels/{wheel.name}": wheel for wheel in wheels}
    files |= {path.name: path for path in (SOURCE / "launcher").iterdir() if path.is_file()}
    files["LICENSE"] = ROOT / "LICENSE"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(files.items()):
            data = path.read_bytes()
            info = tarfile.TarInfo(name)  # no owner, no time: the same tree gives the same bytes
            info.size, info.mode = len(data), 0o755 if name == "antiphon" else 0o644
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)


def build(out: Path, repository: str, targets: list[str]) -> Path:
    """Build everything, and return the folder of the extension."""
    out.mkdir(parents=True, exist_ok=True)
    digests: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        ours = our_wheel(Path(scratch))
        for target in targets:
            wheels = Path(scratch, target)
            wheels.mkdir()
            data = pack([ours, *fetch(target, wheels)])
            (out / archive_name(target)).write_bytes(data)
            digests[target] = hashlib.sha256(data).hexdigest()
    folder = out / "antiphon"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "icon").mkdir(parents=True)
    (folder / "extension.toml").write_text(manifest(repository, digests), encoding="utf-8")
    for name in ("icon/antiphon.svg", "README.md"):
        shutil.copyfile(SOURCE / name, folder / name)
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    return folder


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the Zed extension.", allow_abbrev=False)
    parser.add_argument("--repository", default=UNPUBLISHED, help="the address that the releases are under")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "zed", help="where to build; dist/zed if not given")
    parser.add_argument("--target", action="append", choices=[*TARGETS], help="only this one; may be repeated")
    options = parser.parse_args()
    folder = build(options.out, options.repository.rstrip("/"), options.target or [*TARGETS])
    print(f"the extension is {folder}, its archives are beside it")
    if options.repository == UNPUBLISHED:
        print("its archives have no address yet: say --repository https://… (make zed-extension REPOSITORY=https://…)")


if __name__ == "__main__":
    main()
