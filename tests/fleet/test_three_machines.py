"""The page docs/fleet.md: its three servers, its workers, its gateway and its commands are started as they stand there, on this machine.

Only names of hosts, ports and directories are replaced.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from antiphon.fleet.nats.program import find_nats_server
from tests.fleet.programs import eventually
from tests.limits import limit

PAGE = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHELL = [text for language, text in BLOCKS if language == "sh"]
PLAIN = [text for language, text in BLOCKS if not language]
HOSTS = ("a", "b", "c")


def commands(text: str) -> list[str]:
    """Return the command lines of a block, each in one line and without its comment."""
    lines = text.replace("\\\n", " ").splitlines()
    return [" ".join(line.partition(" #")[0].split()) for line in lines if line.strip()]


def block(words: str) -> list[str]:
    """Return the commands of the one block that has these words."""
    [found] = [each for each in SHELL if words in each]
    return commands(found)


def test_every_command_of_the_page_has_options_that_exist() -> None:
    from antiphon.cli.serve import command, fleet_command, worker

    parsers = {"serve": command.parser, "worker": worker.parser, "fleet": fleet_command.parser}
    lines = [line for text in SHELL for line in commands(text) if line.startswith("antiphon ")]
    lines += re.findall(r"`(antiphon (?:serve|worker|fleet) [^`…]+)`", PAGE)
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(line.partition(" > ")[0].replace("…", "nats://host"))[1:]
        if words[0] == "worker" and "--fleet" not in words:
            words[1:1] = ["--fleet", "nats://host"]
        parsers[words[0]]().parse_args(words[1:])


def test_what_the_page_says_that_a_fleet_prints_is_what_it_prints() -> None:
    """The lines that `fleet up` prints are compared by `test_local` with a terminal; here, that the page has no others."""
    shown = next(each for each in PLAIN if "page " in each)
    assert [line.split(" ")[0] for line in shown.splitlines()] == [
        "page", "", "agent", "token", "broker", "workers", "",
    ]  # fmt: skip
    assert "`antiphon fleet status` shows them; Ctrl-C ends all of it" in shown


def free_ports(count: int) -> list[int]:
    """Return ports that are free now: the servers have to know those of the others."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


class ThreeMachines:
    """The broker of the page on three ports, and what replaces its names."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self._stack = stack
        ports = free_ports(6)
        self.clients = dict(zip(HOSTS, ports[:3], strict=True))
        self.routes = dict(zip(HOSTS, ports[3:], strict=True))
        bin_directory = str(Path(sys.executable).parent)
        self.env = {
            **os.environ,
            "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(directory),
            "ANTIPHON_STATE_DIR": str(directory / "state"),
            "ANTIPHON_CONFIG_DIR": str(directory / "config"),
            "SSL_CERT_FILE": str(directory / "ca.pem"),
        }

    def local(self, text: str) -> str:
        """Replace hosts, ports and directories of the page by those of this test."""
        for host in HOSTS:
            text = text.replace(f"{host}.example.org:4222", f"localhost:{self.clients[host]}")
            text = text.replace(f"{host}.example.org:6222", f"localhost:{self.routes[host]}")
        return text.replace("/etc/nats/", f"{self.directory}/").replace("~/projects", str(self.directory / "projects"))

    def run(self, line: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a line of the page in a shell."""
        return subprocess.run(
            ["sh", "-c", self.local(line)], cwd=self.directory / "keys-of-all", env=self.env | more,
            capture_output=True, encoding="utf-8", timeout=limit(), check=False,
        )  # fmt: skip

    def start(self, words: "list[str]", name: str) -> "subprocess.Popen[str]":
        """Start a program for the time of the test; its output is in a file."""
        with open(self.directory / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                words, cwd=self.directory / "keys-of-all", env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, encoding="utf-8",
            )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(encoding="utf-8")

    def configuration(self, host: str) -> str:
        """Return the configuration of one server, as the page has it."""
        [text] = [each for each in PLAIN if "jetstream" in each]
        text = self.local(text.replace("server_name: a", f"server_name: {host}"))
        text = text.replace("0.0.0.0:4222", f"127.0.0.1:{self.clients[host]}")
        text = text.replace("0.0.0.0:6222", f"127.0.0.1:{self.routes[host]}")
        return text.replace("/var/lib/nats", str(self.directory / f"store-{host}"))


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[ThreeMachines]:
    for name in ("projects", "keys-of-all"):
        (tmp_path / name).mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "server-key.pem", "-out", "server.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "ca.pem").write_bytes((tmp_path / "server.pem").read_bytes())
    with ExitStack() as stack:
        yield ThreeMachines(tmp_path, stack)


@pytest.mark.slow
@pytest.mark.prove
def test_the_three_machines_of_the_page_are_a_fleet(machines: ThreeMachines) -> None:
    there = machines.directory / "keys-of-all"
    for line in block("fleet credentials keys"):
        done = machines.run(line)
        assert done.returncode == 0, done.stderr
    assert {each.name for each in (there / "keys").iterdir()} == {"admin.key", "gateway.key", "a.key", "b.key", "c.key"}
    (machines.directory / "users.conf").write_bytes((there / "users.conf").read_bytes())
    for key in (there / "keys").iterdir():
        (there / key.name).write_bytes(key.read_bytes())
        (there / key.name).chmod(0o600)
    for host in HOSTS:
        file = machines.directory / f"{host}.conf"
        file.write_text(machines.configuration(host), encoding="utf-8")
        machines.start([find_nats_server(), "--config", str(file)], f"broker-{host}")
    work, serve = (machines.local(line) for line in block("antiphon serve --fleet tls://"))
    assert work.startswith("antiphon worker ") and serve.startswith("antiphon serve ")
    demo = ["--agents", "demo", "--json"]
    for host in HOSTS:
        words = shlex.split(work.replace("a.key", f"{host}.key").replace("--name a ", f"--name {host} "))
        machines.start([*words, "--data", str(machines.directory / f"data-{host}"), *demo], f"worker-{host}")
    gateway = machines.start([*shlex.split(serve), "--port", "0", "--json"], "gateway")
    eventually(lambda: '"url"' in machines.log("gateway") or gateway.poll() is not None)
    assert '"https://agents.example.org' in machines.log("gateway"), machines.log("gateway")
    environment, status, drain = block("export ANTIPHON_FLEET=")
    given = dict(word.partition("=")[::2] for word in shlex.split(machines.local(environment))[1:])
    shown = eventually(lambda: _with_workers(machines, status, given, HOSTS))
    assert re.search(r"^broker   ok, 3 servers, ", shown, re.MULTILINE), shown
    done = machines.run(drain, **given)
    assert done.stdout.startswith("b takes no more sessions"), done.stderr
    eventually(lambda: _with_workers(machines, status, given, ("a", "c")))
    gateway.send_signal(signal.SIGTERM)
    assert gateway.wait(limit()) == 0


def _with_workers(machines: ThreeMachines, status: str, given: Mapping[str, str], names: "tuple[str, ...]") -> str:
    """Return what `fleet status` prints, once it has exactly these workers."""
    done = machines.run(status, **given)
    found = tuple(sorted(re.findall(r"^([abc])\.[0-9a-f]{6} +ok", done.stdout, re.MULTILINE)))
    return done.stdout if found == names else ""
