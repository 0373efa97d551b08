"""The action for GitHub and the template for GitLab with the real Claude Code and Codex."""

import json
from pathlib import Path

import pytest

from tests.ci_jobs import run_action, run_template, with_antiphon
from tests.duet.e2e.editors import Place
from tests.engines.claude.model.steps import Fail
from tests.engines.model.steps import Text

pytestmark = pytest.mark.slow

SCHEMA = '{"type": "object", "properties": {"bugs": {"type": "integer"}}, "required": ["bugs"]}'


def test_the_action_has_the_answer_of_claude_code_as_json_and_a_rate_limit_as_a_kind(at: Place, tmp_path: Path) -> None:
    env = with_antiphon(at.environment, at.tools)
    at.write("schema.json", SCHEMA)
    at.claude.model.answers(at.claude.calls.add_file(at.folder / "bugs.txt", "found\n"))
    at.claude.model.answers(Text('{"bugs": 1}'))
    inputs = {"prompt": "look for bugs", "output_schema": "schema.json", "append_system_prompt": "Sing in Latin."}
    limits = {"max_turns": "5", "max_cost": "1", "allow": "Bash(echo *)\nEdit(bugs.txt)\nWrite(bugs.txt)"}
    job = run_action(at.folder, env, tmp_path / "temp", **inputs, **limits)
    assert job.status == 0, job.log
    assert json.loads(job.outputs["output"]) == {"bugs": 1} and float(job.outputs["cost"]) > 0
    assert "bugs.txt" in Path(job.outputs["patch"]).read_text(encoding="utf-8")
    assert "Sing in Latin." in json.dumps(at.claude.model.last.body) and '"bugs": 1' in job.summary
    at.claude.model.otherwise = (Fail(429, "rate_limit_error", "the hall is full"),)
    env["CLAUDE_CODE_MAX_RETRIES"] = "0"
    limited = run_action(at.folder, env, tmp_path / "temp", prompt="look again")
    assert (limited.status, limited.outputs["error-kind"]) == (8, "rate_limited"), limited.log


def test_the_template_runs_codex_with_its_rules(at: Place) -> None:
    at.codex.model.answers(at.codex.calls.add_file(at.folder / "new.txt", "hello\n"))
    at.codex.model.answers(Text("It is there."))
    env = with_antiphon(at.environment, at.tools)
    job = run_template(
        at.folder, env, "sh", ANTIPHON_AGENT="codex", ANTIPHON_PROMPT="write it", ANTIPHON_ALLOW="Edit(new.txt)"
    )
    assert job.status == 0, job.log
    results = at.folder / "antiphon-result"
    assert (results / "message.md").read_text(encoding="utf-8") == "It is there.\n"
    assert "+hello" in (results / "changes.patch").read_text(encoding="utf-8")
