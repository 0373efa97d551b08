"""What others install us by: the Zed extension, unpacked and started, and our entry for the registry of agents."""

import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as ET
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

import pytest

from antiphon import __version__
from antiphon.catalogue.registry import launch, read
from tests.limits import limit

ROOT = Path(__file__).resolve().parent.parent
ZED = ROOT / "packages" / "zed"
ENTRY = ROOT / "packages" / "registry" / "antiphon"
REPOSITORY = "https://git.example/choir/antiphon"
SEED_TARGETS = {"darwin-aarch64", "darwin-x86_64", "linux-x86_64"}
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
TAG = f"cp3{sys.version_info[1]}"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script that builds the extension."""
    spec = importlib.util.spec_from_file_location("zed_extension", ROOT / "tools" / "zed_extension.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The folder that Zed gets.


def test_the_manifest_keeps_the_rules(tool: ModuleType) -> None:
    digests = {target: hashlib.sha256(target.encode()).hexdigest() for target in tool.TARGETS}
    found = tomllib.loads(tool.manifest(REPOSITORY, digests))
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", found["id"]) and not re.search("zed|extension", found["id"])
    assert (found["version"], found["schema_version"], found["repository"]) == (__version__, 1, REPOSITORY)
    assert found["name"] and found["description"] and found["authors"]
    ((_, server),) = found["agent_servers"].items()
    assert (ZED / server["icon"]).suffix == ".svg" and (ZED / server["icon"]).is_file()
    assert server["targets"].keys() == SEED_TARGETS
    for target, how in server["targets"].items():
        assert how["archive"] == f"{REPOSITORY}/releases/download/v{__version__}/antiphon-{target}.tar.gz"
        assert (how["cmd"], how["args"], how["sha256"]) == ("./antiphon", ["agent"], digests[target])


@pytest.mark.parametrize("icon", [ZED / "icon" / "antiphon.svg", ENTRY / "icon.svg"], ids=["zed", "registry"])
def test_the_icon_is_a_small_square_in_one_colour(icon: Path) -> None:
    svg = ET.parse(icon).getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert (svg.get("width"), svg.get("height"), svg.get("viewBox")) == ("16", "16", "0 0 16 16")
    for element in svg.iter():
        assert {element.get("fill", "none"), element.get("stroke", "none")} <= {"none", "currentColor"}
        assert not {"style", "class", "href"} & set(element.attrib)
    assert len(icon.read_bytes()) < 1000 and "\n" not in icon.read_text(encoding="utf-8").rstrip("\n")


def test_the_launcher_is_a_script_that_can_be_started() -> None:
    launcher = ZED / "launcher" / "antiphon"
    assert os.access(launcher, os.X_OK)
    subprocess.run(["sh", "-n", launcher], check=True)


# The archives, unpacked.


@pytest.fixture(scope="module")
def our_wheel(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = tool.our_wheel(tmp_path_factory.mktemp("wheel"))
    assert isinstance(wheel, Path)
    return wheel


def installed_as_wheel(package: str, folder: Path, tag: str) -> Path:
    """A wheel made of what is installed here: no network is needed, and it is the same files."""
    found = distribution(package)
    path = folder / f"{package.replace('-', '_')}-{found.version}-{tag}-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                wheel.write(str(found.locate_file(file)), str(file))
    return path


def unpacked(archive: bytes, folder: Path) -> Path:
    place = folder / "some place"  # with a space, as "Application Support" has one
    place.mkdir()
    (folder / "archive.tar.gz").write_bytes(archive)
    with tarfile.open(folder / "archive.tar.gz") as tar:
        tar.extractall(place, filter="data")
    return place / "antiphon"


def start(launcher: Path, *words: str, python: str = sys.executable, line: bytes = INITIALIZE) -> "subprocess.CompletedProcess[bytes]":  # fmt: skip
    """Start it as an editor would: with little in the environment, and nothing of this one."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(launcher.parent), "ANTIPHON_PYTHON": python}
    return subprocess.run([launcher, *words], input=line, env=env, capture_output=True, check=False, timeout=limit())


def answers(done: "subprocess.CompletedProcess[bytes]") -> bool:
    assert done.returncode == 0, done.stderr.decode()
    answer = json.loads(done.stdout.splitlines()[0])
    return bool(answer["id"] == 1 and answer["result"]["agentInfo"]["version"] == __version__)


@pytest.mark.slow
@pytest.mark.prove
def test_an_unpacked_archive_answers_initialize(tool: ModuleType, our_wheel: Path, tmp_path: Path) -> None:
    wheels = [installed_as_wheel(package, tmp_path, f"{TAG}-{TAG}") for package in tool.PACKAGES]
    launcher = unpacked(tool.pack([our_wheel, *wheels]), tmp_path)
    assert answers(start(launcher, "agent"))
    again = start(launcher, "agent", python="/nowhere/python")  # it has what it needs by now
    assert answers(again) and again.stderr == b""
    assert sorted(path.name for path in launcher.parent.iterdir() if path.name.startswith(("env", "old"))) == ["env"]
    (launcher.parent / "env" / "bin" / "python").unlink()  # the Python that it was made with is gone
    assert answers(start(launcher, "agent"))


