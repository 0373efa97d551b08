"""The tables of attacks, row by row."""

from antiphon.policy import Action
from antiphon.protocol.v1.tools import ToolCall, ToolLocation
from tests.policy.attack_calls import CALLS, CallAttack
from tests.policy.attack_paths import PATHS, PathAttack, follow
from tests.policy.attacks import ATTACKS, HIDDEN, SMUGGLED, Attack
from tests.policy.short import CWD, files, line, ruling
from tests.rows import each_row


@each_row("row", ATTACKS, ids=lambda row: row.trick)
def test_a_line_gets_what_the_rules_give_and_no_more(row: Attack) -> None:
    found = ruling(line(row.line), allow=row.listed("+"), deny=row.listed("-"), ask=row.listed("?"))
    assert found.verdict == row.verdict, found.why


@each_row("row", PATHS, ids=lambda row: row.trick)
def test_a_path_gets_what_the_rules_give_and_no_more(row: PathAttack) -> None:
    action = files(row.path, *row.more, name=row.name, kind=row.kind, resolve=follow)
    found = ruling(action, allow=row.listed("+"), deny=row.listed("-"), mode=row.mode)
    assert found.verdict == row.verdict, found.why


@each_row("row", CALLS, ids=lambda row: row.trick)
def test_a_call_is_not_taken_for_less_than_it_is(row: CallAttack) -> None:
    places = [] if row.kind == "execute" else [ToolLocation(path=f"{CWD}/src/a")]
    call = ToolCall(tool_call_id="t", title="x", name=row.name, kind=row.kind, raw_input=row.raw, locations=places)
    found = ruling(Action.of_tool_call(call, CWD, [CWD]), allow=["Edit(src/**)", "Bash(make *)"], mode=row.mode)
    assert found.verdict == row.verdict, found.why


def test_there_are_many_attacks() -> None:
    assert len({row.line for row in SMUGGLED + HIDDEN}) + len(PATHS) > 60
