"""Who answers in `run` and `chat` when nobody was chosen."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.catalogue.known import OURS
from antiphon.duet.present import DEMO, installed

if TYPE_CHECKING:
    from antiphon.config.shapes import Settings

__all__ = ["default_agent"]


def default_agent(settings: "Settings", environment: Mapping[str, str] = os.environ) -> str:
    """Our own agent, where it has an engine; else the demo, which costs nothing and changes nothing unasked."""
    return OURS if settings.duet.engines or installed(None, environment).engines != (DEMO,) else DEMO