@pytest.mark.slow
@pytest.mark.prove
def test_two_first_starts_at_the_same_time_both_work(tool: ModuleType, our_wheel: Path, tmp_path: Path) -> None:
    wheels = [installed_as_wheel(package, tmp_path, f"{TAG}-{TAG}") for package in tool.PACKAGES]
    launcher = unpacked(tool.pack([our_wheel, *wheels]), tmp_path)
    with ThreadPoolExecutor(2) as pool:
        assert all(map(answers, pool.map(lambda _: start(launcher, "agent"), range(2))))


@pytest.mark.slow
@pytest.mark.prove
def test_without_a_python_that_fits_there_is_a_hint(tool: ModuleType, our_wheel: Path, tmp_path: Path) -> None:
    foreign = installed_as_wheel("msgspec", tmp_path, "cp39-cp39")
    done = start(unpacked(tool.pack([our_wheel, foreign]), tmp_path), "agent")
    assert (done.returncode, done.stdout) == (1, b"")
    error, hint = done.stderr.decode().splitlines()
    assert error.startswith("error: Antiphon needs Python") and hint.startswith("hint: ")


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.timeout(300)
def test_the_archive_for_linux_is_built_from_the_lock_and_starts(tool: ModuleType, tmp_path: Path) -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("this machine is another target")
    try:
        folder = tool.build(tmp_path / "out", REPOSITORY, ["linux-x86_64"])
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no index of packages can be reached: {error}")
    archive = (tmp_path / "out" / "antiphon-linux-x86_64.tar.gz").read_bytes()
    assert hashlib.sha256(archive).hexdigest() in (folder / "extension.toml").read_text(encoding="utf-8")
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == [
        "LICENSE", "README.md", "extension.toml", "icon", "icon/antiphon.svg",
    ]  # fmt: skip
    assert answers(start(unpacked(archive, tmp_path), "agent"))


def test_the_same_files_give_the_same_archive(tool: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    first = tool.pack([wheel])
    os.utime(wheel, (1, 1))
    assert tool.pack([wheel]) == first


def test_the_archives_have_what_the_lock_lists(tool: ModuleType) -> None:
    lock = tool.locked()
    assert set(re.findall(r"^([a-z-]+)==", lock, re.MULTILINE)) == set(tool.PACKAGES)
    assert lock.count("--hash=sha256:") > len(tool.PACKAGES)


# The registry of agents.


def test_our_entry_is_understood_by_a_reader_of_the_registry() -> None:
    registry = read((ENTRY / "agent.json").read_bytes())
    assert not registry.problems
    ((name, entry),) = registry.agents.items()
    assert (name, entry.version) == (ENTRY.name, __version__) and re.fullmatch(r"\d+\.\d+\.\d+", entry.version)
    how = launch(entry, "linux-x86_64", lambda program: f"/bin/{program}" if program == "uvx" else None)
    assert how.command == ("/bin/uvx", f"antiphon=={__version__}", "agent")


def test_our_entry_has_what_the_registry_asks_for_besides() -> None:
    entry = json.loads((ENTRY / "agent.json").read_bytes())
    assert entry["license"] == "Apache-2.0" and entry["license_url"].startswith("https://")
    assert "icon" not in entry  # the registry's own build puts it in
    assert "latest" not in json.dumps(entry["distribution"])


@pytest.mark.parametrize("installed", [True, False], ids=["with engines", "with the demo"])
@pytest.mark.parametrize("terminal", [True, False], ids=["with terminals", "without"])
def test_what_our_entry_starts_has_a_way_to_sign_in(installed: bool, terminal: bool, tmp_path: Path) -> None:
    words = json.loads((ENTRY / "agent.json").read_bytes())["distribution"]["uvx"]["args"]
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "ANTIPHON_STATE_DIR": str(tmp_path)}
    for name, variable in (("claude", "CLAUDE_CODE_EXECUTABLE"), ("codex", "CODEX_EXECUTABLE")):
        program = tmp_path / name
        if installed:
            program.write_text("#!/bin/sh\n", encoding="utf-8")
            program.chmod(0o755)
        env[variable] = str(program)  # else the packages beside us would count, which users of the registry do not have
    can = {"auth": {"terminal": terminal}}
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": can},
    }
    command = [sys.executable, "-m", "antiphon", *words]
    done = subprocess.run(command, input=json.dumps(asked).encode() + b"\n", capture_output=True, env=env, check=True)
    methods = json.loads(done.stdout)["result"]["authMethods"]
    kinds = {method.get("type", "agent") for method in methods}  # what says nothing is signed in to by the agent itself
    assert kinds & {"agent", "terminal"} and ("terminal" in kinds) == (installed and terminal)
    assert len({method["id"] for method in methods}) == len(methods)
