"""The shell grammar is loaded when a Bash pattern has to be judged, and its absence never allows anything."""

import subprocess
import sys

START = """
import sys
from antiphon.policy import *
from tests.policy.short import files, line, words, ruling
"""


def python(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, encoding="utf-8", timeout=50
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_the_grammar_a_bash_pattern_asks_and_names_what_to_install() -> None:
    answers = python("""
sys.modules["tree_sitter"] = sys.modules["tree_sitter_bash"] = None
for found in (
    ruling(line("git log"), allow=["Bash(git *)"]),
    ruling(line("git log"), allow=["Bash"], deny=["Bash(rm *)"]),
    ruling(line("git log"), ask=["Bash(rm *)"], mode=PolicyMode.BYPASS),
    ruling(line("rm x"), mode=PolicyMode.ACCEPT_EDITS),
):
    print(found.verdict, "pip install 'antiphon[policy]'" in found.why)
print(ruling(line("git log"), allow=["Bash"]).verdict, ruling(words("git", "log"), allow=["Bash(git *)"]).verdict)
print(ruling(words("sudo", "rm"), allow=["Bash"], deny=["Bash(rm *)"]).verdict)
""")
    assert answers == ["ask True", "ask True", "ask True", "ask False", "allow allow", "deny"]


def test_the_grammar_is_not_loaded_before_it_is_needed() -> None:
    answers = python("""
ruling(files("src/a.py"), allow=["Edit(src/**)", "Bash(git *)"], deny=["Bash(rm *)"])
ruling(line("git log"), allow=["Bash"])
ruling(words("git", "log"), allow=["Bash(git *)"])
print("tree_sitter" in sys.modules)
ruling(line("git log"), allow=["Bash(git *)"])
print("tree_sitter" in sys.modules)
""")
    assert answers == ["False", "True"]
