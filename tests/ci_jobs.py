"""The runners of GitHub and GitLab, as much of them as our packages use: they read the file, and run its scripts as those do."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.limits import limit

__all__ = ["ACTION", "TEMPLATE", "Job", "run_action", "run_template", "with_antiphon"]

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / "packages" / "github-action"
TEMPLATE = ROOT / "packages" / "gitlab" / "antiphon.gitlab-ci.yml"

_EXPRESSION = re.compile(r"\$\{\{ (inputs|steps\.run\.outputs)\.([a-z-]+) \}\}")


@dataclass
class Job:
    """What a job came to: its status, its log, and of an action its outputs and the summary."""

    status: int
    log: str
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


def with_antiphon(env: dict[str, str], folder: Path) -> dict[str, str]:
    """An environment with our program on its PATH, and nothing else of ours."""
    folder.mkdir(exist_ok=True)
    program = folder / "antiphon"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m antiphon "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {**env, "PATH": f"{folder}:{env['PATH']}"}


def run_action(cwd: Path, env: dict[str, str], temporary: Path, **inputs: str) -> Job:
    """Run the composite action: each step in bash, with the inputs, variables and files that a runner of GitHub gives it."""
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    given = {name: inputs.pop(name.replace("-", "_"), each["default"]) for name, each in action["inputs"].items()}
    assert not inputs, f"the action has no inputs {inputs}"
    temporary.mkdir(exist_ok=True)
    files = {name: temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
    for path in files.values():
        path.write_text("", encoding="utf-8")
    log, status = "", 0
    for step in action["runs"]["steps"]:
        added = files["GITHUB_PATH"].read_text(encoding="utf-8").splitlines()
        variables = {name: _filled(value, given) for name, value in step.get("env", {}).items()}
        step_env = {
            **env,
            **{name: str(path) for name, path in files.items()},
            **variables,
            "PATH": os.pathsep.join([*added, env["PATH"]]),
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_WORKSPACE": str(cwd),
            "RUNNER_TEMP": str(temporary),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=cwd, env=step_env, capture_output=True, encoding="utf-8", timeout=limit())
        log, status = log + done.stdout + done.stderr, done.returncode
        if status:
            break
    found = _outputs(files["GITHUB_OUTPUT"].read_text(encoding="utf-8"))
    outputs = {name: _filled(each["value"], given, found) for name, each in action["outputs"].items()}
    return Job(status, log, outputs, files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8"))


def _filled(text: str, inputs: dict[str, str], outputs: dict[str, str] | None = None) -> str:
    def value(found: "re.Match[str]") -> str:
        return inputs[found[2]] if found[1] == "inputs" else (outputs or {}).get(found[2], "")

    return _EXPRESSION.sub(value, text)


def _outputs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        name, mark, end = line.partition("<<")
        if mark:
            value = []
            for each in lines:
                if each == end:
                    break
                value.append(each)
            found[name] = "\n".join(value)
    return found


def run_template(cwd: Path, env: dict[str, str], shell: str, **variables: str) -> Job:
    """Run the job of the template: its two scripts in one shell, which stops at the first command that fails, as that of GitLab does."""
    job: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))[".antiphon"]
    assert set(variables) <= set(job["variables"])
    script = "\n".join(["set -eu", *job["before_script"], *job["script"]])
    done = subprocess.run(
        [shell, "-c", script],
        cwd=cwd,
        env={**env, **job["variables"], **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=limit(),
    )
    return Job(done.returncode, done.stdout + done.stderr)
