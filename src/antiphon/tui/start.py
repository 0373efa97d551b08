"""The start of a chat: the first screen, and signing in before the first prompt.

Whether an engine is signed in takes a CLI a second to find out, and its model is known when it has started. The first screen does not
wait for them: it is completed when they are known, and final as soon as the user sends something.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from antiphon.errors import AcpError, AuthRequired
from antiphon.tui import status as state
from antiphon.tui.display.welcome import ShownEngine, engines_in, head_line, welcome_texts
from antiphon.tui.painter import one_line

if TYPE_CHECKING:
    from antiphon.tui.chat import Chat

__all__ = ["ChatStart", "why_not_signed_in"]

ENGINES: Final = "_antiphon/engines"
"""The request for the engines of our own agent, and whether each is signed in."""

LONGEST_CHECK: Final = 20.0
"""Seconds that the check may take. Nothing waits for it."""

ROUTE_TIME: Final = 1.0
"""Seconds for the update that lets an engine answer which is signed in: it may be handled after the response that names those."""

OURS: Final = "antiphon"
"""The name of our own agent, which knows that request."""


class ChatStart:
    """The first screen of a chat, and its logins."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat
        self._checking: asyncio.Task[None] | None = None
        self._signed_in: dict[str, bool] | None = None
        """Which engines are signed in; None: that is not known yet."""
        self._updated = asyncio.Event()

    def show_head(self) -> None:
        """Show where this is, at once."""
        self._chat.note([head_line(self._chat.screen.cwd)], "head")

    def greet(self) -> None:
        """Show who answers and what can be tried, in a session that is new."""
        chat = self._chat
        if chat.session.transcript.entries:
            return
        engines = state.answering(chat.session, chat.agent.name)
        self._show(engines)
        info = chat.agent.info
        if info is not None and info.name == OURS:
            self._checking = asyncio.create_task(self._check())
        else:
            self.settle()

    def settle(self) -> None:
        """Make the first screen final: the user goes on."""
        self._chat.screen.settle_opening()
        self._chat.window.refresh()

    def close(self) -> None:
        """Stop checking."""
        if self._checking is not None:
            self._checking.cancel()

    def _show(self, engines: Sequence[ShownEngine]) -> None:
        chat = self._chat
        mode, about = state.mode_and_meaning(chat.session, chat.gate)
        key = "Shift-Tab" if chat.window.has_keys else "/mode"
        chat.screen.opening = [*welcome_texts(engines, f"{mode} ({key}): {about}")]
        chat.window.refresh()

    def renew(self) -> list[ShownEngine]:
        """Show what is known by now of those who answer: an engine names its model when it has started."""
        chat, found = self._chat, self._signed_in
        if found is None:
            return []
        engines = state.answering(chat.session, chat.agent.name)
        known = [replace(engine, signed_in=found.get(engine.name)) for engine in engines]
        if chat.screen.opening:  # else it is final
            self._show(known)
            if all(engine.model for engine in known if engine.answers):
                self.settle()
        self._updated.set()
        return known

    async def _check(self) -> None:
        """Complete the first screen with who is signed in, and offer to sign in if no engine could answer."""
        chat = self._chat
        try:
            params = {"sessionId": chat.session.id}
            found = engines_in(await chat.agent.request_extension(ENGINES, params, timeout=LONGEST_CHECK))
        except AcpError:  # an older agent; a prompt will show whether it is signed in
            found = {}
        if not chat.screen.opening:  # the user has gone on
            return
        engines = state.answering(chat.session, chat.agent.name)  # another one may answer now
        if len(engines) == 1 and len(found) == 1:
            found = {engines[0].name: next(iter(found.values()))}
        self._signed_in = found
        missing = _missing(self.renew())
        with suppress(TimeoutError):
            async with asyncio.timeout(ROUTE_TIME):
                while missing and any(found.values()):
                    self._updated.clear()
                    await self._updated.wait()
                    missing = _missing(self.renew())
        if missing and not chat.busy and not chat.window.input.text:
            self.settle()
            await self.sign_in(f"{missing[0]} is not signed in")

    async def sign_in(self, title: str = "") -> bool:
        """Let the user choose a way to sign in, and return whether it worked."""
        chat = self._chat
        try:
            method = await chat.asking.login(chat.agent.auth_methods, title)
            if method is None:
                return False
            await chat.agent.authenticate(method)
        except AcpError as error:
            chat.show_error(error)
            return False
        chat.note("You are signed in.")
        return True


def _missing(engines: Sequence[ShownEngine]) -> list[str]:
    """Return who would answer and is not signed in."""
    return [engine.title for engine in engines if engine.answers and engine.signed_in is False]


def why_not_signed_in(error: AuthRequired) -> str:
    """Return who is not signed in, without what only a program can use."""
    found = re.search(r"[^:]+ is not signed in", error.reason)
    return one_line(found[0] if found else error.reason).strip()
