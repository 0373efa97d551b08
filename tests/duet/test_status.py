"""What `/help`, `/status`, `/version` and `/sessions` say."""

from antiphon.duet.commands import offered
from antiphon.duet.limits import Spent
from antiphon.duet.status import (
    SESSIONS,
    EngineStatus,
    JointStatus,
    SessionLine,
    help_text,
    sessions_text,
    status_text,
    version_text,
)
from antiphon.errors import Advice
from antiphon.protocol import v1

CLAUDE = EngineStatus("claude", "Claude Code", "2.1.325", "c-1", "plan", "opus")
CODEX = EngineStatus("codex", "Codex")
GONE = EngineStatus("codex", "Codex", problem=Advice("Codex is not installed", "`pip install 'antiphon[codex]'`"))


def test_help_has_all_of_ours_and_counts_theirs() -> None:
    ours = offered({"claude": "Claude Code", "codex": "Codex"})
    text = help_text(
        ours, {"Claude Code": [v1.Command("init", ""), v1.Command("x", "")], "Codex": [v1.Command("y", "")]}
    )
    for command in ours:
        assert f"| `/{command.name}" in text
    assert "| `/nudge [on, or off]` |" in text
    assert "Claude Code has 2 commands, Codex has 1 command" in text
    assert "goes to the engine." in help_text(ours)


def test_status_shows_everything_that_is_known() -> None:
    state = JointStatus(
        "s-1",
        "duet",
        "claude",
        [CLAUDE, CODEX],
        "A title",
        "fix",
        False,
        True,
        2,
        5,
        Spent(3, 12_345, 0.5),
        20,
        50_000,
        2.0,
    )
    text = status_text(state)
    for row in (
        "| session | `s-1` |",
        "| title | A title |",
        "| route | `duet` |",
        "| primary | `claude` |",
        "| review | `fix` |",
        "| auto-resume | off |",
        "| nudge | on (2 of 5 since your last prompt) |",
        "| last prompt | 3 turns of 20, 12,345 tokens of 50,000, $0.50 of $2.00 |",
        "| Claude Code | 2.1.325 | `c-1` | plan | opus |",
        "| Codex |  |  |  |  |",
    ):
        assert row in text.splitlines()


def test_status_of_one_engine_leaves_out_what_is_for_two_and_names_missing_engines() -> None:
    text = status_text(JointStatus("s-1", "claude", "claude", [CLAUDE, GONE]))
    assert "primary" not in text and "| title |" not in text and "| nudge | on |" in text
    assert "| last prompt | 0 turns, 0 tokens |" in text
    assert text.endswith("Codex is not available: Codex is not installed; `pip install 'antiphon[codex]'`")


def test_versions_are_a_list() -> None:
    assert version_text("0.1.0", [CLAUDE, CODEX, GONE]).splitlines() == [
        "- Antiphon 0.1.0",
        "- Claude Code 2.1.325",
        "- Codex (not started yet)",
        "- Codex: Codex is not installed; `pip install 'antiphon[codex]'`",
    ]


def test_sessions_are_rows_and_a_title_cannot_break_out_of_its_own() -> None:
    odd = SessionLine("s|1", "today", "a | b\n# c `d` <script>\x1b[2J" + "x" * 100, "claude", current=True)
    text = sessions_text([odd, SessionLine("s-2", "yesterday")])
    head, _, first, second = text.splitlines()
    assert head == "| when | title | engine | id |" and second == "| yesterday |  |  | `s-2` |"
    assert "a \\| b \\# c \\`d\\` \\<script\\>" in first and "\x1b" not in first and "…" in first
    assert "(this one)" in first and "`s\\|1`" in first


def test_no_sessions_and_many_of_them_are_listed() -> None:
    assert "no other sessions" in sessions_text([])
    many = sessions_text([SessionLine(f"s-{n}", "now") for n in range(SESSIONS + 2)])
    assert many.count("`s-") == SESSIONS and "and 2 more" in many
