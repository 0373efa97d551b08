"""Put what `antiphon inspect` prints about the example into docs/inspect.md: `python tools/inspect_page.py`"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "inspect.md"
EXAMPLE = "examples/recordings/demo.jsonl"
COLUMNS = "100"


def page() -> str:
    """The page as it has to be: the same everywhere, since nothing in the example depends on the machine."""
    env = {**os.environ, "COLUMNS": COLUMNS, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    words = [sys.executable, "-m", "antiphon", "inspect", EXAMPLE]
    done = subprocess.run(words, capture_output=True, check=True, cwd=ROOT, encoding="utf-8", env=env)
    block = f"```console\n$ antiphon inspect {EXAMPLE}\n{done.stdout}```"
    return re.sub(r"```console\n.*?```", lambda _: block, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
