"""The gate with real peers: what is asked, what is remembered, what is denied, and what the agent is sent."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.client.connect import connect
from antiphon.client.files import Files
from antiphon.client.launch import GuardedFiles, GuardedTerminals
from antiphon.client.terminals import Terminals
from antiphon.permission.gate import PermissionChoice, PermissionGate, Question
from antiphon.policy import PolicyMode, Verdict
from antiphon.protocol import v1
from antiphon.store.schema import open_database
from tests.client.agents import AT_ONCE
from tests.limits import limit
from tests.permission.gated_session import NO, ONCE, AgentActions, User, audited, gated_session, names_in, rules, stores
from tests.waits import idle

ALWAYS = PermissionChoice(Verdict.ALLOW, "project")


@pytest.fixture
def demo(tmp_path: Path) -> dict[str, Any]:
    """How to start the demo agent with a memory of its own."""
    return {"env": {**os.environ, "ANTIPHON_STATE_DIR": str(tmp_path / "demo state")}, "retry": AT_ONCE}


def handlers(gate: PermissionGate) -> dict[str, Any]:
    return {
        "permission": gate.permission,
        "files": GuardedFiles(Files(write=True), gate),
        "terminals": GuardedTerminals(Terminals(), gate),
    }


# With the demo agent as a process.


async def test_what_was_allowed_is_asked_once_and_everything_is_written_down(
    tmp_path: Path, demo: dict[str, Any]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    user = User(ONCE, ONCE)
    async with asyncio.timeout(limit()), open_database(tmp_path) as database:
        gate = PermissionGate(ask=user, agent="demo", **stores(database))
        async with connect("demo", **demo, **handlers(gate)) as agent:
            session = await agent.new_session(work)
            await session.prompt("/edit note some words")
            await session.prompt("/run echo more >> note")
        log = await audited(database)
    assert (work / "note").read_text(encoding="utf-8") == "some words\nmore\n"
    assert [(question.action.tool, question.request is not None) for question in user.asked] == [
        ("Edit", True),
        ("Bash", True),
    ]
    assert [(entry.tool, entry.verdict, entry.source) for entry in log] == [
        ("Read", "allow", "mode"),  # it looks at the file before it asks
        ("Edit", "allow", "user"),
        ("Write", "allow", "permission"),
        ("Bash", "allow", "user"),
        ("Bash", "allow", "permission"),
    ]
    assert {entry.agent for entry in log} == {"demo"} and {entry.session_id for entry in log} == {session.id}
    assert log[-1].subject == "echo more >> note" and log[-2].answer
    assert gate.denials == []


async def test_without_a_user_a_request_is_rejected_and_the_turn_goes_on(tmp_path: Path, demo: dict[str, Any]) -> None:
    gate = PermissionGate()
    async with asyncio.timeout(limit()), connect("demo", **demo, **handlers(gate)) as agent:
        session = await agent.new_session(tmp_path)
        result = await session.prompt("/edit note some words")
        text = await session.prompt("/permission").text()
    assert result.stop_reason == v1.StopReason.END_TURN
    assert "reject_once" in text
    assert not (tmp_path / "note").exists()
    assert [(denial.subject, denial.unattended) for denial in gate.denials] == [
        (str(tmp_path / "note"), True),
        ("Do nothing", True),
    ]
    assert gate.failed is None


async def test_an_agent_that_was_answered_always_does_not_ask_and_is_decided_about_all_the_same(
    tmp_path: Path, demo: dict[str, Any]
) -> None:
    user = User(PermissionChoice(Verdict.ALLOW, "session", option_id="allow_always"), NO)
    gate = PermissionGate(ask=user)
    async with asyncio.timeout(limit()), connect("demo", **demo, **handlers(gate)) as agent:
        session = await agent.new_session(tmp_path)
        await session.prompt("/edit note first")
        await session.prompt("/edit note second")  # remembered, by the agent and by us
        gate.rules = rules(ask=["Edit(note)"])
        await session.prompt("/edit note third")
        gate.mode = PolicyMode.PLAN
        await session.prompt("/edit note fourth")
    assert (tmp_path / "note").read_text(encoding="utf-8") == "first\nsecond\n"
    assert [question.request is not None for question in user.asked] == [True, False]
    assert user.asked[1].content == "first\nsecond\nthird\n"


# What the policy decides about.


async def test_an_agent_that_never_asks_gets_nothing_for_free(tmp_path: Path) -> None:
    gate = PermissionGate(rules("Edit(src/**)", "Bash(echo *)"))
    answers: dict[str, str | None] = {}

    async def play(agent: AgentActions) -> None:
        answers["inside"] = await agent.write("src/a")
        answers["beside"] = await agent.write("b")
        answers["echo"] = await agent.run("echo", "hello")
        answers["line"] = await agent.run("echo hello")
        answers["smuggled"] = await agent.run("echo hello; touch c")
        answers["touch"] = await agent.run("touch", "c")
        answers["preloaded"] = await agent.run("echo", "hello", env=[v1.EnvVariable("LD_PRELOAD", "/tmp/x.so")])

    async with gated_session(gate, tmp_path) as gated:
        await gated.turn(play)
    assert [what for what, answer in answers.items() if answer is None] == ["inside", "echo", "line"]
    assert {what for what, answer in answers.items() if answer and "permission denied" in answer} == {
        "beside", "smuggled", "touch", "preloaded"
    }  # fmt: skip
    assert names_in(tmp_path) == ["src"]


async def test_a_read_that_a_rule_denies_is_denied_through_the_client_too(tmp_path: Path) -> None:
    for name in ("open", "secret"):
        (tmp_path / name).write_text("words", encoding="utf-8")
    (tmp_path / "link").symlink_to("secret")
    answers: list[str | None] = []

    async def play(agent: AgentActions) -> None:
        answers.extend([await agent.read(name) for name in ("open", "secret", "link")])

    async with gated_session(PermissionGate(rules(deny=["Read(secret)"])), tmp_path) as gated:
        await gated.turn(play)
    assert answers[0] is None and all(answer and "denied" in answer for answer in answers[1:])


async def test_a_deny_rule_holds_whatever_the_user_and_the_mode_allow(tmp_path: Path) -> None:
    gate = PermissionGate(rules(deny=["Edit(.env)"]), PolicyMode.BYPASS, ask=User())
    answers: list[object] = []

    async def play(agent: AgentActions) -> None:
        answers.extend([await agent.ask_to_edit(".env"), await agent.write(".env"), await agent.write("other")])

    async with gated_session(gate, tmp_path) as gated:
        await gated.turn(play)
    assert answers[0] == v1.Selected("n") and answers[1] and answers[2] is None
    assert names_in(tmp_path) == ["other"]


async def test_in_plan_nothing_is_written_or_run_until_the_mode_is_changed(tmp_path: Path) -> None:
    gate = PermissionGate(rules("Edit", "Bash"), PolicyMode.PLAN, ask=User())
    answers: list[object] = []

    async def play(agent: AgentActions) -> None:
        answers.extend([await agent.ask_to_edit("a"), await agent.write("a"), await agent.run("touch", "a")])

    async with gated_session(gate, tmp_path) as gated:
        await gated.turn(play)
        assert answers[0] == v1.Selected("n") and None not in answers
        gate.mode = PolicyMode.DEFAULT
        await gated.turn(play)
    assert answers[3:] == [v1.Selected("y"), None, None]


async def test_a_path_outside_the_roots_is_refused_without_a_question(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    answers: list[str | None] = []

    async def play(agent: AgentActions) -> None:
        answers.append(await agent.write("../beside"))
        answers.append(await agent.run("touch", "x", cwd=str(tmp_path)))

    async with gated_session(PermissionGate(ask=User()), work) as gated:
        await gated.turn(play)
    assert all(answers) and names_in(tmp_path) == ["work"]


# What was allowed just now.


async def test_an_allowed_command_is_one_command_in_whatever_form_it_comes(tmp_path: Path) -> None:
    forms: list[tuple[str, ...]] = [
        ("touch 'a b' c",), ("touch", "a b", "c"), ("sh", "-c", "touch 'a b' c"), ("bash", "-lc", "touch 'a b' c")
    ]  # fmt: skip
    user = User(*[ONCE for _ in forms])

    async def play(agent: AgentActions) -> None:
        for form in forms:
            await agent.ask_to_run("touch 'a b' c")
            assert await agent.run(*form) is None

    async with gated_session(PermissionGate(ask=user), tmp_path) as gated:
        await gated.turn(play)
    assert len(user.asked) == len(forms)


@pytest.mark.parametrize(
    ("asked", "form", "more"),
    [
        ("touch a", ("touch", "b"), {}),
        ("touch $A", ("touch", "$A"), {}),
        ("A=b touch a", ("A=b", "touch", "a"), {}),
        ("touch a; touch b", ("touch", "a;", "touch", "b"), {}),
        ("touch a", ("touch", "a"), {"env": [v1.EnvVariable("PATH", "/tmp")]}),
        ("touch a", ("touch", "a"), {"cwd": "sub"}),
        ("touch a", ("sh", "-c", "touch a; touch b"), {}),
    ],
)
async def test_another_command_than_the_allowed_one_is_asked(
    tmp_path: Path, asked: str, form: tuple[str, ...], more: dict[str, Any]
) -> None:
    (tmp_path / "sub").mkdir()
    if "cwd" in more:
        more = {"cwd": str(tmp_path / more["cwd"])}
    user = User(ONCE, NO)

    async def play(agent: AgentActions) -> None:
        await agent.ask_to_run(asked)
        assert await agent.run(*form, **more) is not None

    async with gated_session(PermissionGate(ask=user), tmp_path) as gated:
        await gated.turn(play)
    assert len(user.asked) == 2
    assert names_in(tmp_path) == ["sub"]


async def test_what_was_allowed_ends_with_the_turn_and_a_read_grants_no_write(tmp_path: Path) -> None:
    user = User(ONCE, NO, ONCE, NO)

    async def ask(agent: AgentActions) -> None:
        await agent.ask_to_edit("a")

    async def write(agent: AgentActions) -> None:
        assert await agent.write("a") is not None
        place = str(tmp_path / "a")
        await agent.ask(name="Read", kind=v1.ToolKind.READ, raw_input={"path": place})
        assert await agent.write("a") is not None

    async with gated_session(PermissionGate(rules(ask=["Read"]), ask=user), tmp_path) as gated:
        await gated.turn(ask)
        await gated.turn(write)
    assert len(user.asked) == 4


# What is remembered.


async def test_always_survives_a_restart_within_its_scope(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    outcomes: list[object] = []

    async def play(agent: AgentActions) -> None:
        outcomes.append(await agent.ask_to_run("git status"))

    user = User(ALWAYS)
    for cwd, asked in ((here, 1), (here, 1), (there, 2)):
        if asked == 2:
            user = User(NO)
        async with (
            open_database(tmp_path) as database,
            gated_session(PermissionGate(ask=user, **stores(database)), cwd) as gated,
        ):
            await gated.turn(play)
    assert outcomes == [v1.Selected("y"), v1.Selected("y"), v1.Selected("n")]
    async with open_database(tmp_path) as database:
        log = await audited(database)
        (decision,) = await stores(database)["decisions"].all()
    assert [(entry.verdict, entry.source, entry.rule) for entry in log] == [
        ("allow", "user", "Bash(git status)"),
        ("allow", "remembered", "Bash(git status)"),
        ("deny", "user", ""),
    ]
    assert (decision.rule, decision.scope, decision.project) == ("Bash(git status)", "project", str(here))


async def test_never_is_remembered_too_and_answered_with_the_option_for_it(tmp_path: Path) -> None:
    user = User(PermissionChoice(Verdict.DENY, "everywhere"))
    outcomes: list[object] = []

    async def play(agent: AgentActions) -> None:
        outcomes.append(await agent.ask_to_run("git push"))

    async with open_database(tmp_path) as database:
        gate = PermissionGate(mode=PolicyMode.DEFAULT, ask=user, **stores(database))
        async with gated_session(gate, tmp_path) as gated:
            await gated.turn(play)
            gate.mode = PolicyMode.BYPASS
            await gated.turn(play)
    assert outcomes == [v1.Selected("N"), v1.Selected("n")]


async def test_a_remembered_answer_expires(tmp_path: Path) -> None:
    outcomes: list[object] = []

    async def play(agent: AgentActions) -> None:
        outcomes.append(await agent.ask_to_run("git status"))

    for place in (tmp_path / "state", None):
        outcomes.clear()
        user = User(
            PermissionChoice(Verdict.ALLOW, "project", "2000-01-01T00:00:00Z"),
            PermissionChoice(Verdict.ALLOW, "project", "soon"),
            NO,
        )
        async with open_database(place or tmp_path) as database:
            kept = {} if place is None else stores(database)
            async with gated_session(PermissionGate(ask=user, **kept), tmp_path) as gated:
                for _ in range(3):
                    await gated.turn(play)
        assert outcomes == [v1.Selected("y"), v1.Selected("y"), v1.Selected("n")]


async def test_what_no_rule_expresses_is_allowed_once(tmp_path: Path) -> None:
    user = User(ALWAYS, NO)
    outcomes: list[object] = []

    async def play(agent: AgentActions) -> None:
        outcomes.append(await agent.ask_to_run("echo $(date)"))
        outcomes.append(await agent.ask_to_run("echo $(date)"))

    async with gated_session(PermissionGate(ask=user), tmp_path) as gated:
        await gated.turn(play)
    assert user.asked[0].always == ()
    assert outcomes == [v1.Selected("y"), v1.Selected("n")]


async def test_questions_come_one_by_one_and_an_always_answers_those_that_wait(tmp_path: Path) -> None:
    open_questions = 0

    async def ask(question: Question) -> PermissionChoice:
        nonlocal open_questions
        open_questions += 1
        assert open_questions == 1
        await idle()  # the other requests have come
        open_questions -= 1
        return ALWAYS

    asked = 0

    async def counted(question: Question) -> PermissionChoice:
        nonlocal asked
        asked += 1
        return await ask(question)

    async def play(agent: AgentActions) -> None:
        lines = ("git status", "git status", "git log")
        await asyncio.gather(*[agent.ask_to_run(line) for line in lines])

    async with gated_session(PermissionGate(ask=counted), tmp_path) as gated:
        await gated.turn(play)
    assert asked == 2
