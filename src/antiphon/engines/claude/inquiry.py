"""What the CLI is told: a tool may run, or it may not and why."""

from collections.abc import Mapping
from typing import Any

from antiphon.engines.inquiry import Body

__all__ = ["allow", "deny"]


def allow(input: Mapping[str, Any], *permissions: Mapping[str, Any]) -> Body:
    """The tool may run. The input is always there: 2.1.197 takes an answer without it for a refusal."""
    body: Body = {"behavior": "allow", "updatedInput": dict(input)}
    return {**body, "updatedPermissions": [dict(each) for each in permissions]} if permissions else body


def deny(message: str, *, interrupt: bool = False) -> Body:
    """The tool may not run; the model reads the message. With `interrupt` the turn ends instead."""
    body: Body = {"behavior": "deny", "message": message}
    return {**body, "interrupt": True} if interrupt else body
