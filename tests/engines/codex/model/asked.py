"""One request as the model sees it: what it is to answer with, and what was sent so far."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tests.engines.model.steps import Json

__all__ = ["Asked"]

INJECTED: Final = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<permissions", "<skills", "<image",
    "</image", "<recommended_plugins>", "<collaboration_mode>", "<user_action>",
)  # fmt: skip
"""How texts begin that the program puts among the user's by itself."""


@dataclass(frozen=True)
class Asked:
    """A request to `/v1/responses`."""

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def effort(self) -> str | None:
        """How hard it is to think, if that was given."""
        return (self.body.get("reasoning") or {}).get("effort")

    @property
    def summary(self) -> str | None:
        """How much of its thinking it is to send, if that was given."""
        return (self.body.get("reasoning") or {}).get("summary")

    @property
    def tools(self) -> list[str]:
        """The names of the tools that it may use."""
        return [str(tool.get("name") or tool.get("type")) for tool in self.body.get("tools") or ()]

    @property
    def items(self) -> list[Json]:
        """The session."""
        return [item for item in self.body.get("input") or () if isinstance(item, dict)]

    @cached_property
    def texts(self) -> list[str]:
        """What the user wrote in the whole session, without what the program put there."""
        messages = [block for item in self.items if item.get("role") == "user" for block in item.get("content") or ()]
        texts = [str(block.get("text", "")) for block in messages]
        return [text for text in texts if text.strip() and not text.lstrip().startswith(INJECTED)]

    @property
    def prompt(self) -> str:
        """What the user wrote last."""
        return self.texts[-1] if self.texts else ""

    @property
    def is_prompt(self) -> bool:
        """Whether the user spoke last, and not a tool."""
        return not self.results

    @property
    def results(self) -> list[str]:
        """What the tools had to say since the model or the user last spoke."""
        found: list[str] = []
        for item in reversed(self.items):
            if item.get("role") in ("user", "assistant"):
                break
            if str(item.get("type")).endswith("_output"):
                found.insert(0, _text(item.get("output")))
        return found

    @property
    def images(self) -> list[str]:
        """The address of every picture of the user."""
        texts = [block for item in self.items if item.get("role") == "user" for block in item.get("content") or ()]
        return [str(block["image_url"]) for block in texts if block.get("type") == "input_image"]

    @property
    def sent_by_program(self) -> str:
        """All that the program sent the model by itself."""
        sent = [item for item in self.items if item.get("role") in ("developer", "user")]
        return json.dumps([self.body.get("instructions"), sent], ensure_ascii=False)

    @cached_property
    def everything(self) -> str:
        """The whole session as text, to look for words in."""
        return json.dumps(self.items, ensure_ascii=False)


def _text(output: object) -> str:
    if isinstance(output, list):
        return "\n".join(str(block.get("text", "")) for block in output if isinstance(block, dict))
    return str(output)
