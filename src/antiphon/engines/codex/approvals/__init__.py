"""What the app server asks, put to the user: each question becomes options that say what they do, each answer a decision."""

from antiphon.engines.codex.approvals.asker import ApprovalAsker

__all__ = ["ApprovalAsker"]
