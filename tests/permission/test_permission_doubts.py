"""The gate when things are not as they should be: nothing is allowed because something failed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.client.files import Files
from antiphon.client.launch import GuardedFiles
from antiphon.errors import RequestRefused
from antiphon.permission.gate import OnAsk, PermissionChoice, PermissionGate, Question, allowing, rejecting
from antiphon.permission.memory import Memory, forget_closed
from antiphon.policy import PolicyMode, Verdict
from antiphon.protocol import v1
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind
from antiphon.redaction import redact
from antiphon.store.decisions import DecisionStore
from antiphon.store.schema import FILE_NAME, open_database
from tests.permission.gated_session import (
    NO,
    ONCE,
    OPTIONS,
    AgentActions,
    User,
    audited,
    gated_session,
    names_in,
    rules,
    stores,
)
from tests.rows import each_row

YES, REJECTED = v1.Selected("y"), v1.Selected("n")


async def outcome_of_editing(gate: PermissionGate, cwd: Path, **call: Any) -> object:
    """What an agent is sent that asks to edit a file."""
    outcomes: list[object] = []

    async def play(agent: AgentActions) -> None:
        outcomes.append(await (agent.ask(**call) if call else agent.ask_to_edit("a")))

    async with gated_session(gate, cwd) as gated:
        await gated.turn(play)
    return outcomes[0]


# The store.


async def test_a_store_that_cannot_be_used_means_ask_and_nothing_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database, and long enough to be seen as none" * 20)
    work = tmp_path / "work"
    work.mkdir()
    database = open_database(tmp_path)
    user = User(PermissionChoice(Verdict.ALLOW, "everywhere"), NO)
    gate = PermissionGate(mode=PolicyMode.BYPASS, ask=user, decisions=stores(database)["decisions"])
    assert await outcome_of_editing(gate, work) == YES  # "always" could not be remembered, so it is none
    assert await outcome_of_editing(gate, work) == REJECTED
    assert {question.ruling.source for question in user.asked} == {"doubt"}
    assert "is not a database" in caplog.text
    await database.close()


@pytest.mark.parametrize("on_ask", ["deny", "fail", "allow"])
async def test_in_doubt_no_user_means_no(tmp_path: Path, on_ask: OnAsk) -> None:
    (tmp_path / FILE_NAME).mkdir()
    work = tmp_path / "work"
    work.mkdir()
    database = open_database(tmp_path)
    gate = PermissionGate(mode=PolicyMode.BYPASS, on_ask=on_ask, decisions=stores(database)["decisions"])
    assert await outcome_of_editing(gate, work) == REJECTED
    # A rule of the user's own needs no store: whatever is remembered comes after it.
    gate = PermissionGate(rules("Edit"), on_ask=on_ask, decisions=stores(database)["decisions"])
    assert await outcome_of_editing(gate, work) == YES
    await database.close()


async def test_an_audit_that_cannot_be_written_is_reported_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = open_database(tmp_path)
    await database.close()
    gate = PermissionGate(rules("Edit"), audit=stores(database)["audit"])
    assert await outcome_of_editing(gate, tmp_path) == YES
    assert "could not be written down" in caplog.text


@pytest.mark.parametrize(
    "row",
    [
        ("Bash(git", "allow", "everywhere"),
        ("Edit(../x)", "deny", "everywhere"),
        ("Edit", "perhaps", "everywhere"),
    ],
)
async def test_a_remembered_rule_that_means_nothing_means_ask(tmp_path: Path, row: tuple[str, str, str]) -> None:
    async with open_database(tmp_path) as database:
        insert = (
            "INSERT INTO decision (rule, verdict, scope, session_id, project, agent, made_at)"
            " VALUES (?, ?, ?, '', '', '', '')"
        )
        await database.run(lambda connection: connection.execute(insert, row).rowcount)
        user = User(NO)
        gate = PermissionGate(mode=PolicyMode.BYPASS, ask=user, **stores(database))
        assert await outcome_of_editing(gate, tmp_path) == REJECTED
    assert "antiphon policy revoke 1" in user.asked[0].ruling.why


@pytest.mark.parametrize("mode", [PolicyMode.BYPASS, PolicyMode.ACCEPT_EDITS, PolicyMode.DEFAULT])
async def test_a_policy_that_cannot_be_read_means_that_everything_is_asked(tmp_path: Path, mode: PolicyMode) -> None:
    user = User(ONCE)
    gate = PermissionGate(rules("Edit"), mode, ask=user, broken="config.toml cannot be read.")
    assert await outcome_of_editing(gate, tmp_path) == YES
    assert user.asked[0].ruling.why == "config.toml cannot be read."
    for on_ask in ("deny", "allow"):
        gate = PermissionGate(rules("Edit"), mode, on_ask=on_ask, broken="config.toml cannot be read.")
        assert await outcome_of_editing(gate, tmp_path) == REJECTED
    gate = PermissionGate(rules("Edit"), PolicyMode.DONT_ASK, ask=User(), broken="config.toml cannot be read.")
    assert await outcome_of_editing(gate, tmp_path) == REJECTED


# No user, or a user who fails.


async def test_what_becomes_of_a_request_without_a_user(tmp_path: Path) -> None:
    deny, fail, allow = PermissionGate(), PermissionGate(on_ask="fail"), PermissionGate(on_ask="allow")
    assert [await outcome_of_editing(gate, tmp_path) for gate in (deny, fail, allow)] == [REJECTED, REJECTED, YES]
    assert deny.failed is None and len(deny.denials) == 1
    assert fail.failed is fail.denials[0] and fail.failed.unattended
    assert allow.denials == []


async def test_a_denial_by_a_rule_does_not_count_as_a_missing_user(tmp_path: Path) -> None:
    gate = PermissionGate(rules(deny=["Edit"]), on_ask="fail")
    assert await outcome_of_editing(gate, tmp_path) == REJECTED
    assert gate.failed is None and [denial.unattended for denial in gate.denials] == [False]


@pytest.mark.parametrize("answer", [None, True, "allow", PermissionChoice(Verdict.ASK), PermissionChoice("perhaps")])  # type: ignore[arg-type]
async def test_an_answer_that_is_none_allows_nothing(tmp_path: Path, answer: Any) -> None:
    assert await outcome_of_editing(PermissionGate(ask=lambda _: answer), tmp_path) == REJECTED


async def test_a_screen_that_fails_allows_nothing(tmp_path: Path) -> None:
    def ask(question: Question) -> PermissionChoice:
        raise RuntimeError("no screen")

    assert await outcome_of_editing(PermissionGate(ask=ask), tmp_path) == REJECTED


async def test_a_denial_without_an_option_for_it_is_an_error_and_never_cancelled(tmp_path: Path) -> None:
    only_yes = [option for option in OPTIONS if option.kind in (Kind.ALLOW_ALWAYS, Kind.ALLOW_ONCE)]
    with pytest.raises(RequestRefused, match="permission denied"):
        await outcome_of_editing(PermissionGate(), tmp_path, options=only_yes, name="Edit", kind=v1.ToolKind.EDIT)


async def test_a_keeper_that_knows_no_session_allows_nothing_by_a_pattern(tmp_path: Path) -> None:
    place = str(tmp_path / "a")
    call = v1.ToolCallPatch("t", kind=v1.ToolKind.EDIT, name="Edit", raw_input={"path": place})
    gate = PermissionGate(rules(f"Edit({tmp_path}/**)"))
    assert (await gate.permission(v1.RequestPermission("s", call, OPTIONS))).outcome == REJECTED


# The turn, and links.


async def test_a_question_about_a_write_is_released_when_the_turn_is_cancelled(tmp_path: Path) -> None:
    asked = asyncio.Event()
    answers: list[str | None] = []

    async def ask(question: Question) -> PermissionChoice:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def play(agent: AgentActions) -> None:
        answers.append(await agent.write("a"))

    async with open_database(tmp_path / "state") as database:
        gate = PermissionGate(ask=ask, **stores(database))
        async with gated_session(gate, tmp_path) as gated:
            turn = asyncio.create_task(gated.turn(play))
            await asked.wait()
            await gated.session.cancel()
            await turn
        log = await audited(database)
    assert answers and answers[0] and "cancelled" in answers[0] and not (tmp_path / "a").exists()
    assert [(entry.verdict, entry.source) for entry in log] == [("deny", "cancelled")]
    assert gate.denials == []


async def test_a_cancelled_question_for_permission_is_written_down(tmp_path: Path) -> None:
    asked = asyncio.Event()
    outcomes: list[object] = []

    async def ask(question: Question) -> PermissionChoice:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def play(agent: AgentActions) -> None:
        outcomes.append(await agent.ask_to_edit("a"))

    async with open_database(tmp_path / "state") as database:
        async with gated_session(PermissionGate(ask=ask, **stores(database)), tmp_path) as gated:
            turn = asyncio.create_task(gated.turn(play))
            await asked.wait()
            await gated.session.cancel()
            await turn
        log = await audited(database)
    assert outcomes == [v1.Cancelled()]
    assert [(entry.source, entry.answer) for entry in log] == [("cancelled", "cancelled")]


async def test_a_link_that_is_put_in_the_way_while_the_user_thinks_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("old", encoding="utf-8")

    def ask(question: Question) -> PermissionChoice:
        (tmp_path / "a").symlink_to("precious")
        return ONCE

    answers: list[str | None] = []

    async def play(agent: AgentActions) -> None:
        answers.append(await agent.write("a"))

    async with gated_session(PermissionGate(ask=ask), tmp_path) as gated:
        await gated.turn(play)
    assert answers[0] and "leads elsewhere" in answers[0]
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "old"


async def test_files_that_are_not_to_be_written_stay_so(tmp_path: Path) -> None:
    gate = PermissionGate(rules("Edit"))
    guarded = GuardedFiles(Files(), gate)
    assert not guarded.can_write
    with pytest.raises(Exception, match="did not offer to write"):
        await guarded.write([str(tmp_path)], v1.WriteTextFile("s", str(tmp_path / "a"), "words"))
    assert names_in(tmp_path) == []


# Options, and what is written down.


def options(*listed: tuple[str, str]) -> list[v1.PermissionOption]:
    return [v1.PermissionOption(id, id, Kind(kind)) for id, kind in listed]


@each_row(
    ("picked", "always", "offered", "chosen"),
    [
        (None, False, OPTIONS, "y"),
        (None, True, OPTIONS, "y"),  # what lasts is remembered here; the agent may mean more by it
        (None, True, options(("A", "allow_always"), ("n", "reject_once")), "A"),
        ("A", False, OPTIONS, "A"),
        ("n", False, OPTIONS, "y"),  # says the opposite of the verdict
        ("gone", False, OPTIONS, "y"),
        ("x", False, options(("x", "allow_forever"), ("y", "allow_once")), "x"),
        (None, False, options(("x", "allow_forever")), None),
        (None, False, options(("A", "allow_always"), ("n", "reject_once")), None),
        (None, True, options(("y", "allow_once")), "y"),
        (None, True, [], None),
    ],
)
def test_the_option_that_allows(
    picked: str | None, always: bool, offered: list[v1.PermissionOption], chosen: str | None
) -> None:
    assert allowing(offered, picked, always=always) == chosen


@pytest.mark.parametrize(
    ("picked", "always", "offered", "chosen"),
    [
        (None, False, OPTIONS, "n"),
        (None, True, OPTIONS, "N"),
        ("N", False, OPTIONS, "N"),
        ("y", False, OPTIONS, "n"),
        ("x", False, options(("x", "reject_forever"), ("n", "reject_once")), "n"),
        (None, False, options(("N", "reject_always")), "N"),
        (None, False, options(("y", "allow_once"), ("x", "reject_forever")), None),
    ],
)
def test_the_option_that_rejects(
    picked: str | None, always: bool, offered: list[v1.PermissionOption], chosen: str | None
) -> None:
    assert rejecting(offered, picked, always=always) == chosen


@each_row(
    "command",
    [
        "curl -H 'Authorization: Bearer SECRETSECRET' https://example.org",
        "curl -H 'X-Api-Key: SECRETSECRET' https://example.org",
        "curl https://me:SECRETSECRET@example.org/",
        "mysql --password=SECRETSECRET",
        "deploy --api-key SECRETSECRET --fast",
        "GITHUB_TOKEN=SECRETSECRET gh pr list",
        'http post example.org \'{"client_secret": "SECRETSECRET"}\'',
        "use sk-SECRETSECRET",
        "use ghp_SECRETSECRET",
    ],
)
def test_what_looks_like_a_secret_is_not_written_down(command: str) -> None:
    assert "SECRET" not in redact(command) and "***" in redact(command)


@pytest.mark.parametrize("command", ["git commit -m 'auth works'", "ls token.txt", "grep -r password src", "x" * 500])
def test_what_is_not_a_secret_stays(command: str) -> None:
    assert redact(command) == command


async def test_the_audit_has_neither_contents_nor_secrets(tmp_path: Path) -> None:
    async def play(agent: AgentActions) -> None:
        await agent.write("a", "PRIVATE")
        await agent.ask_to_edit("a", "PRIVATE")
        await agent.ask_to_run("deploy --token PRIVATE")
        await agent.run("deploy", "--token", "PRIVATE", env=[v1.EnvVariable("KEY", "PRIVATE")])
        await agent.ask(name="mcp__s__t", raw_input={"text": "PRIVATE"})

    async with open_database(tmp_path / "state") as database:
        async with gated_session(PermissionGate(**stores(database)), tmp_path) as gated:
            await gated.turn(play)
        log = await audited(database)
    assert len(log) == 5 and "PRIVATE" not in repr(log)
    assert b"PRIVATE" not in (tmp_path / "state" / FILE_NAME).read_bytes()


# Answers that were stored before they were closed.

CLOSED = [
    "Bash(sh)",
    "Bash(python3 -c 1)",
    "Bash(xargs rm)",
    "Bash(env CI=1 npm test)",
    "Bash(sudo ls)",
    "Bash(npx cowsay)",
    "Bash(./build.sh)",
]


@pytest.mark.parametrize("text", CLOSED)
async def test_a_stored_answer_for_what_runs_what_it_is_fed_counts_no_longer_and_is_reported_once(
    tmp_path: Path, text: str
) -> None:
    async with open_database(tmp_path) as database:
        store = DecisionStore(database)
        await store.remember(text, "allow", "everywhere")
        await store.remember("Bash(ls)", "allow", "everywhere")
        await store.remember(text, "deny", "project", project="/p")
        remembered, doubt = await Memory(store, "").recall("s", "/other")
        assert ([one.rule.text for one in remembered], doubt) == (["Bash(ls)"], "")
        [shown] = await forget_closed(store)
        assert f"`{text}`" in shown.sentence and "counts no longer" in shown.sentence
        assert await forget_closed(store) == []
        assert [(row.rule, row.verdict) for row in await store.all()] == [("Bash(ls)", "allow"), (text, "deny")]
