"""The options of `antiphon run` for scripts and CI: what each changes, and what happens without it."""

import json
import os
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from antiphon.cli.arguments import Misused, Options
from antiphon.cli.run.arguments import run_parser
from antiphon.cli.run.reports import check_files
from antiphon.errors import ExtraMissing
from antiphon.runs.answer_schema import AnswerSchema, NoMatch
from tests.cli import agents
from tests.cli.program import Done, Place
from tests.cli.test_run_json import checked


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def git(place: Place, *words: str, cwd: Path | None = None) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *words]
    env = {"PATH": os.environ["PATH"], "HOME": str(place.cwd.parent)}
    done = subprocess.run(command, cwd=cwd or place.cwd, env=env, check=True, capture_output=True, encoding="utf-8")
    return done.stdout


def repository(place: Place) -> None:
    """Make the directory a repository with one commit."""
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")


# Output.


def test_the_result_is_one_object_with_output_json_and_the_last_of_many_in_a_stream(place: Place) -> None:
    one = checked(place.run("hi", "--output", "json"))
    assert len(one.events) == 1 and one.result["text"]
    many = checked(place.run("hi", "--output", "stream-json"))
    assert len(many.events) > 1 and many.result["text"] == one.result["text"]
    assert place.run("hi").out == one.result["text"]


def test_every_event_has_a_time_and_the_first_and_last_have_the_version_of_the_schema(place: Place) -> None:
    begin = datetime.now(UTC) - timedelta(seconds=1)
    events = place.run("/plan", "--json").events
    times = [datetime.fromisoformat(event["time"]) for event in events]
    assert begin <= times[0] <= times[-1] <= datetime.now(UTC) and times == sorted(times)
    assert events[0]["schemaVersion"] == events[-1]["schemaVersion"] == 2
    wrong = json.loads(place.run("hi", "--output", "json", "--timeout", "soon").out)
    assert wrong["type"] == "error" and wrong["schemaVersion"] == 2 and wrong["time"]


def test_the_last_message_goes_to_a_file_as_well(place: Place) -> None:
    place.run("hi")
    assert not (place.cwd / "last.txt").exists()
    done = place.run("hi", "-o", "last.txt", "--json")
    assert (place.cwd / "last.txt").read_text(encoding="utf-8") == done.result["text"]
    wrong = place.run("hi", "-o", "missing/last.txt")
    assert wrong.status == 2 and "there is no directory `missing`" in wrong.err


# An answer as JSON.

SCHEMA = {"type": "object", "properties": {"bugs": {"type": "integer", "minimum": 0}}, "required": ["bugs"]}
RIGHT = 'Here it is:\n\n```json\n{"bugs": 2}\n```'


