"""Prompts that an agent of version 1 takes into a turn that runs: by an extension that some of them have."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from antiphon.protocol import v1
from antiphon.protocol.base import Json, JsonObject
from antiphon.protocol.methods import Call
from antiphon.protocol.translate.base import OWN, Translator, request_key
from antiphon.protocol.translate.v2_session import HeldPrompt, V2ClientSession
from antiphon.protocol.translate.values import content as c

if TYPE_CHECKING:
    from antiphon.protocol.exchange import RequestFailure

__all__ = ["PromptInjection"]

ANSWER_GRACE: Final = 1.0
"""Seconds that an agent has to say whether it took a prompt which the client has cancelled since."""

_STEERING: Final = Call("_session/steering", v1.Prompt, cast("type[Json]", Json))


class PromptInjection:
    """Offers prompts that are held to the agent. What becomes of one is known when the agent has answered, and not before.

    `inserted` is called with a prompt that the agent has taken, `refuse` with one that the client has cancelled meanwhile and the
    agent has not taken, and then `go_on`.
    """

    def __init__(
        self,
        translator: Translator,
        inserted: Callable[[V2ClientSession, HeldPrompt], None],
        refuse: Callable[[V2ClientSession, HeldPrompt], None],
        go_on: Callable[[V2ClientSession], None],
    ) -> None:
        self._translator = translator
        self._inserted = inserted
        self._refuse = refuse
        self._go_on = go_on

    @staticmethod
    def is_possible(agent: v1.InitializeResult, session: V2ClientSession) -> bool:
        """Whether an agent has the extension, and works on a prompt that it may take the next one to."""
        found = (agent.meta or {}).get("steering")
        if not isinstance(found, dict) or found.get("supported") is not True:
            return False
        active = session.active
        return len(session.held) == 1 and active is not None and active.inserted and not active.cancelled

    def offer(self, session: V2ClientSession, prompt: HeldPrompt, meta: JsonObject | None) -> None:
        """Let the agent take a prompt into the turn that runs. It stays held if the agent does not."""
        prompt.offered = True
        blocks = [c.block_to_v1(block, self._translator.report) for block in prompt.content]
        steering: JsonObject = {"idleBehavior": "promptRequired"}

        def answered(result: Json) -> None:
            prompt.offered = False
            self._translator.due.pop(("offered", request_key(prompt.id)), None)
            injected = isinstance(result, dict) and result.get("outcome") == "injected"
            if prompt not in session.held:
                if injected:
                    self._translator.report("session/prompt", "the agent took a prompt that was cancelled")
                return
            if injected:
                session.held.remove(prompt)
                self._inserted(session, prompt)
            elif prompt.cancelled:
                self._refuse(session, prompt)
            self._go_on(session)

        def failed(_: "RequestFailure") -> None:
            answered(None)

        params = v1.Prompt(session_id=session.id, prompt=blocks, meta={**(meta or {}), "steering": steering})
        self._translator.ask_agent(OWN, _STEERING, params, answered, failed)

    def cancel(self, session: V2ClientSession, prompt: HeldPrompt) -> None:
        """Cancel a prompt that is held. One that is offered waits for what the agent says: it may have taken it."""
        if not prompt.offered:
            self._refuse(session, prompt)
            return
        prompt.cancelled = True
        at = self._translator.clock() + ANSWER_GRACE
        self._translator.due.setdefault(
            ("offered", request_key(prompt.id)), (at, partial(self._give_up, session, prompt))
        )

    def _give_up(self, session: V2ClientSession, prompt: HeldPrompt) -> None:
        if prompt in session.held:
            self._refuse(session, prompt)
            self._go_on(session)
