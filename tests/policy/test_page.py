"""The page about the policy says what is true."""

import re
from pathlib import Path

from antiphon.policy import PolicyMode
from antiphon.policy.rules import KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs() -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/policy.md", "exec"), {})


def test_every_mode_and_every_kind_is_on_the_page() -> None:
    assert all(f"| `{mode}` |" in PAGE for mode in PolicyMode)
    assert all(f"`{kind}`" in PAGE for kind in KINDS)
