"""An engine behind the guard of a joint session, and with its rules: `python guarded.py NAME`. For tests of what the engine then does.

Modes are passed on to both. The rules are those of the config files, as everywhere.
"""

import sys
from typing import Any

from msgspec import UNSET

from antiphon.agent.session import AgentSession
from antiphon.duet.permission import Guard
from antiphon.engines.base import Engine, Host
from antiphon.engines.known import make_engine
from antiphon.protocol.v1 import methods as m

__all__ = ["guarded_command"]


def guarded_command(engine: str) -> tuple[str, ...]:
    """How it is started."""
    return (sys.executable, "-P", __file__, engine)


class Guarded(Host):
    """An agent over an engine that asks the guard before it asks the user."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._guards: dict[AgentSession, Guard] = {}

    async def new_session(self, session: AgentSession) -> None:
        from antiphon.store.schema import open_database

        guard = await Guard.open(session.cwd, session.directories, open_database())
        session.host.rules = guard.rules
        ask = session.request

        async def request(call: Any, params: Any, *, timeout: Any = UNSET) -> Any:
            if call is not m.REQUEST_PERMISSION:
                return await ask(call, params, timeout=timeout)
            return await guard.permission(self.engine.title or "", params, lambda shown: ask(call, shown))

        session.request = request  # type: ignore[method-assign]  # what a part of a joint session does in a class of its own
        self._guards[session] = guard
        await super().new_session(session)

    async def set_mode(self, session: AgentSession, mode_id: str) -> None:
        self._guards[session].use_mode(lambda: mode_id)
        await session.state.set_mode(mode_id)


if __name__ == "__main__":
    Guarded(make_engine(sys.argv[1])).run()
