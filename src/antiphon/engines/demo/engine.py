"""`Demo`: the engine, its sign-in and how its sessions are opened. Imports no event loop."""

from typing import TYPE_CHECKING

from antiphon import __version__
from antiphon.engines.base import Engine
from antiphon.errors import Code, RequestError
from antiphon.protocol.v1.auth import AgentAuth

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.demo.session import DemoSession
    from antiphon.engines.demo.store import DemoStore
    from antiphon.protocol import v1

__all__ = ["Demo"]

SIGN_IN = AgentAuth("demo", "Demo sign-in", "There is nothing to type: it always works. `logout` makes it necessary.")


class Demo(Engine):
    """An engine without a model: slash commands choose what it does, and `/help` lists them."""

    name = "antiphon-demo"
    version = __version__
    title = "Antiphon demo"
    takes = ("image", "audio", "resource")
    mcp = ("http", "sse")
    auth_methods = (SIGN_IN,)
    cuts_forks = True
    read_only = "plan"
    keeps_with_us = True

    def __init__(self) -> None:
        self._signed_in = True
        self._store: DemoStore | None = None

    # Sessions.

    async def new(self, session: "AgentSession") -> "DemoSession":
        demo = await self._begin(session)
        await demo.create()
        return demo

    async def load(self, session: "AgentSession") -> "DemoSession":
        demo = await self._begin(session)
        await demo.restore()
        await demo.replay()
        return demo

    async def resume(self, session: "AgentSession") -> "DemoSession":
        demo = await self._begin(session)
        await demo.restore()
        return demo

    async def fork(self, session: "AgentSession", source: str) -> "DemoSession":
        demo = await self._begin(session)
        await demo.copy(source)
        return demo

    async def list(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        return await self._open_store().list(query)

    async def directory(self, session_id: str) -> str | None:
        return await self._open_store().directory(session_id)

    async def delete(self, session_id: str) -> None:
        await self._open_store().delete(session_id)

    async def _begin(self, session: "AgentSession") -> "DemoSession":
        from antiphon.engines.demo.session import DemoSession

        if not self._signed_in:
            raise RequestError(
                Code.AUTH_REQUIRED, "Authentication required", f"you are signed out: authenticate with `{SIGN_IN.id}`"
            )
        return DemoSession(session, self._open_store())

    def _open_store(self) -> "DemoStore":
        if self._store is None:
            from antiphon.engines.demo.store import DemoStore

            self._store = DemoStore()
        return self._store

    async def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            await store.close()

    # The account.

    def authenticate(self, method_id: str) -> None:
        self._signed_in = True

    def signed_in(self) -> bool:
        return self._signed_in

    def logout(self) -> None:
        self._signed_in = False