def answering(place: Place, *answers: str) -> tuple[str, ...]:
    (place.cwd / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    lines = "".join(json.dumps(answer) + "\n" for answer in answers)
    (place.cwd / "answers.jsonl").write_text(lines, encoding="utf-8")
    return "count them", "--agent", place.agent(agents.Answers)


def asked(place: Place) -> list[str]:
    return [json.loads(line)[1] for line in place.received if line.startswith('["asked"')]


def test_an_answer_that_does_not_match_the_schema_is_asked_for_again(place: Place) -> None:
    words = answering(place, "There are two.", '{"bugs": -1}', RIGHT)
    done = place.run(*words, "--output-schema", "schema.json", "-o", "bugs.json")
    assert (done.status, json.loads(done.out)) == (0, {"bugs": 2}), done.err
    assert json.loads((place.cwd / "bugs.json").read_text(encoding="utf-8")) == {"bugs": 2}
    first, second, third = asked(place)
    assert '"minimum": 0' in first and "it is not JSON" in second and "$.bugs" in third and "-1" in third


def test_without_a_schema_any_answer_counts_and_nothing_is_added_to_the_prompt(place: Place) -> None:
    done = place.run(*answering(place, "There are two."))
    assert (done.status, done.out.strip(), asked(place)) == (0, "There are two.", ["count them"])


def test_no_answer_that_matches_has_an_exit_status_of_its_own_and_stdout_stays_empty(place: Place) -> None:
    words = answering(place, *["{}"] * 4)
    done = place.run(*words, "--output-schema", "schema.json", "-o", "bugs.json")
    assert (done.status, done.out, len(asked(place))) == (10, "", 3)
    assert "'bugs' is a required property" in done.err and not (place.cwd / "bugs.json").exists()
    place.log.unlink()
    result = checked(place.run(*words, "--output-schema", "schema.json", "--output", "json")).result
    assert result["error"]["kind"] == "wrong_output" and result["attempts"] == 3 and result["text"] == "{}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("not json", "is not JSON"),
        ("[]", "has no JSON schema"),
        ('{"type": "banana"}', "not a JSON schema"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_before_anything_starts(place: Place, text: str, problem: str) -> None:
    words = answering(place, RIGHT)
    (place.cwd / "schema.json").write_text(text, encoding="utf-8")
    done = place.run(*words, "--output-schema", "schema.json")
    assert done.status == 2 and problem in done.err and not place.log.exists()


def test_an_answer_that_is_nested_too_deeply_is_no_match() -> None:
    schema = AnswerSchema({"$defs": {"list": {"items": {"$ref": "#/$defs/list"}}}, "$ref": "#/$defs/list"})
    with pytest.raises(NoMatch, match="nested too deeply"):
        schema.read("[" * 900 + "]" * 900)


def test_without_the_validator_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ExtraMissing) as missing:
        AnswerSchema({})
    assert "antiphon[schema]" in missing.value.hint


def test_a_schema_fetches_nothing(place: Place) -> None:
    words = answering(place, RIGHT)
    (place.cwd / "schema.json").write_text('{"$ref": "http://127.0.0.1:9/schema"}', encoding="utf-8")
    done = place.run(*words, "--output-schema", "schema.json")
    assert done.status == 2 and "which is not in it" in done.err


# Limits.


@pytest.mark.parametrize(
    ("limit", "requests"),
    [(("--max-turns", "2"), 2), (("--max-tokens", "3500"), 3), (("--max-cost", "0.60"), 2)],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_limit_stops_the_run_before_the_request_that_would_pass_it(
    place: Place, limit: tuple[str, str], requests: int
) -> None:
    agent = ("--agent", place.agent(agents.Works), "--output", "json")
    whole = checked(place.run("5 0", *agent))
    assert whole.status == 0 and place.received.count("request 5") == 1
    place.log.unlink()
    done = checked(place.run(f"5 {requests}", *agent, *limit))
    assert (done.status, done.result["error"]["kind"]) == (9, "over_budget")
    assert [line for line in place.received if line.startswith("request")] == [
        f"request {number}" for number in range(1, requests + 1)
    ]
    assert limit[0] in done.result["error"]["hint"] and done.result["error"]["retryable"] is False


def test_a_run_within_its_limits_is_a_success(place: Place) -> None:
    limits = ("--max-turns", "5", "--max-tokens", "9000", "--max-cost", "2")
    done = place.run("4 0", "--agent", place.agent(agents.Works), *limits)
    assert (done.status, done.out.strip()) == (0, "done"), done.err


def test_what_is_reported_only_at_the_end_still_counts_and_an_agent_without_costs_is_reported(place: Place) -> None:
    done = place.run("/usage", "--max-tokens", "1")
    assert done.status == 9 and "1 is the limit" in done.err
    done = place.run("hi", "--max-cost", "1")
    assert done.status == 0 and "reports no cost" in done.err


# The session.


def test_a_text_for_the_system_prompt_goes_to_agents_that_take_one(place: Place) -> None:
    words = ("hi", "--agent", place.agent(agents.TakesSystemPrompt))
    assert place.run(*words).status == 0 and place.run(*words, "--append-system-prompt", "Be brief.").status == 0
    metas = [json.loads(line)[1] for line in place.received if line.startswith('["meta"')]
    assert metas == [None, {"antiphon": {"appendSystemPrompt": "Be brief."}}]
    done = place.run("hi", "--agent", "demo", "--append-system-prompt", "Be brief.")
    assert done.status == 2 and "takes no text for its system prompt" in done.err


def test_an_ephemeral_run_deletes_its_session(place: Place) -> None:
    words = ("hi", "--json", "--agent", place.agent(agents.TakesSystemPrompt))
    place.run(*words)
    assert not any(line.startswith("deleted") for line in place.received)
    id = place.run(*words, "--ephemeral").result["sessionId"]
    assert place.received[-1] == f"deleted {id}"
    done = place.run("hi", "--ephemeral", "--agent", place.agent(agents.TakesTextOnly))
    assert done.status == 0 and "is not deleted" in done.err
    assert place.run("hi", "--ephemeral", "--session", "mine").status == 2


# Changes.


def test_a_patch_has_every_kind_of_change_and_applies_to_the_state_before(place: Place, tmp_path: Path) -> None:
    (place.cwd / "deleted.txt").write_text("gone\n", encoding="utf-8")
    (place.cwd / "tool.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (place.cwd / ".gitignore").write_text("ignored\n", encoding="utf-8")
    repository(place)
    (place.cwd / "README.md").write_text("# Not committed\n", encoding="utf-8")
    before = tmp_path / "before"
    git(place, "clone", "-q", str(place.cwd), str(before))
    (before / "README.md").write_text("# Not committed\n", encoding="utf-8")
    change = (
        r"rm deleted.txt; chmod +x tool.sh; echo more >> README.md; mkdir deep; printf '\000\001\377' > deep/new.bin;"
        " : > empty; echo x > ignored; ln -s README.md link"
    )
    (place.cwd / "change.sh").write_text(change, encoding="utf-8")
    (before / "change.sh").write_text(change, encoding="utf-8")
    done = checked(place.run("/run sh change.sh", "--patch", "../all.patch", "--output", "json", "--on-ask", "allow"))
    report = done.result["patch"]
    assert sorted(report["files"]) == ["README.md", "deep/new.bin", "deleted.txt", "empty", "link", "tool.sh"]
    assert report["bytes"] == (tmp_path / "all.patch").stat().st_size
    git(place, "apply", str(tmp_path / "all.patch"), cwd=before)
    for name in ("README.md", "deep/new.bin", "empty"):
        assert (before / name).read_bytes() == (place.cwd / name).read_bytes()
    assert not (before / "deleted.txt").exists() and os.readlink(before / "link") == "README.md"
    assert os.stat(before / "tool.sh").st_mode & stat.S_IXUSR
    assert git(place, "status", "--porcelain", "change.sh") == "?? change.sh\n"  # its own index is as it was


def test_a_run_without_changes_has_an_empty_patch_and_one_without_the_option_none(place: Place, tmp_path: Path) -> None:
    done = place.run("hi", "--patch", str(tmp_path / "none.patch"), "--output", "json")
    assert done.result["patch"] == {"path": str(tmp_path / "none.patch"), "bytes": 0, "files": []}
    assert (tmp_path / "none.patch").read_bytes() == b""
    assert "patch" not in place.run("hi", "--output", "json").result


def test_a_patch_leaves_out_the_files_that_the_run_writes_its_own_output_to(place: Place) -> None:
    repository(place)
    (place.cwd / "errors.log").write_text("committed\n", encoding="utf-8")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "second")
    words = place.words("/edit new.txt hello", "--agent", "demo", "--allow", "Edit", "--json", "--patch", "all.patch")
    for _ in range(2):  # also where they are left from before
        (place.cwd / "new.txt").unlink(missing_ok=True)
        with (place.cwd / "events.jsonl").open("wb") as out, (place.cwd / "errors.log").open("wb") as err:
            subprocess.run(words, cwd=place.cwd, env=place.env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        *_, last = (place.cwd / "events.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(last)["patch"]["files"] == ["new.txt"]
    place.run("/run cp README.md events.jsonl", "--on-ask", "allow", "--patch", "all.patch")
    assert b"b/events.jsonl" in (place.cwd / "all.patch").read_bytes()  # of another run it is a file like any other


def test_a_worktree_takes_the_changes_and_is_kept_with_its_branch(place: Place) -> None:
    repository(place)
    (place.cwd / "sub").mkdir()
    (place.cwd / "sub" / "here").touch()
    git(place, "add", "-A")
    git(place, "commit", "-qm", "second")
    words = ("/edit new.txt hello", "--allow", "Edit", "--output", "json", "--cwd", str(place.cwd / "sub"))
    made = checked(place.run(*words, "--worktree")).result["worktree"]
    assert made["kept"] and not (place.cwd / "sub" / "new.txt").exists()
    assert (Path(made["path"]) / "sub" / "new.txt").read_text(encoding="utf-8") == "hello\n"
    assert made["branch"] in git(place, "branch") and made["base"] == git(place, "rev-parse", "HEAD").strip()
    assert Path(made["path"]).is_relative_to(place.state)
    place.run(*words)
    assert (place.cwd / "sub" / "new.txt").exists()


def test_a_worktree_without_changes_is_removed_and_the_option_decides_otherwise(place: Place, tmp_path: Path) -> None:
    repository(place)

    def left(done: Done) -> tuple[bool, bool, bool]:
        made = done.result["worktree"]
        return made["kept"], Path(made["path"]).exists(), made["branch"] in git(place, "branch")

    base = ("--worktree", "--output", "json", "--allow", "Edit")
    assert left(place.run("hi", *base)) == (False, False, False)
    assert left(place.run("hi", *base, "--keep-worktree", "always")) == (True, True, True)
    patch = ("--keep-worktree", "never", "--patch", str(tmp_path / "a.patch"))
    assert left(place.run("/edit new.txt hello", *base, *patch)) == (False, False, False)
    assert b"+hello" in (tmp_path / "a.patch").read_bytes()


def test_a_worktree_needs_a_repository_with_a_commit(place: Place) -> None:
    done = place.run("hi", "--worktree")
    assert done.status == 2 and "is in no git repository" in done.err
    git(place, "init", "-q")
    done = place.run("hi", "--worktree")
    assert done.status == 2 and "has no commit yet" in done.err


def test_a_worktree_that_git_refuses_names_the_reason(place: Place, tmp_path: Path) -> None:
    repository(place)
    programs = tmp_path / "programs"
    programs.mkdir()
    without = place.run("hi", "--worktree", env={"PATH": str(programs)})
    assert without.status == 2 and "git is not on the PATH" in without.err
    refusal = f"fatal: detected dubious ownership in repository at '{place.cwd}'\nTo add an exception, call:\n\n\tgit"
    (programs / "git").write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{refusal}\nEND\nexit 128\n", encoding="utf-8")
    (programs / "git").chmod(0o755)
    refused = place.run("hi", "--worktree", env={"PATH": f"{programs}:{place.env['PATH']}"})
    assert refused.status == 2 and "it belongs to another user" in refused.err
    assert f"git config --global --add safe.directory {place.cwd}" in refused.err


@pytest.mark.parametrize("flags", [("--session", "mine"), ("--continue",)], ids=lambda flags: flags[0])
def test_a_worktree_has_no_earlier_sessions(place: Place, flags: tuple[str, ...]) -> None:
    repository(place)
    done = place.run("hi", "--worktree", *flags)
    assert done.status == 2 and f"`{flags[0]}` finds sessions of a directory" in done.err


def test_a_worktree_has_only_what_is_committed(place: Place) -> None:
    repository(place)
    (place.cwd / "new.txt").write_text("new\n", encoding="utf-8")
    for words in (("look at @new.txt",), ("look", "--attach", "new.txt")):
        assert place.run(*words).status == 0
        done = place.run(*words, "--worktree")
        assert done.status == 2 and "a worktree has what is committed" in done.err
    assert len(git(place, "worktree", "list").splitlines()) == 1


def test_keeping_a_worktree_needs_one(place: Place) -> None:
    done = place.run("hi", "--keep-worktree", "never")
    assert done.status == 2 and "`--keep-worktree` is for a run with `--worktree`" in done.err


# Permission.


def test_a_policy_file_counts_beside_the_users_own(place: Place) -> None:
    policy = place.cwd / "ci.toml"
    policy.write_text('[policy]\nallow = ["Edit"]\ndeny = ["Bash(rm *)"]\n', encoding="utf-8")
    words = ("/edit notes.txt hello", "--json")
    assert place.run(*words).status == 5
    done = place.run(*words, "--policy", "ci.toml")
    assert done.status == 0 and {event["rule"] for event in done.of("permission")} == {"Edit"}
    place.configure('[policy]\ndeny = ["Edit"]\n')
    denied = place.run(*words, "--policy", "ci.toml")
    assert [event["verdict"] for event in denied.of("permission")] == ["deny"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agent = 'demo'\n", "sets `agent`"),
        ("", "is empty"),
        ("[policy]\nallow = ['Bash(']\n", "ci.toml"),
        ("[policy]\nmode = 'wild'\n", "policy.mode"),
    ],
)
def test_a_policy_file_with_anything_else_is_refused(place: Place, text: str, problem: str) -> None:
    (place.cwd / "ci.toml").write_text(text, encoding="utf-8")
    done = place.run("hi", "--policy", "ci.toml")
    assert done.status == 2 and problem in done.err
    assert place.run("hi", "--policy", "none.toml").status == 2


def test_trust_project_lets_the_projects_own_policy_count(place: Place) -> None:
    (place.cwd / ".antiphon").mkdir()
    (place.cwd / ".antiphon" / "config.toml").write_text('[policy]\nallow = ["Edit"]\n', encoding="utf-8")
    words = ("/edit notes.txt hello", "--json")
    assert place.run(*words).status == 5
    assert place.run(*words, "--trust-project").status == 0


# Errors for programs.


def test_a_rate_limit_has_a_status_a_kind_and_a_time_to_wait(place: Place) -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")
    agent = ("--output", "json", "--agent", place.agent(agents.IsLimited))
    for kind, status, name in (
        ("rate_limit", 8, "rate_limited"),
        ("usage_limit", 8, "rate_limited"),
        ("auth", 7, "auth_required"),
        ("overloaded", 1, "refused"),
    ):
        done = checked(place.run(json.dumps({"kind": kind, "resetsAt": until}), *agent))
        error = done.result["error"]
        assert (done.status, error["kind"], error["retryable"]) == (status, name, kind != "auth")
        assert 3000 < error["retryAfter"] <= 3600
    error = place.run(json.dumps({"kind": "rate_limit", "resetsAt": "soon"}), *agent).result["error"]
    assert error["retryable"] and "retryAfter" not in error


def test_a_warning_is_in_the_result_too_which_may_be_all_that_is_printed(place: Place, tmp_path: Path) -> None:
    assert "warnings" not in place.run("hi", "--output", "json").result
    summary = tmp_path / "summary.md"
    words = ("hi", "--max-cost", "1", "--ephemeral", "--agent", place.agent(agents.TakesTextOnly))
    done = checked(place.run(*words, "--output", "json", "--github", env={"GITHUB_STEP_SUMMARY": str(summary)}))
    kept, cost = sorted(done.result["warnings"], key=lambda each: "cost" in each["message"])
    assert "is not deleted" in kept["message"] and "`--max-cost` has no effect" in cost["message"]
    assert [line.split("::")[1] for line in commands(done)] == ["warning title=antiphon run"] * 2
    assert summary.read_text(encoding="utf-8").count("\n> warning: ") == 2


# Reports.


def commands(done: Done) -> list[str]:
    """The workflow commands that GitHub obeys: it obeys none while they are stopped, which they are while the agent works."""
    first, *lines = done.err.splitlines()
    stop, _, token = first.rpartition("::")
    assert stop == "::stop-commands" and token not in done.out
    at = lines.index(f"::{token}::")
    return [line for line in lines[at + 1 :] if line.startswith("::")]


def test_github_gets_annotations_a_summary_and_outputs(place: Place, tmp_path: Path) -> None:
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs"
    variables = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs), "GITHUB_WORKSPACE": str(place.cwd)}
    words = ("/edit notes.txt a::b", "--allow", "Edit")
    place.run(*words, env=variables)
    assert not summary.exists() and not outputs.exists()
    done = place.run(*words, "--github", env=variables)
    assert commands(done) == ["::notice file=notes.txt,title=edited by Antiphon demo::notes.txt"]
    assert "| files changed | 1 |" in summary.read_text(encoding="utf-8") and "✅" in summary.read_text(
        encoding="utf-8"
    )
    name, _, mark = outputs.read_text(encoding="utf-8").splitlines()[0].partition("<<")
    assert name == "exit-code" and f"<<{mark}\n0\n{mark}\n" in outputs.read_text(encoding="utf-8")
    failed = place.run("/fail", "--github", env=variables)
    [error] = commands(failed)
    assert error.startswith("::error title=antiphon run::") and "❌" in summary.read_text(encoding="utf-8")


def test_github_also_gets_an_error_that_comes_before_the_start(place: Place, tmp_path: Path) -> None:
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs"
    variables = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs)}
    done = place.run("hi", "--github", "--worktree", env=variables)
    [error] = commands(done)
    assert done.status == 2 and error.startswith("::error title=antiphon run::") and "no git repository" in error
    assert "❌ antiphon run: wrong arguments" in summary.read_text(encoding="utf-8")
    assert "\n2\n" in outputs.read_text(encoding="utf-8") and "error-kind<<" in outputs.read_text(encoding="utf-8")


