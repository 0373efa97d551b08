"""What an undo would do, as a pure function of looks: whose change is whose, and what cannot be brought back."""

from antiphon.snapshots.entries import TreeEntry, WorkspaceTree
from antiphon.snapshots.plan import RestorePlan, TreeTurn, restore_plan


def tree(uncovered: "dict[str, str] | None" = None, **files: str) -> WorkspaceTree:
    """A directory with files; a content of "/" is a directory, and one of "?" was not read."""
    entries = {}
    for number, (name, text) in enumerate(files.items()):
        path = name.replace("__", "/").encode()
        digest = b"" if text.startswith("?") else text.encode()
        stamp = (1, 1, number + len(text))
        entries[path] = TreeEntry("d", 0o755) if text == "/" else TreeEntry("f", 0o644, len(text), stamp, digest, 1)
    return WorkspaceTree(b"/w", entries, {path.encode(): why for path, why in (uncovered or {}).items()})


def paths(plan: RestorePlan) -> list[str]:
    return [step.path.decode() for step in plan.steps]


def test_what_turns_changed_is_brought_back_and_what_the_user_changed_stays() -> None:
    start, first = tree(a="1", b="1", c="1"), tree(a="2", b="1", c="1")
    between, second = tree(a="2", b="1", c="mine"), tree(a="2", b="2", c="mine", d="new")
    now = tree(a="2", b="2", c="mine", d="new", notes="mine")
    plan = restore_plan([TreeTurn(start, first), TreeTurn(between, second)], now)
    assert paths(plan) == ["a", "b", "d"] and plan.changed_since == [] and plan.lost == {}
    last = restore_plan([TreeTurn(between, second)], now)
    assert paths(last) == ["b", "d"]


def test_what_a_turn_and_the_user_both_changed_is_named() -> None:
    start, end = tree(a="1", b="1"), tree(a="2", b="2")
    plan = restore_plan([TreeTurn(start, end)], tree(a="3", b="2"))
    assert plan.changed_since == [b"a"] and paths(plan) == ["a", "b"]
    assert paths(plan.without({b"a"})) == ["b"]
    # Between two turns counts as well, also if a later turn has changed it again.
    mine = tree(a="mine", b="2")
    plan = restore_plan([TreeTurn(start, end), TreeTurn(mine, tree(a="4", b="2"))], tree(a="4", b="2"))
    assert plan.changed_since == [b"a"]


def test_what_is_as_it_was_needs_nothing() -> None:
    start = tree(a="1")
    plan = restore_plan([TreeTurn(start, tree(a="2"))], tree(a="1"))
    assert plan.steps == [] and plan.changed_since == []


def test_a_turn_whose_end_was_not_seen_is_asked_about() -> None:
    plan = restore_plan([TreeTurn(tree(a="1"), None)], tree(a="2", b="new"))
    assert paths(plan) == ["a", "b"] and plan.changed_since == [b"a", b"b"]


def test_a_content_that_was_not_read_is_lost_and_only_a_mode_is_not() -> None:
    start = tree({"a": "too large"}, a="?one")
    plan = restore_plan([TreeTurn(start, tree(a="?other"))], tree(a="?other"))
    assert plan.steps == [] and plan.lost == {b"a": "too large"}


def test_nothing_is_done_in_a_directory_that_one_look_could_not_see() -> None:
    hidden = tree({"lib": "ignored"}, lib="/")
    visible = tree(lib="/", lib__a="1")
    appeared = restore_plan([TreeTurn(hidden, visible)], visible)
    vanished = restore_plan([TreeTurn(visible, hidden)], hidden)
    assert appeared.steps == [] and vanished.steps == []
    assert appeared.lost == {} and vanished.lost == {b"lib": "ignored"}
