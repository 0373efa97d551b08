"""What a call is about, from its name and its input, whole or still arriving."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.claude.translate.descriptions import describe, early_title
from antiphon.engines.labels import LONGEST_TITLE
from antiphon.protocol import v1
from tests.rows import each_row

CWD = "/song/project"

TITLES = [
    ("Bash", {"command": "ls -la\n  | wc", "description": "Count"}, "ls -la | wc", "execute"),
    ("Bash", {}, "Run a command", "execute"),
    ("PowerShell", {"command": "dir"}, "dir", "execute"),
    ("Monitor", {"command": "tail -f x", "description": "Watch"}, "tail -f x", "execute"),
    ("BashOutput", {"bash_id": "b1"}, "Look at the output of b1", "read"),
    ("KillShell", {"shell_id": "b1"}, "Stop b1", "execute"),
    ("TaskStop", {"task_id": "t1"}, "Stop t1", "execute"),
    ("Read", {"file_path": f"{CWD}/src/a.py"}, "Read src/a.py", "read"),
    ("Read", {"file_path": f"{CWD}/a.py", "offset": 10, "limit": 5}, "Read a.py (lines 10 to 14)", "read"),
    ("Read", {"file_path": f"{CWD}/a.py", "offset": 10}, "Read a.py (from line 10)", "read"),
    ("Read", {"file_path": f"{CWD}/a.pdf", "pages": "1-3"}, "Read a.pdf (pages 1-3)", "read"),
    ("Read", {"file_path": "/etc/hosts"}, "Read /etc/hosts", "read"),
    ("Read", {"file_path": "/song/project-two/a"}, "Read /song/project-two/a", "read"),
    ("Read", {}, "Read a file", "read"),
    ("Edit", {"file_path": f"{CWD}/a.py", "old_string": "a", "new_string": "b"}, "Edit a.py", "edit"),
    ("MultiEdit", {"file_path": f"{CWD}/a.py", "edits": [{}, {}]}, "Edit a.py (2 changes)", "edit"),
    ("Write", {"file_path": f"{CWD}/a.py", "content": ""}, "Write a.py", "edit"),
    ("NotebookEdit", {"notebook_path": f"{CWD}/n.ipynb", "edit_mode": "insert"}, "Insert a cell in n.ipynb", "edit"),
    ("Glob", {"pattern": "**/*.py", "path": f"{CWD}/src"}, "Find **/*.py in src", "search"),
    ("Grep", {"pattern": "def ", "path": CWD, "glob": "*.py"}, "Search for def (*.py)", "search"),
    ("LS", {"path": CWD}, "List .", "read"),
    ("WebFetch", {"url": "https://example.org", "prompt": "p"}, "Fetch https://example.org", "fetch"),
    ("WebSearch", {"query": "acp"}, "Search the web for acp", "fetch"),
    ("Agent", {"description": "Find it", "prompt": "p", "subagent_type": "Explore"}, "Explore: Find it", "think"),
    ("Task", {"description": "Find it", "subagent_type": "general-purpose"}, "Find it", "think"),
    ("TodoWrite", {"todos": [{}]}, "Update the plan (1 step)", "think"),
    ("TaskCreate", {"subject": "Fix it"}, "Add a task: Fix it", "think"),
    ("TaskUpdate", {"taskId": "1", "status": "in_progress"}, "Task 1: in progress", "think"),
    ("TaskUpdate", {"taskId": "1"}, "Update task 1", "think"),
    ("TaskList", {}, "List the tasks", "think"),
    ("TaskGet", {"taskId": "1"}, "Look at task 1", "think"),
    ("ExitPlanMode", {"plan": "# Plan"}, "Ready to code?", "switch_mode"),
    ("EnterPlanMode", {}, "Plan first", "switch_mode"),
    ("AskUserQuestion", {"questions": [{"question": "Which?"}]}, "Which?", "other"),
    ("AskUserQuestion", {"questions": [{"question": "A?"}, {"question": "B?"}]}, "Ask 2 questions", "other"),
    ("Skill", {"skill": "review"}, "Use the skill review", "other"),
    ("SlashCommand", {"command": "/review now"}, "/review now", "other"),
    ("ToolSearch", {"query": "select:WebFetch"}, "Look up tools: WebFetch", "search"),
    ("CronCreate", {"cron": "0 9 * * *", "prompt": "p"}, "Schedule a prompt (0 9 * * *)", "other"),
    ("CronDelete", {"id": "c1"}, "Cancel the scheduled prompt c1", "other"),
    ("CronList", {}, "List scheduled prompts", "other"),
    ("EnterWorktree", {"name": "try"}, "Enter the worktree try", "other"),
    ("ExitWorktree", {"action": "remove"}, "Remove the worktree", "other"),
    ("ScheduleWakeup", {"reason": "later"}, "Wake up later: later", "other"),
    ("ReportFindings", {"findings": [{}, {}]}, "Report 2 findings", "think"),
    ("ReadMcpResourceTool", {"server": "s", "uri": "x://y"}, "Read x://y", "read"),
    ("SendMessage", {"to": "a1", "message": "hi"}, "Send a message to a1", "other"),
    ("mcp__files__read_all", {"a": 1}, "read_all (files)", "other"),
    ("mcp__odd", {}, "mcp__odd", "other"),
    ("Unheard", {"a": 1}, "Unheard", "other"),
    ("", {}, "Tool", "other"),
]


@each_row(("name", "given", "title", "kind"), TITLES)
def test_a_title_names_what_the_call_is_about(name: str, given: dict[str, Any], title: str, kind: str) -> None:
    described = describe(name, given, CWD)
    assert (described.title, described.kind.value) == (title, kind)


@each_row("name", sorted({name for name, *_ in TITLES}))
@each_row("values", [None, [], {}, {"file_path": 3, "command": None, "questions": 4, "edits": "no", "todos": [3]}])
def test_an_input_that_is_not_as_we_know_it_is_harmless(name: str, values: object) -> None:
    described = describe(name, values, CWD)
    assert described.title
    v1.ToolCall(
        tool_call_id=v1.ToolCallId("1"), title=described.title, content=described.content, locations=described.locations
    )


@pytest.mark.parametrize(
    ("name", "known"), [("Bash", "Bash"), ("Edit", "Edit"), ("Agent", "Agent"), ("mcp__s__t", "mcp__s__t")]
)
def test_a_call_has_the_name_that_rules_use(name: str, known: str) -> None:
    assert describe(name, {}, CWD).name == known


@given(st.text(max_size=3000), st.sampled_from(["Bash", "Read", "Grep", "WebFetch", "Agent"]))
def test_a_title_is_one_short_line_whatever_is_in_it(text: str, name: str) -> None:
    values = dict.fromkeys(("command", "file_path", "pattern", "url", "description", "path", "glob"), text)
    title = describe(name, values, CWD).title
    assert title and len(title) <= LONGEST_TITLE and len(title.splitlines()) == 1
    title.encode()


def test_a_long_path_leaves_space_for_the_lines_that_are_read() -> None:
    title = describe("Read", {"file_path": "/" + "x" * 500, "offset": 3}, CWD).title
    assert title.endswith("… (from line 3)") and len(title) <= LONGEST_TITLE


def test_places_are_absolute_and_have_the_line_that_is_read_first() -> None:
    assert describe("Read", {"file_path": "src/../a.py", "offset": 7}, CWD).locations == [
        v1.ToolLocation(path=f"{CWD}/a.py", line=7)
    ]
    assert describe("Read", {"file_path": "/a", "offset": 0}, CWD).locations == [v1.ToolLocation(path="/a", line=1)]
    assert describe("Write", {"file_path": "/a"}, CWD).locations == [v1.ToolLocation(path="/a")]
    assert describe("Bash", {"command": "ls"}, CWD).locations == []


def texts(content: list[v1.ToolContent]) -> list[str]:
    return [
        item.content.text
        for item in content
        if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)
    ]


def test_an_edit_shows_the_change_that_it_would_make() -> None:
    values = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    assert describe("Edit", values, CWD).content == [v1.Diff(path="/a", old_text="x", new_text="y")]
    assert describe("Write", {"file_path": "/a", "content": ""}, CWD).content == [v1.Diff(path="/a", new_text="")]
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]
    assert describe("MultiEdit", {"file_path": "/a", "edits": edits}, CWD).content == [
        v1.Diff(path="/a", old_text="a", new_text="b"),
        v1.Diff(path="/a", old_text="c", new_text=""),
    ]


@each_row(
    ("name", "values", "shown"),
    [
        ("ExitPlanMode", {"plan": "# Plan"}, ["# Plan"]),
        ("Agent", {"description": "d", "prompt": "Look for it"}, ["Look for it"]),
        ("Bash", {"command": "ls", "description": "List files"}, ["List files"]),
        ("Bash", {"command": "a\nb"}, ["```sh\na\nb\n```"]),
        ("NotebookEdit", {"notebook_path": "/n", "new_source": "x = 1"}, ["```python\nx = 1\n```"]),
        (
            "AskUserQuestion",
            {"questions": [{"question": "Q?", "options": [{"label": "A", "description": "a"}]}]},
            ["Q?\n- A: a"],
        ),
        ("ReportFindings", {"findings": [{"file": "a.py", "line": 3, "summary": "bad"}]}, ["- `a.py:3`: bad"]),
        ("mcp__s__t", {"x": "`"}, ['```json\n{\n  "x": "`"\n}\n```']),
        ("Read", {"file_path": "/a"}, []),
    ],
)
def test_what_a_call_will_do_can_be_read_before_it_does_it(name: str, values: dict[str, Any], shown: list[str]) -> None:
    assert texts(describe(name, values, CWD).content) == shown


VALUES = st.one_of(
    st.text(max_size=30), st.integers(), st.booleans(), st.none(), st.lists(st.text(max_size=5), max_size=3)
)


@given(
    st.sampled_from(
        [("Bash", "command"), ("Read", "file_path"), ("Grep", "pattern"), ("WebFetch", "url"), ("Agent", "description")]
    ),
    st.text(min_size=1, max_size=40),
    st.dictionaries(st.sampled_from(["offset", "limit", "path", "subagent_type", "zzz", "glob"]), VALUES, max_size=4),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_title_that_comes_early_is_not_wrong(
    tool: tuple[str, str], text: str, more: dict[str, Any], ascii_only: bool, order: Any
) -> None:
    name, telling = tool
    members = [(telling, text), *more.items()]
    order.shuffle(members)
    whole = json.dumps(dict(members), ensure_ascii=ascii_only)
    allowed = {
        describe(name, dict(members[:count]), CWD).title
        for count in range(len(members) + 1)
        if telling in dict(members[:count])
    }
    for end in range(len(whole) + 1):
        title = early_title(name, whole[:end], CWD)
        assert title is None or title in allowed
    assert early_title(name, whole, CWD) == describe(name, dict(members), CWD).title


@each_row(
    ("partial", "title"),
    [
        ('{"command":"ls', None),
        ('{"command":"ls"', "ls"),
        ('{"command":"say \\"hi', None),
        ('{"command":"say \\"hi\\""', 'say "hi"'),
        ('{"command":"a\\\\"', "a\\"),
        ('{"command":"\\u00e', None),
        ('{"command":"\\ud83d\\ude00"', "😀"),
        ('{"command":"\\ud83d"', "?"),
        ('{ "timeout" : 12', None),
        ('{ "timeout" : 12 , "command" : "ls"', "ls"),
        ('{"description":"d","command":"ls"}', "ls"),
        ("", None), ("[", None), ('{"a":{"command":"ls"}', None), ("{" * 5000, None), ('{"a":' + "[" * 7000, None),
    ],
)  # fmt: skip
def test_a_title_comes_as_soon_as_its_words_are_whole(partial: str, title: str | None) -> None:
    assert early_title("Bash", partial, CWD) == title


def test_a_long_input_is_not_read_again_and_again() -> None:
    assert early_title("Write", '{"content":"' + "x" * 10_000 + '","file_path":"/a"', CWD) is None


def test_a_tool_without_telling_words_has_no_early_title() -> None:
    assert early_title("TodoWrite", '{"todos":[]}', CWD) is None and early_title("mcp__s__t", '{"a":"b"}', CWD) is None


def shown(name: str, /, **input: Any) -> str:
    """All text of a call's preview."""
    items = [each.content for each in describe(name, input, CWD).content if isinstance(each, v1.ContentItem)]
    return "\n".join(item.text for item in items if isinstance(item, v1.TextBlock))


