"""Capabilities without details: that the object is there is the whole message."""

from antiphon.protocol.base import Model, unstable

__all__ = [
    "ArchiveSupport", "AuthStatusSupport", "BooleanConfigSupport", "CancelSupport", "CloseSupport",
    "CompactionSupport", "DeleteSupport", "DirectoriesSupport", "ForkSupport", "FormSupport", "ListSupport",
    "LogoutSupport", "NoticeSupport", "OverrideSupport", "PlanSupport", "ProvidersSupport", "ResumeSupport",
    "StatusSupport", "SubagentSupport", "Support", "TitleSupport", "UrlSupport",
]  # fmt: skip


class Support(Model, frozen=True):
    """Supported, if present."""


class ListSupport(Support, frozen=True):
    """`session/list`."""


class DeleteSupport(Support, frozen=True):
    """`session/delete`."""


class DirectoriesSupport(Support, frozen=True):
    """Sessions may have more directories than the one they start in."""


class ResumeSupport(Support, frozen=True):
    """`session/resume`."""


class CloseSupport(Support, frozen=True):
    """`session/close`."""


@unstable
class ForkSupport(Support, frozen=True):
    """`session/fork`."""


@unstable
class ArchiveSupport(Support, frozen=True):
    """`session/archive` and `session/unarchive`."""


@unstable
class StatusSupport(Support, frozen=True):
    """`session/status`."""


@unstable
class TitleSupport(Support, frozen=True):
    """`session/set_title`."""


@unstable
class OverrideSupport(Support, frozen=True):
    """A system prompt that replaces the agent's own."""


@unstable
class CancelSupport(Support, frozen=True):
    """A child session may be cancelled."""


@unstable
class AuthStatusSupport(Support, frozen=True):
    """`auth/status`."""


class LogoutSupport(Support, frozen=True):
    """`logout`."""


@unstable
class ProvidersSupport(Support, frozen=True):
    """The `providers/…` methods."""


class CompactionSupport(Support, frozen=True):
    """The client shows compactions."""


class NoticeSupport(Support, frozen=True):
    """The client shows notices."""


class BooleanConfigSupport(Support, frozen=True):
    """The client shows on/off settings."""


@unstable
class SubagentSupport(Support, frozen=True):
    """The client shows child sessions."""


@unstable
class PlanSupport(Support, frozen=True):
    """The client shows several plans and forms of plan."""


class FormSupport(Support, frozen=True):
    """The client shows forms."""


class UrlSupport(Support, frozen=True):
    """The client opens pages for the user."""
