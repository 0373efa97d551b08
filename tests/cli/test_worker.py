"""The options of `antiphon worker`, and what it says about mistakes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.cli.outcome import Misused
from antiphon.cli.serve import worker
from antiphon.cli.serve.limits import hub_limits
from antiphon.errors import AcpError
from antiphon.fleet.worker.worker import SLOTS
from antiphon.gateway.hub import DRAIN


def program(*words: str) -> Any:
    return worker._program(worker.parser().parse_args(["--fleet", "nats://a:4222", *words]))


def test_each_option_reaches_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    found = program(
        *(
            "--fleet",
            "nats://b:4222,nats://c:4222",
            "--name",
            "build-1",
            "--machine",
            "big",
            "--slots",
            "7",
            "--drain",
            "2m",
        ),
        *("--label", "gpu", "--label", "zone=eu", "--root", ".", "--workspace", "shop=shop", "--data", "d"),
        *("--limit", "turn=1h", "--mcp-host", "[::1]", "--client-meta", "x"),
    )
    assert found.fleet == ("nats://a:4222", "nats://b:4222", "nats://c:4222")
    options = found.worker
    assert (options.name, options.host, options.slots, options.drain) == ("build-1", "big", 7, 120.0)
    assert options.labels == ("gpu", "zone=eu") and options.roots == (str(tmp_path),)
    assert options.workspaces == {"shop": str(tmp_path / "shop")} and found.data == Path("d")
    assert options.limits.turn_timeout == 3600 and options.limits.agent_memory
    assert found.client_rules.mcp_hosts == {"::1"}


def test_without_options_it_serves_this_directory_with_all_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = program().worker
    assert options.roots == (str(tmp_path),) and (options.slots, options.drain) == (SLOTS, DRAIN)
    assert options.name == options.host == "" and options.limits == hub_limits(())
    assert program("--workspace", "all=.").worker.roots == (), "a shared workspace is enough"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--workspace", "here"), "does not take `here`"),
        (("--workspace", "a b=."), "does not take `a b=.`"),
        (("--workspace", "a=."), ""),
        (("--workspace", "a=.", "--workspace", "a=/"), "given twice"),
        (("--workspace", "a=nowhere"), "is not a directory"),
        (("--root", "nowhere"), "is not a directory"),
        (("--name", "a.b"), "cannot be a name"),
        (("--label", "a,b"), "cannot be a label"),
        (("--slots", "0"), "0"),
        (("--limit", "days=3"), "is not a limit"),
        (("--limit", "sessions=3"), "is not a limit"),
        (("--credentials", "nowhere.key"), "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if not sentence:
        assert program(*words)
        return
    with pytest.raises((AcpError, Misused)) as caught:
        program(*words)
    assert sentence in str(caught.value)


def test_the_name_of_a_worker_is_that_of_its_key(tmp_path: Path) -> None:
    def key(role: str) -> str:
        path = tmp_path / f"{role}.key"
        given = {"name": "build-1", "role": role, "public": "U", "seed": "S"}
        path.touch(0o600)
        path.write_bytes(msgspec.json.encode(given))
        return str(path)

    assert program("--credentials", key("worker")).worker.name == "build-1"
    with pytest.raises(Misused, match="is the key of `build-1`"):
        program("--credentials", key("worker"), "--name", "other")
    with pytest.raises(Misused, match="is a key with the role gateway"):
        program("--credentials", key("gateway"))


def test_the_agents_are_those_that_were_named_or_one_program() -> None:
    assert [*worker._sources("demo, demo", None)] == ["demo"]
    assert [*worker._sources(None, ["cat"])] == ["agent"]
    with pytest.raises(Misused, match="together"):
        worker._sources("demo", ["cat"])
    with pytest.raises(Misused, match="names no agent"):
        worker._sources(" , ", None)
    with pytest.raises(AcpError, match="no agent named `nope`"):
        worker._sources("nope", None)
