"""A small client written with the official Python SDK: `python remote_client.py URL TOKEN PURPOSE`.

It opens a session with the agent at an address, sends one prompt, allows whatever is asked, and leaves. PURPOSE is `prompt`, `cancel` or
`load`. The same file runs under 0.12.1 and under the 1.0 candidates.
"""

import asyncio
import os
import sys
from typing import Any, cast

import acp
from acp import schema


class Quiet:
    """The handlers of the client."""

    def __init__(self) -> None:
        self.received = asyncio.Event()

    def on_connect(self, conn: acp.Agent) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **rest: Any) -> None:
        if getattr(update, "session_update", "") != "available_commands_update":  # that one comes before a turn begins
            self.received.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **rest: Any
    ) -> acp.RequestPermissionResponse:
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return acp.RequestPermissionResponse(outcome=outcome)


async def opened(url: str, token: str) -> Any:
    """A transport to the agent."""
    headers = {"Authorization": f"Bearer {token}"}
    if url.startswith("ws:"):
        from acp.ws import create_websocket_stream

        return await create_websocket_stream(url, headers=headers)
    from acp.http import client as http

    # Its own client needs the package for HTTP/2. Which httpx it uses depends on its version.
    library: Any = getattr(http, "httpx", None) or getattr(http, "httpx2", None)
    return http.create_http_stream(url, client=library.AsyncClient(timeout=None), headers=headers)


async def converse(url: str, token: str, purpose: str) -> None:
    client = Quiet()
    transport = await opened(url, token)
    agent = acp.connect_to_agent(cast("acp.Client", client), transport)
    try:
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        if purpose == "load":
            session = "judge-earlier"
            await agent.load_session(cwd=os.getcwd(), session_id=session, mcp_servers=[])
        else:
            session = (await agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id
        hello = schema.TextContentBlock(type="text", text="hello")
        turn = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[hello]))
        if purpose == "cancel":
            await client.received.wait()
            await agent.cancel(session_id=session)
        await turn
    finally:
        await transport.close()


if __name__ == "__main__":
    asyncio.run(converse(*sys.argv[1:]))
