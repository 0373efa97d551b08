"""Really starts an agent: `initialize`, a session in a directory of its own, and the end. No prompt, so no model is asked."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from antiphon.catalogue.finding import Found, Missing, find
from antiphon.cli.health.findings import Finding, Ward, ok, problem, split
from antiphon.errors import AcpError, AuthRequired, RequestRefused

if TYPE_CHECKING:
    from antiphon.client.remote import ConnectedAgent

__all__ = ["start"]


async def start(name: str, ward: Ward) -> Sequence[Finding]:
    """Start it, open a session, close everything, and tell how long each took. What is not here is told elsewhere."""
    found = find(name, ward.loaded.settings, path=ward.environment.get("PATH"), registry=ward.registry)
    if isinstance(found, Missing):
        return []
    try:
        async with asyncio.timeout(ward.start_limit):
            return await _through(found, ward)
    except TimeoutError:
        return problem(
            f"`{found.shown}` was not done within {ward.start_limit:g} seconds",
            f"try `antiphon agents check {name}`, or give it more time with --timeout",
        )
    except AuthRequired:
        return problem("it starts, but opens no session before somebody signs in", _sign_in(found))
    except AcpError as error:
        sentence, hint = split(str(error), f"try `{found.shown}` by hand: it has to speak ACP on stdin and stdout")
        return problem(sentence, hint)


def _sign_in(found: Found) -> str:
    return f"to sign in, {found.login}" if found.login else "see its documentation for how to sign in"


async def _through(found: Found, ward: Ward) -> Sequence[Finding]:
    from antiphon.client.connect import connect
    from antiphon.client.retry import Retry

    began = time.monotonic()
    marks: dict[str, float] = {}
    with TemporaryDirectory(prefix="antiphon-doctor-", ignore_cleanup_errors=True) as folder:
        env = found.environment(ward.environment)
        async with connect(found.command, cwd=found.cwd, env=env, files=None, retry=Retry(delays=())) as agent:
            marks["initialize"] = time.monotonic() - began
            await _open(agent, folder)
            marks["session"] = time.monotonic() - began
        marks["end"] = time.monotonic() - began
    told = {name: f"{seconds:.2f}" for name, seconds in marks.items()}
    return ok(
        f"answered after {told['initialize']} s, had a session after {told['session']} s, was gone after {told['end']} s",
        **told,
    )


async def _open(agent: "ConnectedAgent", folder: str) -> None:
    session = await agent.new_session(folder)
    await session.close()
    if agent.capabilities.session_capabilities.delete is not None:
        with suppress(RequestRefused):  # it has started, and that was the question
            await agent.delete_session(session.id)  # never a conversation: nobody wants to find it in a list
