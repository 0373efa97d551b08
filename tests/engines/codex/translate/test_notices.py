"""What Codex wants the user to know."""

from typing import Any

from tests.engines.codex.translate.harness import TranslatedThread
from tests.rows import each_row

NOTICES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("warning", {"message": "Careful"}, ["notice warning: Careful"]),
    ("warning", {"message": "Careful\nwith that"}, ["notice warning: Careful | Careful\nwith that"]),
    ("guardianWarning", {"message": "Hm"}, ["notice warning: Hm"]),
    ("deprecationNotice", {"summary": "Old", "details": "new"}, ["notice info: Old | new"]),
    ("deprecationNotice", {"summary": "Use `thread/turns/list`"}, []),
    ("model/rerouted", {"fromModel": "a", "toModel": "b", "reason": "x"}, ["notice warning: b answers instead of a | x", "model b"]),
    ("model/verification", {"verifications": ["v"]}, ["notice info: The account was checked before the model answered | v"]),
    ("model/safetyBuffering/updated", {"showBufferingUi": True, "model": "a"}, ["notice info: The answer is being checked before it is shown"]),
    ("model/safetyBuffering/updated", {"showBufferingUi": False, "model": "a"}, []),
    ("modelProvider/authRecoveryStarted", {"message": "Renewing", "provider": "p"}, ["notice info: Renewing"]),
    ("mcpServer/startupStatus/updated", {"name": "s", "status": "ready"}, []),
    ("mcpServer/startupStatus/updated", {"name": "s", "status": "failed", "failureReason": "reauthenticationRequired"},
     ["notice warning: The MCP server s did not start | Sign in again: `codex mcp login s`"]),
    ("mcpServer/oauthLogin/completed", {"name": "s", "success": True}, ["notice info: Signed in at the MCP server s"]),
    ("mcpServer/oauthLogin/completed", {"name": "s", "success": False, "error": "no"}, ["notice warning: The sign-in at the MCP server s failed | no"]),
    ("hook/completed", {"run": {"eventName": "stop", "status": "completed", "entries": [{"kind": "context", "text": "x"}]}}, []),
    ("hook/completed", {"run": {"eventName": "stop", "status": "blocked", "entries": [{"kind": "stop", "text": "no"}]}},
     ["notice warning: A stop hook blocked it | no"]),
    ("hook/completed", {"run": {"eventName": "stop", "status": "completed", "entries": [{"kind": "warning", "text": "w"}]}},
     ["notice info: A stop hook reports | w"]),
    ("item/autoApprovalReview/completed", {"review": {"status": "approved"}, "action": {"type": "command", "command": "ls"}}, []),
    ("item/autoApprovalReview/completed", {"review": {"status": "denied", "rationale": "risky"}, "action": {"type": "command", "command": "rm"}},
     ["notice warning: The automatic reviewer denied it | rm\nrisky"]),
    ("autoApprovalReview/strictReviewRequired", {}, ["notice info: What Codex does is reviewed more strictly from now on"]),
    ("thread/goal/updated", {"goal": {"objective": "ship", "status": "complete"}}, ["notice info: Goal reached: ship"]),
    ("windows/worldWritableWarning", {"samplePaths": ["C:\\x"], "extraCount": 2, "failedScan": False},
     ["notice warning: All users may write to some directories, which the sandbox cannot protect | C:\\x\nand 2 more"]),
    ("thread/name/updated", {"threadName": "A name"}, ["title A name"]),
    ("thread/name/updated", {"threadName": None}, []),
    ("thread/settings/updated", {"threadSettings": {"model": "m"}}, ["ThreadSettings"]),
]  # fmt: skip


@each_row(("method", "params", "outline"), NOTICES)
def test_warnings_of_codex_are_notices(method: str, params: dict[str, Any], outline: list[str]) -> None:
    thread = TranslatedThread()
    thread.notify(method, **params)
    assert thread.outline == outline
    assert not thread.translator.unknown


def test_a_goal_is_shown_when_it_changes() -> None:
    thread = TranslatedThread()
    for status in ("active", "active", "paused"):
        thread.notify("thread/goal/updated", goal={"objective": "ship", "status": status, "tokensUsed": 5})
    assert thread.outline == ["notice info: Goal: ship", "notice info: Goal paused: ship"]
