"""Antiphon as a client, over its own stdio."""

import asyncio

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.client_services import ReadTextFile, ReadTextFileResult
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import ClientCapabilities, FileCapabilities, Initialize
from antiphon.protocol.v1.permission import PermissionResult, RequestPermission, Selected
from antiphon.protocol.v1.session import NewSession, Prompt, SessionUpdate
from antiphon.protocol.v1.version import V1
from antiphon.transports.stdio import open_stdio
from benchmarks.contestants.probe import Probe, big_text, task_from_argv


async def main() -> None:
    task, probe, router = task_from_argv(), Probe(), Router()
    if task.kind in ("everyday", "everyday_drip"):
        from benchmarks.contestants.antiphon_everyday import play

        await play(task, probe)
        return

    def updated(_: SessionUpdate) -> None:
        probe.handled += 1

    def permitted(asked: RequestPermission) -> PermissionResult:
        probe.handled += 1
        return PermissionResult(Selected(asked.options[0].option_id))

    def read(_: ReadTextFile) -> ReadTextFileResult:
        probe.handled += 1
        return ReadTextFileResult(big_text(task.kind, task.size))

    router.on_notice(m.SESSION_UPDATE, updated)
    router.on_request(m.REQUEST_PERMISSION, permitted)
    router.on_request(m.READ_TEXT_FILE, read)
    async with Connection(open_stdio(), router, tolerant=True, version=V1) as agent:
        files = FileCapabilities(read_text_file=True)
        await agent.request(m.INITIALIZE, Initialize(1, client_capabilities=ClientCapabilities(fs=files)))
        opened = [await agent.request(m.NEW_SESSION, NewSession("/", [])) for _ in range(task.sessions)]
        probe.start()
        if task.kind == "iterate":
            async for _ in agent.stream(m.PROMPT, Prompt(opened[0].session_id, [TextBlock("go")])):
                probe.handled += 1
            probe.finish()
            return
        await asyncio.gather(*(agent.request(m.PROMPT, Prompt(s.session_id, [TextBlock("go")])) for s in opened))
        probe.finish()


if __name__ == "__main__":
    asyncio.run(main())
