"""How `claude` is started."""

from antiphon.engines.claude.launch import ClaudeLaunch, command_of, environment_of, may_bypass


def words(**fields: object) -> str:
    return " ".join(command_of(ClaudeLaunch(program="claude", session="id", **fields)))  # type: ignore[arg-type]


def test_a_new_session_is_given_its_id() -> None:
    assert "--session-id id" in words() and "--resume" not in words()


def test_one_that_goes_on_keeps_its_id() -> None:
    assert "--resume id" in words(source="id") and "--session-id" not in words(source="id")


def test_a_copy_is_given_an_id_of_its_own() -> None:
    assert "--resume other --fork-session --session-id id" in words(source="other")


def test_what_was_not_chosen_is_left_to_the_users_own_settings() -> None:
    for flag in ("--model", "--permission-mode", "--effort", "--mcp-config", "--add-dir", "dangerously"):
        assert flag not in words()


def test_what_was_chosen_is_passed_on() -> None:
    line = words(mode="plan", model="opus", effort="high", servers="/s.json", directories=["/a", "/b"], bypass=True)
    for part in ("--permission-mode plan", "--model opus", "--effort high", "--mcp-config /s.json", "--add-dir /a /b"):
        assert part in line
    assert "--allow-dangerously-skip-permissions" in line and " --dangerously-skip-permissions" not in line


def test_questions_come_to_us_and_tokens_as_they_are_made() -> None:
    assert "--permission-prompt-tool stdio" in words() and "--include-partial-messages" in words()


def test_the_environment_is_the_users_without_the_marks_of_a_claude_around_us() -> None:
    ours = environment_of({"ANTHROPIC_API_KEY": "k", "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"})
    assert ours["ANTHROPIC_API_KEY"] == "k"
    assert "CLAUDECODE" not in ours and "CLAUDE_CODE_ENTRYPOINT" not in ours


def test_plans_are_switched_on_unless_the_user_turned_them_off() -> None:
    assert environment_of({})["CLAUDE_CODE_ENABLE_TODO_TOOLS"] == "1"
    assert environment_of({"CLAUDE_CODE_ENABLE_TODO_TOOLS": "0"})["CLAUDE_CODE_ENABLE_TODO_TOOLS"] == "0"


def test_root_may_bypass_permissions_in_a_sandbox_only() -> None:
    import os

    if os.geteuid() == 0:
        assert not may_bypass({}) and not may_bypass({"IS_SANDBOX": "0"})
    assert may_bypass({"IS_SANDBOX": "1"})
