"""`antiphon run` with the real Claude Code and Codex: what its options do there, with models that are asked for it."""

import json
from pathlib import Path

import pytest

from tests import prepared
from tests.cli.program import Done
from tests.cli.test_run_json import checked
from tests.duet.e2e.editors import Place
from tests.engines.claude.model.steps import Fail
from tests.engines.model.steps import Gate, Text, Used, Wait
from tests.limits import limit

pytestmark = pytest.mark.slow

ENGINES = ("claude", "codex")


def run(at: Place, *words: str) -> Done:
    done = prepared.run("run", *words, cwd=at.folder, env=at.environment, timeout=limit())
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_system_prompt_is_extended_a_limit_of_requests_holds_and_a_session_is_forgotten(
    at: Place, engine: str
) -> None:
    model, calls = at.model(engine), getattr(at, engine).calls
    options = ("--agent", engine, "--output", "json", "--permission-mode", "acceptEdits", "--allow", "Bash(echo *)")
    plain = checked(run(at, "hello", *options))
    assert plain.result["text"] == "echo: hello" and "Sing in Latin." not in json.dumps(model.last.body)
    assert plain.result["sessionId"] in listed(at)

    before = len(model.asked)
    for _ in range(2):
        model.answers(calls.command("echo again"))
    model.otherwise = (
        Wait(Gate()),
    )  # a request that begins while the turn is cancelled has no answer, and so no successor
    limited = checked(
        run(at, "go", *options, "--append-system-prompt", "Sing in Latin.", "--max-turns", "2", "--ephemeral")
    )
    assert (limited.status, limited.result["error"]["kind"]) == (9, "over_budget"), limited.err
    # The third request may have begun when the turn is cancelled; there is no fourth.
    assert len(model.asked) - before <= 3 and "Sing in Latin." in json.dumps(model.last.body)
    assert limited.result["sessionId"] not in listed(at)


def listed(at: Place) -> list[str]:
    """The ids of the sessions that there are in the folder, wherever they are stored."""
    done = prepared.run("sessions", "--json", "--all", cwd=at.folder, env=at.environment, timeout=limit())
    ours = [json.loads(line)["id"] for line in done.stdout.decode().splitlines()]
    claude = [path.stem for path in at.home.rglob("projects/*/*.jsonl")]
    return [*ours, *claude, *(path.stem[-36:] for path in at.home.rglob("rollout-*.jsonl"))]


def test_a_duet_has_each_answer_apart_and_a_failure_with_its_kind(at: Place) -> None:
    at.answer("from Claude", "from Codex")
    words = ("which one?", "--set", "route=duet", "--json")
    both = checked(run(at, *words, "--junit", "junit.xml"))
    assert both.status == 0, both.err
    assert both.result["answers"] == [
        {"engine": "claude", "text": "from Claude"},
        {"engine": "codex", "text": "from Codex"},
    ]
    assert {event.get("engine") for event in both.of("message") + both.of("usage")} == {"claude", "codex"}
    assert (at.folder / "junit.xml").read_text(encoding="utf-8").count("<testcase") == 3
    at.answer("from Claude", "from Codex")
    limited = checked(run(at, *words, "--max-cost", "5"))
    assert limited.status == 0 and [event["title"] for event in limited.of("notice") if "cost" in event["title"]] == [
        "`codex` reports no cost, so `--max-cost` has no effect on it"
    ]
    before = listed(at)
    for engine in ENGINES:
        at.model(engine).answers(getattr(at, engine).calls.asked_command("touch x"))
    asking = checked(run(at, *words, "--ephemeral"))
    assert asking.status == 5 and listed(at) == before
    assert {event["engine"] for event in asking.of("permission")} == {"claude", "codex"}
    assert {event["engine"] for event in asking.of("tool_call")} == {"claude", "codex"}
    at.codex.model.answers(Text("from Codex"))
    at.environment["CLAUDE_CODE_MAX_RETRIES"] = "0"
    at.claude.model.otherwise = (Fail(429, "rate_limit_error", "the hall is full"),)
    half = checked(run(at, *words))
    [failure] = half.result["failures"]
    assert (half.status, failure["engine"], failure["kind"]) == (6, "claude", "rate_limited")
    assert failure["retryable"] is True
    alone = checked(run(at, "x", "--agent", "claude", "--json"))
    assert (alone.status, alone.result["error"]["kind"]) == (8, "rate_limited")


def test_an_answer_is_json_at_the_second_attempt_and_the_changes_are_a_patch(at: Place, tmp_path: Path) -> None:
    at.git("init", "-q")
    at.write("a.txt", "one\n")
    at.write("schema.json", '{"type": "object", "required": ["done"]}')
    at.git("add", "-A")
    at.git("commit", "-qm", "first")
    at.codex.model.answers(at.codex.calls.add_file(at.folder / "new.txt", "hello\n"))
    at.codex.model.answers(Text("It is done."))
    at.codex.model.answers(Text('{"done": true}'))
    patch = tmp_path / "all.patch"
    words = ("--output-schema", "schema.json", "--patch", str(patch), "--permission-mode", "acceptEdits")
    done = checked(run(at, "write it", "--agent", "codex", "--output", "json", *words))
    assert (done.status, done.result["output"], done.result["attempts"]) == (0, {"done": True}, 2), done.err
    assert done.result["patch"]["files"] == ["new.txt"] and b"+hello" in patch.read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_limit_of_tokens_holds_before_it_is_passed_already_in_the_first_turn(at: Place, engine: str) -> None:
    model, calls = at.model(engine), getattr(at, engine).calls
    for number in (1, 2):
        model.answers(calls.command("echo again"), Used(input=1000 * number))
    model.otherwise = (
        Wait(Gate()),
    )  # a request that begins while the turn is cancelled has no answer, and so no successor
    options = ("--agent", engine, "--output", "json", "--permission-mode", "acceptEdits", "--allow", "Bash(echo *)")
    done = checked(run(at, "go", *options, "--max-tokens", "5000"))
    # 1,005 and 2,005 tokens were used; the next request would have had at least 2,005 more.
    assert (done.status, done.result["error"]["kind"]) == (9, "over_budget"), done.err
    assert "stopped after 3,010 tokens: the next request would pass 5,000" in done.result["error"]["message"]
    assert len(model.asked) <= 3  # one may have begun when the turn is cancelled
