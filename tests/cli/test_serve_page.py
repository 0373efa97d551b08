"""How `antiphon serve` shows its page: in the browser of this machine, and as a QR code for a phone."""

import asyncio
import io
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import segno

from antiphon.cli.serve.command import announce
from antiphon.gateway.server.program import GatewayAddress, ServeOptions
from tests.limits import limit

URL = "https://agents.example.org:8321"


def announced(capsys: pytest.CaptureFixture[str], options: ServeOptions, **how: bool) -> tuple[str, str]:
    """What is printed, with codes that are numbered: `code1` is the first that was made."""
    codes = (f"code{number}" for number in itertools.count(1))

    async def launch_code() -> str:
        return next(codes)

    asyncio.run(announce(options, False, GatewayAddress(1, URL), ["demo"], "demo", launch_code, **how))
    printed = capsys.readouterr()
    return printed.out, printed.err


def qr_of(text: str) -> str:
    out = io.StringIO()
    segno.make(text, micro=False, error="l").terminal(out=out, border=2, compact=True)
    return out.getvalue()


def test_a_qr_code_has_a_launch_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = announced(capsys, ServeOptions(), shows_qr=True)
    assert qr_of(f"{URL}/#code=code1") in out and "code1" not in out, "no other line has the code"


def test_without_a_token_the_qr_code_is_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = announced(capsys, ServeOptions(no_auth=True), shows_qr=True)
    assert qr_of(URL) in out


def test_a_log_gets_no_code_unless_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = announced(capsys, ServeOptions(host="192.0.2.1", certificate=Path("c"), key=Path("k")))
    assert "▀" not in out and "▄" not in out and "code1" not in out


def test_without_a_display_the_address_is_left_to_the_user(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    out, err = announced(capsys, ServeOptions(), opens=True)
    assert out.startswith(f"page    {URL}\n") and "open the address yourself" in err


@pytest.mark.slow
def test_the_browser_of_this_machine_gets_an_address_that_signs_it_in(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "opened")
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > "{tmp_path}/opened"\n', encoding="utf-8")
    script.chmod(0o755)
    command = [sys.executable, "-m", "antiphon", "serve", "--open", "--port", "0", "--data", "data", "--", "cat"]
    env = {**os.environ, "BROWSER": f"{script} %s", "ANTIPHON_STATE_DIR": str(tmp_path / "state")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=tmp_path, env=env)
    assert process.stdout is not None
    with process.stdout:
        assert "code=" not in process.stdout.readline(), "a service prints into a log"
        opened = urlsplit((tmp_path / "opened").read_text(encoding="utf-8").strip())  # waits for the browser
        login = {"code": opened.fragment.removeprefix("code=")}
        origin = f"{opened.scheme}://{opened.netloc}"
        answer = httpx.post(f"{origin}/api/login", json=login, headers={"Origin": origin}, trust_env=False)
        assert (answer.status_code, answer.json()["role"]) == (200, "admin")
        process.send_signal(signal.SIGTERM)
        assert process.wait(limit()) == 0
