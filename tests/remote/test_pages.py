"""The commands that the pages show for remote use do what the pages say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.processes import running
from tests.limits import limit

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_prompt_of_the_readme_is_answered_over_the_network(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ((command, answer),) = re.findall(r"^\$ antiphon (run --agent ws://.+)\n(.+)$", text, re.MULTILINE)
    with running(tmp_path) as gateway:
        words = [
            word.replace("~/host.token", str(gateway.place["token_file"])).replace(
                ":8321/agents/demo", f":{gateway.port}/agents/agent"
            )
            for word in shlex.split(command)
        ]
        done = subprocess.run(
            [sys.executable, "-m", "antiphon", *words], cwd=tmp_path / "root", capture_output=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, timeout=limit(), check=False,
        )  # fmt: skip
    assert done.returncode == 0 and answer in done.stdout, done.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/remote.md", "docs/gateway.md", "docs/editors.md"])
def test_every_command_line_of_a_page_has_options_that_exist(page: str) -> None:
    """Parsed by the commands themselves, without running them."""
    from antiphon.cli import agent, setup
    from antiphon.cli.serve import command as serve

    parsers = {"agent": agent.parser, "setup": setup.parser, "serve": serve.parser}
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^(?:\$ )?antiphon (agent|setup|serve)\b([^`|#\n>…]*)", text, re.MULTILINE)
    assert lines
    for name, rest in lines:
        parsers[name]().parse_args(shlex.split(rest.partition(" -- ")[0]))