def test_github_also_gets_wrong_arguments_and_what_would_have_allowed_a_denied_command(
    place: Place, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    done = place.run("hi", "--github", "--max-csot", "1", env={"GITHUB_OUTPUT": str(outputs)})
    [error] = commands(done)
    assert done.status == 2 and "unknown option `--max-csot`" in error and "did you mean `--max-cost`" in error
    assert "\n2\n" in outputs.read_text(encoding="utf-8")
    assert "::" not in place.run("hi", "--max-csot", "1", "--", "--github").err
    error, denial = commands(place.run("/run ls", "--github", "--json"))
    assert error.startswith("::error ") and "`--allow 'Bash(ls)'` allows it" in error and "denied%3A ls" in denial


def test_workflow_commands_work_again_and_a_worktree_is_named_if_the_result_cannot_be_printed(place: Place) -> None:
    repository(place)
    words = place.words("/edit new.txt hello", "--allow", "Edit", "--worktree", "--output", "json", "--github")
    with open("/dev/full", "wb") as full:
        lost = subprocess.run(
            words, cwd=place.cwd, env=place.env, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE
        )
    done = Done(lost.returncode, "", lost.stderr.decode())
    [error] = commands(done)
    assert done.status == 1 and error.startswith("::error ") and "stdout cannot be written" in error
    assert f"worktree {place.state}" in done.err and "on branch antiphon/" in done.err


def test_what_an_agent_writes_is_no_workflow_command_and_no_output_of_its_own(place: Place, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    env = {"GITHUB_OUTPUT": str(outputs)}
    (place.cwd / "answers.jsonl").write_text(json.dumps("x\nexit-code<<E\n7\nE\n::error::no") + "\n", encoding="utf-8")
    done = place.run("x", "--github", "-q", "--agent", place.agent(agents.Answers), env=env)
    assert commands(done) == [] and "::error::no" in done.out
    lines, found = iter(outputs.read_text(encoding="utf-8").splitlines()), {}
    for line in lines:
        name, _, mark = line.partition("<<")
        found[name] = list(iter(lambda mark=mark: next(lines), mark))  # type: ignore[misc]  # bound at once
    assert found["exit-code"] == ["0"] and found["text"][-1] == "::error::no"
    refused = place.run(
        json.dumps({"details": "a\n::warning::b"}), "--github", "--agent", place.agent(agents.IsLimited)
    )
    assert "\n::warning::b" in refused.err and [line.split()[0] for line in commands(refused)] == ["::error"]


def test_junit_has_a_case_for_the_run_and_for_each_denial(place: Place) -> None:
    words = ("/edit notes.txt hello",)
    place.run(*words)
    assert not (place.cwd / "junit.xml").exists()
    place.run(*words, "--junit", "junit.xml")
    suite = ET.parse(place.cwd / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    run, denial = suite
    assert run.get("classname") == "antiphon.run" and denial.find("failure") is not None
    place.run(*words, "--junit", "junit.xml", "--allow", "Edit")
    suite = ET.parse(place.cwd / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0") and suite[0].findtext("system-out")


@pytest.mark.parametrize("flag", ["--output-file", "--patch", "--junit"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_starts(
    place: Place, flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = ("--agent", place.agent(agents.TakesTextOnly))
    for name, problem in (("", "has an empty name"), ("none/a", "there is no directory"), (".", "is a directory")):
        done = place.run("hi", *agent, flag, name)
        assert done.status == 2 and problem in done.err and not place.log.exists()
    options = Options.read(run_parser(), ["hi", flag, str(place.cwd / "a")])
    check_files(options)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(Misused, match="cannot be written"):
        check_files(options)


def test_a_report_that_cannot_be_written_is_an_error_of_the_run(place: Place) -> None:
    done = checked(place.run("hi", "--junit", "/dev/full", "--output", "json"))
    assert (done.status, done.result["exitCode"]) == (1, 1) and "no space left" in done.result["error"]["message"]
    denied = checked(place.run("/run ls", "--junit", "/dev/full", "--output", "json"))
    assert (denied.status, denied.result["exitCode"]) == (5, 5) and "no space left" in denied.err
