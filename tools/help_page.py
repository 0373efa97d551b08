"""Write docs/commands.md: every command as its own `--help` prints it. `python tools/help_page.py > docs/commands.md`"""

import os
import subprocess
import sys

from antiphon.cli.main import COMMANDS

COLUMNS = "100"

HEAD = """# Commands

Every command as its own `--help` prints it; made by `tools/help_page.py`, compared by a test. What holds for all of them: [the command line](command-line.md). More about
[run](run.md), [compare](compare.md), [chat](chat.md), [setup](editors.md), [sessions](sessions.md), the [policy](policy.md), the [doctor](doctor.md), [replay](replay.md) and the [configuration](config.md).
"""


def help_of(*words: str) -> str:
    """What `antiphon … --help` prints, the same everywhere."""
    env = {**os.environ, "COLUMNS": COLUMNS, "NO_COLOR": "1", "PYTHON_COLORS": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "antiphon", *words, "--help"], capture_output=True, check=True, encoding="utf-8", env=env
    )
    return done.stdout.strip()


def page() -> str:
    """The whole page."""
    commands = ((), *((name,) for name in COMMANDS))
    parts = (f"## `{' '.join(('antiphon', *words))}`\n\n```text\n{help_of(*words)}\n```\n" for words in commands)
    return "\n".join((HEAD, *parts))


if __name__ == "__main__":
    sys.stdout.write(page())