def test_what_a_command_hides_is_visible_in_its_title_and_its_preview() -> None:
    command = "rm -rf \u202e/ ohce # ok \u200b\x9b31m"
    visible = "rm -rf <U+202E>/ ohce # ok <U+200B><U+009B>31m"
    assert describe("Bash", {"command": command}, CWD).title == visible
    assert shown("Bash", command=command) == f"```sh\n{visible}\n```"
    assert describe("Read", {"file_path": f"{CWD}/a\u2066.py"}, CWD).title == "Read a<U+2066>.py"


def test_what_does_not_fit_into_the_title_is_shown_whole() -> None:
    address = f"https://ok.example/{'a' * 250}?leak=all"
    assert shown("WebFetch", url=address, prompt="read") == f"url:\n```\n{address}\n```\nread"
    assert shown("WebFetch", url="https://ok.example", prompt="read") == "read"
    assert shown("SlashCommand", command=f"/deploy {'x' * 300}").endswith(f"{'x' * 300}\n```")
    assert shown("Grep", pattern="y" * 300) == f"pattern:\n```\n{'y' * 300}\n```"


def test_input_that_no_title_has_is_shown() -> None:
    assert shown("Skill", skill="deploy", args="--prod --force") == "args:\n```\n--prod --force\n```"
    assert "curl evil" in shown("Workflow", name="nice", script="await bash('curl evil')", args={"a": 1})
    assert shown("ExitWorktree", action="remove", discard_changes=True) == "discard_changes:\n```json\ntrue\n```"
    assert shown("Bash", command="ls", dangerouslyDisableSandbox=True) == "It runs outside of the sandbox."
    assert shown("WebSearch", query="acp", allowed_domains=["x.org"]) == 'allowed_domains:\n```json\n["x.org"]\n```'
