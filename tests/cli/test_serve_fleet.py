"""The options of `antiphon serve --fleet`: those that mean nothing there are refused, with where they belong."""

from pathlib import Path

import pytest

from antiphon.cli.outcome import Misused
from antiphon.cli.serve.command import run
from antiphon.cli.serve.fleet_command import _shown
from antiphon.cli.serve.limits import hub_limits_help
from antiphon.errors import AcpError
from antiphon.fleet.credentials import make_credentials
from antiphon.fleet.overview import BrokerLine, FleetOverview, OwnedSession, WorkerLine

FLEET = ["--fleet", "nats://127.0.0.1:1"]


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (["--credentials", "x"], "is for the broker of a fleet", "--fleet URL"),
        ([*FLEET, "--", "agent"], "the agents run at workers", "antiphon worker"),
        ([*FLEET, "--root", "/"], "`--root` is for the machine that runs the agents", "antiphon worker --root"),
        ([*FLEET, "--files", "client"], "is for the machine that runs the agents", "antiphon worker --files client"),
        ([*FLEET, "--mcp-host", "x"], "`--mcp-host` is for the machine", "antiphon worker --mcp-host"),
        ([*FLEET, "--client-meta", "x"], "`--client-meta` is for the machine", "antiphon worker --client-meta"),
        (
            [*FLEET, "--limit", "memory=4G"],
            "`--limit memory` is not one of a gateway",
            "antiphon worker --limit memory",
        ),
    ],
)
def test_an_option_that_means_nothing_is_refused_with_where_it_belongs(
    words: list[str], sentence: str, hint: str
) -> None:
    with pytest.raises(Misused, match=sentence) as caught:
        run(words)
    assert hint in caught.value.hint


def test_a_broker_that_does_not_answer_is_one_sentence_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(AcpError) as caught:
        run([*FLEET, "--data", str(tmp_path / "data"), "--port", "0"])
    assert "127.0.0.1:1" in caught.value.sentence and caught.value.hint


def test_the_key_of_a_worker_starts_no_gateway(tmp_path: Path) -> None:
    keys = make_credentials(tmp_path, workers=["one"])
    with pytest.raises(Misused, match="is a key with the role worker") as caught:
        run([*FLEET, "--credentials", str(keys.workers["one"])])
    assert "antiphon fleet credentials" in caught.value.hint


def test_a_unit_of_a_gateway_in_a_fleet_names_no_directory_of_agents(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*FLEET, "--credentials", "gateway.key", "unit"]) == 0
    unit = capsys.readouterr().out
    assert "--fleet nats://127.0.0.1:1" in unit and "--root" not in unit and "fleet-gateway" in unit
    assert str(Path("gateway.key").absolute()) in unit


def test_the_status_shows_what_agents_and_clients_have_named_without_commands_for_the_terminal() -> None:
    session = OwnedSession("k", "one\x1b[2J", "demo", "", "/work/\x1b]0;title\x07\nworker", False, "")
    shown = _shown(FleetOverview(BrokerLine("ok", 1, 1, 1, 0), (), (session,), 1))
    assert all(line.isprintable() for line in shown.splitlines()) and len(shown.splitlines()) == 5, shown


def test_the_status_shows_labels_where_a_worker_has_any() -> None:
    def shown(*labels: str) -> str:
        worker = WorkerLine("w.1", "ok", "here", "1", ("demo",), labels, (), {}, 1, 0, 0, 0, pid=7)
        return _shown(FleetOverview(BrokerLine("ok", 1, 1, 1, 0), (worker,), (), 0))

    assert "labels" in shown("gpu", "big").splitlines()[2] and shown("gpu", "big").splitlines()[3].endswith("gpu, big")
    assert "labels" not in shown()


def test_the_limit_of_a_token_is_explained_without_another_limit() -> None:
    assert "token-sessions      open sessions of one token (2500)" in hub_limits_help()
