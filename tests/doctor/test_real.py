"""The doctor with the real Claude Code and the real Codex: homes of their own, loopback only, models that are none."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.doctor.machine import Machine
from tests.engines.claude.place import HERMETIC
from tests.engines.claude.versions import NEW
from tests.engines.claude.versions import program as claude_program
from tests.engines.codex.place import SETTINGS, USUAL
from tests.engines.codex.versions import PYPI
from tests.engines.codex.versions import program as codex_program

pytestmark = pytest.mark.slow

KEY = "a-key-of-no-account"
UNKNOWN_USER = "http://127.0.0.1:9"
"""No server listens there."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Both real programs, without a login."""
    claude, codex = claude_program(NEW), codex_program(PYPI)
    if claude is None or codex is None:
        pytest.skip("Claude Code or Codex is not installed")
    made = Machine(tmp_path)
    for name, program in (("claude", claude), ("codex", codex)):
        (made.bin / name).unlink()
        (made.bin / name).symlink_to(program)
    made.env |= {**HERMETIC, "ANTHROPIC_BASE_URL": UNKNOWN_USER}
    del made.env["ANTHROPIC_API_KEY"]
    made.env["PATH"] += ":/usr/bin:/bin"
    configure(made, f'openai_base_url = "{UNKNOWN_USER}/v1"')
    return made


def configure(machine: Machine, top: str, address: str = UNKNOWN_USER) -> None:
    text = SETTINGS.format_map({**USUAL, "address": address, "top": top})
    machine.write(machine.home / ".codex" / "config.toml", text)


class Answers(http.server.BaseHTTPRequestHandler):
    """Refuses, as an address does that is asked without a key."""

    asked: ClassVar[list[tuple[str, str | None]]]

    def do_HEAD(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization") or self.headers.get("X-Api-Key")))
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def address() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server listens there: the address, and what was asked."""

    class Here(Answers):
        asked: ClassVar[list[tuple[str, str | None]]] = []

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Here)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", Here.asked
    server.shutdown()
    server.server_close()


def test_no_user_is_signed_in(machine: Machine) -> None:
    report = machine.report("claude", "codex")
    assert report.problems == ["engines.claude.login", "engines.codex.login"]
    assert report["engines.claude.program"]["facts"]["version"] == NEW
    assert report["engines.codex.program"]["facts"]["version"] == PYPI
    assert "--engine claude --login" in report["engines.claude.login"]["hint"]


def test_a_user_is_signed_in_and_no_key_is_shown(machine: Machine) -> None:
    machine.write(machine.home / ".codex" / "auth.json", f'{{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-{KEY}"}}')
    report = machine.report("claude", "codex", ANTHROPIC_API_KEY=KEY)
    assert report.says("engines.claude.login") == ("ok", "signed in with an API key")
    assert report.says("engines.codex.login") == ("ok", "signed in with an API key")
    assert "account" not in str(report.data)


def test_both_are_really_started(machine: Machine) -> None:
    configure(machine, 'model_provider = "choir"')
    report = machine.report("--start", "demo", "claude", "codex", ANTHROPIC_API_KEY=KEY, CHOIR_API_KEY=KEY)
    assert report.problems == [], report.data
    for name in ("demo", "claude", "codex"):
        facts = report[f"start.{name}"]["facts"]
        assert float(facts["initialize"]) < float(facts["session"]) < float(facts["end"])


def test_a_codex_without_a_login_starts_with_a_hint(machine: Machine) -> None:
    report = machine.report("--start", "codex")
    assert report.problems == ["engines.codex.login", "start.codex"]
    assert "--engine codex --login" in report["start.codex"]["hint"]


def test_addresses_are_tried_without_a_key(machine: Machine, address: tuple[str, list[tuple[str, str | None]]]) -> None:
    place, asked = address
    configure(machine, 'model_provider = "choir"', place)
    proxy = "http://127.0.0.1:9"  # what is on this machine is not asked through one
    report = machine.report("network", "--network", ANTHROPIC_BASE_URL=place, ANTHROPIC_API_KEY=KEY, http_proxy=proxy)
    assert report.ids == ["network.claude", "network.codex"] and report.problems == []
    assert report["network.claude"]["facts"]["status"] == "401" and report.data["network"] is True
    assert sorted(asked) == [("/", None), ("/v1", None)]


def test_an_address_without_a_server_is_a_problem(machine: Machine) -> None:
    report = machine.report("--network", "network", ANTHROPIC_BASE_URL="http://ada:secret@127.0.0.1:9/x")
    assert report.problems == ["network.claude", "network.codex"]
    assert "http://127.0.0.1:9 cannot be reached" in report["network.claude"]["sentence"]
    assert "secret" not in str(report.data) and "proxies" in report["network.claude"]["hint"]


@pytest.mark.parametrize("wrong", ["nonsense", "file:///etc/passwd", "http://[::1"])
def test_what_is_not_an_address_is_not_tried(machine: Machine, wrong: str) -> None:
    assert machine.report("--network", "network.claude", ANTHROPIC_BASE_URL=wrong).problems == ["network.claude"]


def test_a_model_at_a_cloud_provider_is_not_tried(machine: Machine) -> None:
    check = machine.report("--network", "network.claude", CLAUDE_CODE_USE_BEDROCK="1")["network.claude"]
    assert check["status"] == "note" and "CLAUDE_CODE_USE_BEDROCK" in check["sentence"]
