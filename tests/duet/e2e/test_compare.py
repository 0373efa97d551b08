"""`antiphon compare` with the real Claude Code and Codex side by side."""

import json
from pathlib import Path

import pytest

from tests import prepared
from tests.duet.e2e.editors import Place
from tests.engines.model.steps import Text
from tests.limits import limit

pytestmark = pytest.mark.slow


def test_both_clis_work_on_the_same_commit_and_neither_sees_the_other(at: Place, tmp_path: Path) -> None:
    at.git("init", "-q")
    at.write("calc.py", "def add(a, b):\n    return a - b\n")
    at.git("add", "-A")
    at.git("commit", "-qm", "first")
    for engine in ("claude", "codex"):
        at.model(engine).answers(getattr(at, engine).calls.asked_command(f"echo {engine} >> calc.py"))
        at.model(engine).answers(Text(f"{engine} is done"))
    options = ("--on-ask", "allow", "--json", "--out", str(tmp_path / "out"))
    words = ("compare", "fix add", "--agents", "claude,codex", *options)
    done = prepared.run(*words, cwd=at.folder, env=at.environment, timeout=limit())
    assert done.returncode == 0, done.stdout + done.stderr
    runs = {each["agent"]: each for each in map(json.loads, done.stdout.splitlines())}
    for engine, run in runs.items():
        assert run["result"]["text"].strip() == f"{engine} is done"
        patch = Path(run["patch"]).read_text(encoding="utf-8")
        assert [line for line in patch.splitlines() if line.startswith("+")][1:] == [f"+{engine}"]
        assert (run["added"], run["result"]["patch"]["files"]) == (1, ["calc.py"]) and run["result"]["worktree"]["kept"]
    assert runs["claude"]["result"]["usage"]["cost"]["amount"] > 0
    assert (at.folder / "calc.py").read_text(encoding="utf-8").endswith("return a - b\n")
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "claude is done" in page and "codex is done" in page and 'class="added">+codex' in page
