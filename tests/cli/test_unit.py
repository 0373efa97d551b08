"""The unit for systemd that `antiphon serve unit` and `antiphon worker unit` install, and remove again.

`systemctl` here is a program that writes down how it was called: a systemd of a user needs a login.
"""

from pathlib import Path

import pytest

from tests import prepared
from tests.limits import limit

SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> "$HOME/called"
[ "$2" != "$REFUSED" ] || { echo "Failed to connect to bus" >&2; exit 1; }
"""


class Login:
    """A user with a home, and perhaps with systemd."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.systemctl = self.programs / "systemctl"
        self.systemctl.write_text(SYSTEMCTL, encoding="utf-8")
        self.systemctl.chmod(0o755)
        self.unit = folder / ".config" / "systemd" / "user" / "antiphon.service"

    def antiphon(self, *words: str, status: int = 0, refused: str = "") -> str:
        env = {"HOME": str(self.home), "PATH": str(self.programs), "REFUSED": refused}
        done = prepared.run(*words, cwd=self.home, env=env, timeout=limit())
        assert done.returncode == status, done.stderr
        return done.stderr.decode()

    @property
    def called(self) -> list[str]:
        return (self.home / "called").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


def test_an_installed_unit_is_started_and_undo_leaves_nothing_of_it(login: Login) -> None:
    login.antiphon("serve", "--port", "9000", "unit", "--install")
    text = login.unit.read_text(encoding="utf-8")
    assert "serve --port 9000 --root" in text and "--install" not in text
    login.antiphon("serve", "unit", "--install")
    assert "--port 9000" not in login.unit.read_text(encoding="utf-8")
    assert f"removed {login.unit}" in login.antiphon("serve", "unit", "--undo")
    assert not login.unit.exists()
    started = ["--user daemon-reload", "--user enable antiphon", "--user restart antiphon"]
    assert login.called == [*started, *started, "--user disable --now antiphon", "--user daemon-reload"]
    assert "there is no" in login.antiphon("serve", "unit", "--undo")


def test_a_unit_of_a_worker_has_a_name_of_its_own(login: Login) -> None:
    worker = ("worker", "--fleet", "nats://127.0.0.1:1", "unit")
    login.antiphon(*worker, "--install")
    assert login.unit.with_name("antiphon-worker.service").exists() and not login.unit.exists()
    login.antiphon(*worker, "--undo")
    assert not login.unit.with_name("antiphon-worker.service").exists()


def test_a_unit_that_a_person_saved_is_removed_too_and_another_program_s_is_not(login: Login) -> None:
    login.unit.parent.mkdir(parents=True)
    login.unit.write_text("[Unit]\nDescription=Antiphon gateway\n", encoding="utf-8")
    login.antiphon("serve", "unit", "--undo")
    assert not login.unit.exists()
    login.unit.write_text("[Unit]\nDescription=A choir\n", encoding="utf-8")
    for option in ("--install", "--undo"):
        assert "is not a unit of Antiphon" in login.antiphon("serve", "unit", option, status=1)
    assert login.unit.read_text(encoding="utf-8") == "[Unit]\nDescription=A choir\n"


def test_without_systemd_the_commands_are_printed_and_undo_removes_the_file(login: Login) -> None:
    login.systemctl.unlink()
    assert "systemctl --user enable antiphon" in login.antiphon("serve", "unit", "--install")
    login.antiphon("serve", "unit", "--undo")
    assert not login.unit.exists()


def test_a_systemd_that_refuses_is_reported_and_a_service_that_may_run_keeps_its_unit(login: Login) -> None:
    assert "Failed to connect to bus" in login.antiphon("serve", "unit", "--install", status=1, refused="enable")
    assert "Failed to connect to bus" in login.antiphon("serve", "unit", "--undo", status=1, refused="disable")
    assert login.unit.exists()
