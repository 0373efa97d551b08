"""The page about the demo agent lists what there is."""

from pathlib import Path

from antiphon.engines.demo.commands import all_commands

PAGE = (Path(__file__).parents[2] / "docs" / "demo.md").read_text(encoding="utf-8")


def test_the_page_lists_every_command_as_the_agent_describes_it() -> None:
    listed = [line for line in PAGE.splitlines() if line.startswith("| `/")]
    described = [
        f"| `/{act.name}{' ' + act.hint.replace('|', chr(92) + '|') if act.hint else ''}` | {act.description} |"
        for act in all_commands().values()
    ]
    assert listed == described
