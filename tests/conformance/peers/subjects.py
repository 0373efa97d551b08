"""The agents of others that are checked: which, at which version, how each is started, and the words that make it do things."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from antiphon.conformance.prompts import DEMO, PURPOSES, Prompts
from tests.interop.environment import environment
from tests.interop.programs import MODULES, NEXT_PYTHON, NODE, ROOT, all_programs
from tests.thirdparty.agents import agents
from tests.thirdparty.model import script
from tests.thirdparty.place import place

EXAMPLES = ROOT / ".sdk-examples"
PLAIN = dict.fromkeys(PURPOSES, "") | dict.fromkeys(("say", "long", "many", "ask"), "hello")
"""For examples that do the same thing whatever is sent to them."""

HURRY = "const wait = setTimeout; globalThis.setTimeout = (call, time, ...rest) => wait(call, time / 20, ...rest);"
"""The example of the TypeScript SDK plays a model that takes a second for each step: here it takes a twentieth of it."""


class Subject(NamedTuple):
    """One of them, ready to be started."""

    command: list[str]
    environment: Mapping[str, str]
    prompts: Prompts


Maker = Callable[[Path], AbstractContextManager[Subject]]
"""Makes one in a folder, and ends all of it."""


def scripted(read: str, write: str, run: str) -> dict[str, str]:
    """Prompts for an agent whose model plays the script that stands in the prompt; its tools are called this."""

    def call(tool: str, **arguments: str) -> str:
        return script(["call", tool, arguments], ["say", "Done."])

    written = call(write, path="{file}", content="{text}")
    return {
        "say": script(["say", "Hello."]),
        "long": script(["hold", "One, two, three"]),
        "many": script(["say", "All work and no play. " * 40]),
        "read": call(read, path="{file}"),
        "write": written,
        "ask": written,
        "run": call(run, command="{command}"),
        "long_run": call(run, command="{command}"),
        "think": script(["say", "Yes."]),
        "plan": script(["say", "No plan."]),
    }


@contextmanager
def _sold(name: str, path: Path) -> Iterator[Subject]:
    """An agent that others sell, with a model on loopback."""
    with place(name, path) as at:
        tools = at.agent.tools
        yield Subject(list(at.agent.command), at.environment, Prompts(scripted(tools.read, tools.write, tools.run)))


@contextmanager
def _program(command: list[str], words: dict[str, str], missing: str, path: Path) -> Iterator[Subject]:
    if missing:
        pytest.skip(missing)
    with environment(path) as on:
        yield Subject(command, on.environment, Prompts(words))


def _example(version: str) -> Path:
    return EXAMPLES / f"agent_client_protocol-{version}" / "examples" / "agent.py"


def example_version() -> str:
    """The last version of the TypeScript SDK that came with its examples."""
    npm = json.loads((MODULES.parent / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return str(npm["acp-sdk-with-examples"]).rsplit("@", 1)[1]


def subjects() -> dict[str, tuple[str, Maker]]:
    """Name → its title on the page, and what makes it."""
    who = all_programs()
    demo = [sys.executable, "-m", "antiphon", "agent", "--engine", "demo"]
    found: dict[str, tuple[str, Maker]] = {"demo": ("Antiphon's demo", _maker(demo, dict(DEMO.words), ""))}
    for name, python in (("python", sys.executable), ("python-next", str(NEXT_PYTHON))):
        example = _example(who[name].version)
        missing = who[name].missing or (
            "" if example.exists() else "the examples of the Python SDK could not be fetched"
        )
        made = [python, str(example)]
        found[f"{name}-example"] = f"{who[name].title} example", _maker(made, PLAIN, missing)
    example = MODULES / "acp-sdk-with-examples" / "dist" / "examples" / "agent.js"
    missing = "" if example.exists() else "npm could not install the peers of tests/interop"
    hurried = [str(NODE), "--import", f"data:text/javascript,{HURRY}", str(example)]
    found["typescript-example"] = f"TypeScript SDK {example_version()} example", _maker(hurried, PLAIN, missing)
    for name, agent in agents().items():
        found[name] = f"{agent.name} {agent.version}", partial(_sold, name)
    return found


def _maker(command: list[str], words: dict[str, str], missing: str) -> Maker:
    return partial(_program, command, words, missing)
