"""One request as the model sees it: who asks for what, and what it was sent."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from tests.engines.claude.model.steps import Json

__all__ = ["Asked", "Kind"]

Kind: TypeAlias = Literal["main", "agent", "side"]

INJECTED: Final = ("<system-reminder>", "[Request interrupted", "[Image: ", "<command-", "<local-command-", "Caveat:")
"""How texts begin that the program puts among the user's by itself."""
SUMMARY: Final = "CRITICAL: Respond with TEXT ONLY"
"""How the question for a summary begins, which is asked in the session itself."""


@dataclass(frozen=True)
class Asked:
    """A request to `/v1/messages`."""

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def counts(self) -> bool:
        """It only wants to know how long this is."""
        return self.path.startswith("/v1/messages/count_tokens")

    @property
    def kind(self) -> Kind:
        """Who asks: the session, a sub-agent, or the program for a title or a summary of its own."""
        if "x-claude-code-agent-id" in self.headers:
            return "agent"
        if not self.tools or self.prompt.startswith(SUMMARY):
            return "side"
        return "main"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def effort(self) -> str | None:
        """How hard it is to think, if that was given."""
        effort = (self.body.get("output_config") or {}).get("effort")
        return None if effort is None else str(effort)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that it may use."""
        return [str(tool.get("name")) for tool in self.body.get("tools") or ()]

    @property
    def messages(self) -> list[Json]:
        return list(self.body.get("messages") or ())

    @property
    def turns(self) -> list[list[Json]]:
        """The content of every message of the user, as blocks."""
        return [_blocks(each["content"]) for each in self.messages if each.get("role") == "user"]

    @cached_property
    def texts(self) -> list[str]:
        """What the user wrote in the whole session, without what the program put there."""
        texts = [str(block["text"]) for turn in self.turns for block in turn if block.get("type") == "text"]
        return [text for text in texts if _is_from_user(text)]

    @property
    def prompt(self) -> str:
        """What the user wrote last."""
        return self.texts[-1] if self.texts else ""

    @property
    def is_prompt(self) -> bool:
        """Whether the user spoke last, and not a tool."""
        last = self.turns[-1] if self.turns else []
        kinds = [block["type"] for block in last if block["type"] != "text" or _is_from_user(str(block["text"]))]
        return bool(kinds) and kinds[-1] != "tool_result"

    @property
    def results(self) -> list[Json]:
        """What the tools had to say since the model last spoke."""
        last = self.turns[-1] if self.turns else []
        return [block for block in last if block.get("type") == "tool_result"]

    @property
    def result_texts(self) -> list[str]:
        return [_text(each.get("content")) for each in self.results]

    @property
    def images(self) -> list[Json]:
        """Where every picture of the session comes from."""
        return [block["source"] for turn in self.turns for block in turn if block.get("type") == "image"]

    @property
    def system(self) -> str:
        """The prompt of the system."""
        return _text(self.body.get("system"))

    @cached_property
    def everything(self) -> str:
        """The whole session as text, to look for words in."""
        return json.dumps(self.messages, ensure_ascii=False)


def _is_from_user(text: str) -> bool:
    return bool(text.strip()) and not text.lstrip().startswith(INJECTED)


def _blocks(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(content: object) -> str:
    return "\n".join(str(block.get("text", "")) for block in _blocks(content))
