"""The action for GitHub and the template for GitLab: their own scripts, run as the runners run them."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.cli.run.arguments import run_parser
from tests.ci_jobs import ACTION, ROOT, TEMPLATE, run_action, run_template, with_antiphon
from tests.cli.program import Place
from tests.cli.test_run_flags import repository


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.env = with_antiphon(made.env, tmp_path / "bin")
    return made


def test_every_input_reaches_the_script_as_a_variable_and_never_as_a_part_of_it() -> None:
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    passed = {value for step in action["runs"]["steps"] for value in step["env"].values()}
    assert passed == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert not any("${{" in step["run"] for step in action["runs"]["steps"])
    variables = {name for step in action["runs"]["steps"] for name in step["env"]}
    texts = "".join((ACTION / name).read_text(encoding="utf-8") for name in ("install.sh", "run.sh"))
    assert {name for name in variables if f"{{{name}" not in texts} == set()


@pytest.mark.parametrize("path", [ACTION / "run.sh", TEMPLATE], ids=lambda path: path.name)
def test_the_scripts_use_only_options_that_there_are(path: Path) -> None:
    options = {name for action in run_parser()._actions for name in action.option_strings}
    used = set(re.findall(r"(?<![\w-])--[a-z-]+", path.read_text(encoding="utf-8")))
    assert used - options <= {"--version", "--quiet"} and "--max-cost" in used


def test_the_jobs_of_the_docs_use_what_there_is_and_install_the_wheel_that_is_not_published_yet() -> None:
    page = (ROOT / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")
    github, gitlab = (
        yaml.safe_load(text) for text in re.findall(r"^```yaml[^\n]*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    )
    [step] = [step for step in github["jobs"]["review"]["steps"] if "antiphon" in step.get("uses", "")]
    assert set(step["with"]) <= set(yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["inputs"])
    given = gitlab["review"]["variables"]
    assert set(given) <= set(yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))[".antiphon"]["variables"])
    wheels = [step["with"]["requirement"], given["ANTIPHON_REQUIREMENT"].partition("[")[0]]
    assert all(
        Path(wheel).name in (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8") for wheel in wheels
    )


@pytest.mark.slow
@pytest.mark.prove
def test_the_action_runs_a_prompt_with_rules_and_has_outputs_a_summary_and_files(place: Place, tmp_path: Path) -> None:
    rules = "Bash(echo *)\n  Edit(notes.txt)  \n\n"
    job = run_action(
        place.cwd, place.env, tmp_path / "temp", agent="demo", prompt="/edit notes.txt $(id) `id`", allow=rules
    )
    assert job.status == 0, job.log
    assert (place.cwd / "notes.txt").read_text(encoding="utf-8") == "$(id) `id`\n"
    assert job.outputs["exit-code"] == "0" and job.outputs["text"] == "`notes.txt` has 1 line now."
    assert "::notice file=notes.txt,title=created by Antiphon demo::notes.txt" in job.log and "✅" in job.summary
    results = place.cwd / "antiphon-result"
    assert job.outputs["patch"] == str(results / "changes.patch")
    assert "notes.txt" in (results / "changes.patch").read_text(encoding="utf-8")
    events = [json.loads(line) for line in (results / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert events[-1]["type"] == "result" and ET.parse(results / "junit.xml").getroot().get("failures") == "0"
    assert job.outputs["session-id"] == events[-1]["sessionId"] and not job.outputs["branch"]
    repository(place)
    apart = {"prompt": "/edit notes.txt apart", "options": "--worktree"}
    job = run_action(place.cwd, place.env, tmp_path / "temp", agent="demo", allow=rules, **apart)
    assert job.status == 0 and job.outputs["branch"].startswith("antiphon/run-"), job.log
    denied = run_action(place.cwd, place.env, tmp_path / "temp", agent="demo", prompt="/edit other.txt x", allow=rules)
    more = {"prompt": "/edit other.txt x", "options": "\n  --on-ask allow  \n--verbose\n--set language=no $(id)"}
    wrong = run_action(place.cwd, place.env, tmp_path / "temp", agent="demo", **more)
    assert wrong.status == 2 and "there is no setting `language`" in wrong.log
    assert (denied.status, denied.outputs["exit-code"]) == (5, "5") and "::error title=antiphon run::" in denied.log


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_template_runs_a_prompt_with_rules_and_leaves_its_files(place: Place, shell: str) -> None:
    (place.cwd / "task.md").write_text("/edit notes.txt $(id)", encoding="utf-8")
    variables = {"ANTIPHON_AGENT": "demo", "ANTIPHON_PROMPT_FILE": "task.md"}
    denied = run_template(place.cwd, place.env, shell, **variables)
    assert denied.status == 5 and not (place.cwd / "notes.txt").exists(), denied.log
    allowed = run_template(place.cwd, place.env, shell, **variables, ANTIPHON_ALLOW="Bash(echo *)\nEdit(notes.txt)")
    assert allowed.status == 0, allowed.log
    assert (place.cwd / "notes.txt").read_text(encoding="utf-8") == "$(id)\n"
    options = "--on-ask=allow\n\n--set language=no $(id)"
    wrong = run_template(place.cwd, place.env, shell, **variables, ANTIPHON_OPTIONS=options)
    assert wrong.status == 2 and "there is no setting `language`" in wrong.log
    (place.cwd / "notes.txt").unlink()
    asked = run_template(place.cwd, place.env, shell, **variables, ANTIPHON_OPTIONS="--on-ask allow")
    assert asked.status == 0 and (place.cwd / "notes.txt").exists()
    names = {path.name for path in (place.cwd / "antiphon-result").iterdir()}
    assert names == {".gitignore", "changes.patch", "events.jsonl", "junit.xml", "message.md"}


@pytest.mark.prove
def test_the_action_installs_what_it_needs_and_the_step_after_it_finds_it(place: Place, tmp_path: Path) -> None:
    env = {**place.env, "PATH": os.environ["PATH"], "INPUT_AGENT": "demo"}
    without = {name: value for name, value in env.items() if name != "PYTHONPATH"}
    job = run_action(place.cwd, without, tmp_path / "temp", agent="demo", prompt="hi", requirement=str(ROOT))
    assert job.status == 0 and job.outputs["exit-code"] == "0", job.log
    found = (tmp_path / "temp" / "GITHUB_PATH").read_text(encoding="utf-8").strip()
    assert os.listdir(found) == ["antiphon"]
    python = str(Path(found, "..", "bin", "python"))
    subprocess.run([python, "-c", "import jsonschema, tree_sitter_bash"], check=True)
