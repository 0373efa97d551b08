"""The limits of a gateway as they are typed."""

import argparse
import asyncio

import msgspec
import pytest

from antiphon.cli.serve.command import announce
from antiphon.cli.serve.limits import LIMITS, limit, with_limits
from antiphon.gateway.server.program import GatewayAddress, ServeOptions


def test_each_limit_reaches_the_options() -> None:
    options = ServeOptions()
    for name, each in LIMITS.items():
        value = limit(f"{name}=7")[1]
        changed = with_limits(options, [(name, value)])
        place = getattr(changed, each.owner) if each.owner else changed
        assert getattr(place, each.field) == value == 7, name


def test_what_is_not_given_stays_and_memory_is_three_quarters_of_the_machine() -> None:
    options = with_limits(ServeOptions(), [])
    assert options.limits.agent_memory is not None and options.limits.agent_memory > 0
    assert options == msgspec.structs.replace(
        ServeOptions(), limits=msgspec.structs.replace(ServeOptions().limits, agent_memory=options.limits.agent_memory)
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("message=64M", 64 << 20), ("memory=4GiB", 4 << 30), ("disk=512K", 512 << 10), ("turn=2h", 7200.0)],
)
def test_sizes_and_times_have_units(text: str, value: float) -> None:
    assert limit(text)[1] == value


@pytest.mark.parametrize(
    "text", ["", "memory", "memory=", "memory=0", "memory=-1", "memory=1e9", "turn=x", "agents=0", "x=1", "memory=٣"]
)
def test_what_is_no_limit_is_an_error_that_names_what_is_taken(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"such as|names are|number from"):
        limit(text)


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True), ("::", True)])
def test_listening_on_every_network_is_a_warning(host: str, warned: bool, capsys: pytest.CaptureFixture[str]) -> None:
    async def launch_code() -> str:
        return "code"

    address = GatewayAddress(1, "https://127.0.0.1:8321")
    asyncio.run(announce(ServeOptions(host=host), False, address, ["demo"], "demo", launch_code))
    assert ("every network" in capsys.readouterr().err) == warned
