"""Requests of the app server as questions to the user: each becomes options that name what they do, each answer a decision.

Whatever goes wrong on the way, nothing is allowed by it.

    asker.py     each kind of request: commands, changes, permissions, MCP servers, questions; and what a mode decides
    options.py   options and the decisions they stand for, in both versions of the protocol
"""

from antiphon.engines.codex.approvals.asker import ApprovalAsker

__all__ = ["ApprovalAsker"]
