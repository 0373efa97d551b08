"""Faults of `initialize`."""

from typing import Any

from tests.conformance.faults.making import Faults, change_answer


def without_info(message: dict[str, Any]) -> None:
    message["result"].pop("agentInfo")


def another_version(message: dict[str, Any]) -> None:
    message["result"]["protocolVersion"] = 0


def refusal(message: dict[str, Any]) -> None:
    del message["result"]
    message["error"] = {"code": -32603, "message": "Not today"}


FAULTS: Faults = {
    "init.info": change_answer("initialize", without_info),
}
