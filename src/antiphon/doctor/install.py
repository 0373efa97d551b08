"""Checks of Python, the system, this installation and its extras."""

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

import antiphon
from antiphon.catalogue.programs import CLAUDE, CODEX, CliMissing, find_cli
from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem

__all__ = ["EXTRAS", "command", "extra", "ours", "python"]

OLDEST: Final = (3, 11)
NEWEST_TESTED: Final = (3, 13)

EXTRAS: Final = {
    "chat": ("prompt_toolkit", "rich"),
    "policy": ("tree_sitter", "tree_sitter_bash"),
    "claude": ("claude_agent_sdk",),
    "codex": ("codex_cli_bin",),
    "serve": ("httptools", "httpx", "uvicorn", "websockets"),
    "traces": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
    "fleet": ("cryptography",),
    "schema": ("jsonschema",),
}
"""What can be installed besides → the packages that it brings."""

_WITHOUT: Final = {
    "chat": "`antiphon chat` does not work without it",
    "serve": "without it an agent on a network can be neither reached nor served",
    "traces": "without it a gateway sends nothing to OpenTelemetry",
    "fleet": "without it agents run on this machine only",
    "schema": "without it `antiphon run --output-schema` does not work",
    "policy": "without it a Bash rule allows nothing: such calls are asked about",
}
_PROGRAMS: Final = {"claude": CLAUDE, "codex": CODEX}


class DirectUrl(msgspec.Struct):
    """The source of a package that was installed without an index: `direct_url.json`."""

    url: str = ""
    dir_info: dict[str, object] = {}


def python(context: DoctorContext) -> Sequence[Finding]:
    """Check the Python version and the system."""
    import sqlite3

    version = platform.python_version()
    where = f"{platform.python_implementation()} {version} on {platform.system()} {platform.machine()}"
    facts = {
        "version": version,
        "platform": sys.platform,
        "machine": platform.machine(),
        "path": sys.executable,
        "sqlite": sqlite3.sqlite_version,
        "msgspec": getattr(msgspec, "__version__", ""),
    }
    if sys.version_info < OLDEST:
        return problem(f"{where} is too old: 3.11 or newer is needed", "install a newer Python", **facts)
    if sys.platform != "linux":
        return note(f"{where}; this system is meant to work, and untested", **facts)
    if sys.version_info[:2] > NEWEST_TESTED:
        return note(f"{where}; tested up to {'.'.join(map(str, NEWEST_TESTED))}", **facts)
    return ok(where, **facts)


def ours(context: DoctorContext) -> Sequence[Finding]:
    """Check our version, and how it was installed."""
    here = Path(antiphon.__file__).resolve().parent
    facts = {"version": antiphon.__version__, "path": str(here)}
    installed = _distribution(here)
    if installed is None:
        return ok(f"{antiphon.__version__}, run from {here} without being installed", how="source", **facts)
    how, words = _how(installed)
    facts["how"] = how
    if installed.version != antiphon.__version__:
        return note(
            f"{antiphon.__version__}, {words}, but what was installed is {installed.version}",
            "install it again, so that both are one version",
            **facts,
        )
    return ok(f"{antiphon.__version__}, {words}", **facts)


def command(context: DoctorContext) -> Sequence[Finding]:
    """Check the `antiphon` program on the PATH."""
    path = context.environment.get("PATH", os.defpath)
    found = shutil.which("antiphon", path=path)
    beside = Path(sys.prefix, "bin", "antiphon")
    if found is None:
        where = f"{beside} is one: add its directory to the PATH, or write" if beside.exists() else "write"
        return note(
            "there is no `antiphon` on the PATH, so editors cannot start it by that name",
            f"{where} its whole path into the editor's settings",
        )
    if beside.exists() and os.path.realpath(found) != os.path.realpath(beside):
        return note(
            f"`antiphon` on the PATH is {found}, and this is another one, of {sys.prefix}",
            "take out the one that you do not want, or write the whole path into the editor's settings",
            path=found,
        )
    return ok(f"`antiphon` is {found}", path=found)


def extra(name: str, context: DoctorContext) -> Sequence[Finding]:
    """Check whether an extra is installed."""
    missing = [package for package in EXTRAS[name] if not _is_there(package)]
    if not missing:
        return ok("installed")
    hint = f"pip install 'antiphon[{name}]'"
    if name in _WITHOUT:
        return note(f"not installed: {_WITHOUT[name]}", hint)
    program = _PROGRAMS[name]
    try:
        found = find_cli(program, context.environment)
    except CliMissing:
        return note(f"not installed: it brings the `{program.program}` program along", hint)
    return ok(f"not installed, and not needed: {program.title} is {found.path}")


def _is_there(name: str) -> bool:
    """Whether a package or module can be imported. Nothing is imported, and so each part of the name is looked for in the one before it."""
    places = None
    for part in name.split("."):
        found = PathFinder.find_spec(part, places)
        if found is None:
            return False
        places = list(found.submodule_search_locations or ())
    return True


def _distribution(here: Path) -> Distribution | None:
    """Return the installed distribution, if it is the running package."""
    try:
        found = distribution("antiphon")
    except PackageNotFoundError:
        return None
    source = _source(found)
    places = [Path(str(found.locate_file("antiphon"))), *([] if source is None else [source / "src" / "antiphon"])]
    return found if any(place.resolve() == here for place in places) else None


def _source(found: Distribution) -> Path | None:
    """Return the source tree of an editable installation."""
    direct = _direct(found)
    if direct is None or direct.dir_info.get("editable") is not True:
        return None
    return Path(unquote(urlsplit(direct.url).path))


def _direct(found: Distribution) -> DirectUrl | None:
    try:
        return msgspec.json.decode(found.read_text("direct_url.json") or "", type=DirectUrl)
    except msgspec.DecodeError:
        return None


def _how(found: Distribution) -> tuple[str, str]:
    source = _source(found)
    if source is not None:
        return "editable", f"installed from {source}, which it still uses"
    parts = Path(sys.prefix).parts
    for tool, sign in (("pipx", ("pipx", "venvs")), ("uv tool", ("uv", "tools"))):
        if any(parts[at : at + 2] == sign for at in range(len(parts))):
            return tool, f"installed by {tool}"
    by = (found.read_text("INSTALLER") or "").strip() or "an unnamed installer"
    return by, f"installed by {by} in {sys.prefix}"
