"""A program that uses `antiphon.sync` ends when one of its handlers says so, and when the loop below it fails: it never hangs."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.client import sync
from antiphon.client.files import Files
from antiphon.client.handlers import Elicitation
from antiphon.client.worker import Worker
from antiphon.errors import AcpError, ConnectionClosed
from antiphon.protocol import v1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.limits import limit
from tests.schedules import Schedule, World, check, run

AGENT = """
import asyncio
from antiphon.agent import Agent
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.protocol.methods import Notice

class Asker(Agent):
    auth_methods = [v1.AgentAuth("key", "Key")]
    signed_in = True

    async def authenticate(self, method_id):
        self.signed_in = True

    async def logout(self):
        self.signed_in = False

    async def new_session(self, session):
        if not self.signed_in:
            raise RequestError(-32000, "sign in")

    async def prompt(self, turn):
        match turn.text:
            case "permission":
                await turn.ask_permission(v1.ToolCallPatch("1"))
            case "form":
                await turn.ask("name?", name=v1.StringProperty())
            case "page":
                await turn.visit("look", "https://example.org")
            case "completed":
                page = await turn.visit("look", "https://example.org")
                await page.complete()
                await asyncio.Event().wait()
            case "unsaved":
                await turn.read("some")
            case "saved":
                await turn.write("made", "text")
            case "observer":
                await turn.session.client.connection.notify(Notice("_unheard", dict), {})
                await asyncio.Event().wait()
            case "on_update":
                turn.session.say_later = asyncio.get_running_loop().create_task(self.later(turn.session))
            case "slow":
                await asyncio.Event().wait()
            case text:
                await turn.say(text)

    async def later(self, session):
        await asyncio.sleep(0.01)
        await session.say("between")

Asker("asker").run()
"""
MOMENT = threading.Event()
COMMAND = [sys.executable, "-c", AGENT]


class Ending(BaseException):
    """What a program may end itself by."""


class Handlers:
    """All handlers that there are. They raise `error` if it is their turn."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.kind = ""
        self.raised = False

    def handler(self, kind: str, answer: Any) -> Callable[..., Any]:
        def handle(*_: Any) -> Any:
            if self.error is not None and self.kind == kind:
                error, self.error, self.raised = self.error, None, True
                raise error
            return answer

        return handle

    def later(self, kind: str, answer: Any) -> Callable[..., Any]:
        handle = self.handler(kind, answer)

        async def handle_later(*asked: Any) -> Any:
            return handle(*asked)

        return handle_later

    @contextmanager
    def connected(self, *, coroutines: bool) -> "Iterator[tuple[sync.SyncAgent, sync.SyncSession]]":
        make = self.later if coroutines else self.handler
        elicitation = Elicitation(
            form=make("form", v1.Declined()), url=make("page", v1.Accepted()), completed=self.handler("completed", None)
        )
        files = Files(write=True, unsaved=make("unsaved", "text"), saved=make("saved", True))
        with sync.connect(
            COMMAND,
            permission=make("permission", True),
            elicitation=elicitation,
            authenticate=make("authenticate", "key"),
            files=files,
            observer=self.handler("observer", None),
        ) as agent:
            yield agent, agent.new_session(on_update=self.handler("on_update", None))


KINDS = ["permission", "form", "page", "completed", "unsaved", "saved", "observer", "on_update", "authenticate"]


def use(kind: str, handlers: Handlers, agent: sync.SyncAgent, session: sync.SyncSession) -> None:
    """Have this handler called."""
    if kind == "authenticate":
        agent.logout()
        agent.new_session()
    session.prompt(kind).text()
    while handlers.error is not None:  # what is raised between turns is raised in the next
        MOMENT.wait(0.01)
    session.prompt("slow").text()


@pytest.mark.slow
@pytest.mark.parametrize("coroutines", [False, True], ids=["def", "async def"])
def test_what_a_handler_raises_to_end_the_program_is_raised_in_its_caller_and_the_turn_is_cancelled(
    coroutines: bool,
) -> None:
    handlers = Handlers()
    with handlers.connected(coroutines=coroutines) as (agent, session):
        for kind in KINDS:
            ends: list[BaseException] = [SystemExit(3), KeyboardInterrupt()]
            for error in ends if coroutines or kind in ("completed", "unsaved", "saved", "observer", "on_update") else [*ends, Ending()]:  # fmt: skip
                handlers.kind, handlers.error = kind, error
                with pytest.raises(type(error)) as raised:
                    use(kind, handlers, agent, session)
                assert raised.value is error
                assert session.prompt("still here").text() == "still here"
        agent.authenticate("key")


def test_what_is_raised_while_no_caller_waits_is_raised_where_the_block_is_left() -> None:
    handlers = Handlers()

    def leave() -> None:
        with handlers.connected(coroutines=False) as (_, session):
            handlers.kind, handlers.error = "permission", SystemExit(3)
            turn = session.prompt("permission")
            while not handlers.raised:
                MOMENT.wait(0.01)
            assert turn is not None

    with pytest.raises(SystemExit, match="3"):
        leave()


@pytest.mark.slow
def test_a_program_that_leaves_by_a_handler_has_the_status_that_it_gave() -> None:
    program = (
        "import sys, antiphon\n"
        "def leave(_): sys.exit(7)\n"
        "with antiphon.sync.connect('demo', permission=leave) as agent:\n"
        "    agent.new_session('/').prompt('/run touch x').text()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=limit(), check=False, capture_output=True)
    assert done.returncode == 7, done.stderr


def test_a_handler_that_runs_out_of_an_iterator_fails_and_nothing_waits_for_it() -> None:
    handlers = Handlers()
    with handlers.connected(coroutines=False) as (_, session):
        handlers.kind, handlers.error = "permission", StopIteration()
        with pytest.raises(AcpError):
            session.prompt("permission").text()


NO_DESCRIPTORS = """
import os, resource, sys
import antiphon
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
held = [os.dup(0) for _ in range(32 - len(os.listdir("/dev/fd")))]
try:
    with antiphon.sync.connect("demo"):
        pass
except OSError as error:
    print(error)
"""


def test_a_loop_that_cannot_be_made_is_an_error_and_no_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_DESCRIPTORS], timeout=limit(), check=False, capture_output=True, encoding="utf-8"
    )
    assert "Too many open files" in done.stdout, done.stderr


def test_what_is_waited_for_fails_when_the_loop_ends() -> None:
    worker = Worker()
    worker.start()
    waits: list[BaseException] = []

    def wait() -> None:
        try:
            worker.run(asyncio.Event().wait())
        except BaseException as error:
            waits.append(error)

    callers = [threading.Thread(target=wait) for _ in range(3)]
    for caller in callers:
        caller.start()
    while len(worker._calls) < 3:
        pass

    async def stop() -> None:
        asyncio.get_running_loop().stop()

    worker.run(stop())
    worker.stop()
    for caller in callers:
        caller.join(20)
    assert len(waits) == 3
    with pytest.raises(ConnectionClosed):
        worker.run(asyncio.sleep(0))


def test_ctrl_c_while_a_handler_waits_ends_the_wait() -> None:
    never = threading.Event()

    def interrupt(_: v1.RequestPermission) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return never.wait()

    with pytest.raises(KeyboardInterrupt), sync.connect(COMMAND, permission=interrupt) as agent:
        agent.new_session().prompt("permission").text()
    never.set()


# At any moment.


class Quick(Agent):
    """An agent in this process, whose prompts do what their text says."""

    def __init__(self, world: World) -> None:
        super().__init__("quick")
        self.world = world
        self.open = 0

    async def new_session(self, session: AgentSession) -> None:
        await self.world.pause()
        self.open += 1

    async def close_session(self, session: AgentSession) -> None:
        self.open -= 1

    async def prompt(self, turn: AgentTurn) -> None:
        for word in turn.text.split():
            if word == "ask":
                async with turn.tool("ask") as call:
                    with suppress(AcpError):
                        await call.permitted()
            elif word == "wait":
                await asyncio.sleep(0.001)
            else:
                await turn.say(word)


def near_end(agent: Agent) -> tuple[Transport, Transport]:
    """A transport that has this agent at its other end, on the loop that it is first used on."""
    near, far = memory_pair()
    begin = near._start_reading

    def serve() -> None:
        begin()
        near.serving = near.loop.create_task(agent.serve(far))  # type: ignore[attr-defined]

    near._start_reading = serve  # type: ignore[method-assign]
    return near, far


def script(world: World) -> None:
    """A script that asks its user, is interrupted, left by a handler, or loses its agent, at any step of the loop below it."""
    agent, ends, inside = Quick(world), dict[str, BaseException](), True
    near, far = near_end(agent)

    def interrupted(*_: object) -> None:
        if inside:
            raise KeyboardInterrupt

    def permission(_: v1.RequestPermission) -> bool:
        if error := ends.pop("exit", None):
            raise error
        return True

    world.offer("exit", lambda: ends.update(exit=SystemExit(3)))
    world.offer("interrupt", lambda: os.kill(os.getpid(), signal.SIGINT))
    world.offer("kill", far.close)
    world.finally_(lambda: agent.open == 0 or pytest.fail(f"{agent.open} sessions are open"))
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        with sync.connect(near, permission=permission, cancel_grace=5) as connected:
            session = connected.new_session("/")
            for _ in range(world.random.randint(1, 3)):
                words = world.random.choices(["ask", "wait", "a", "b"], k=5)
                text = session.prompt(" ".join(words)).text()
                assert world.acted or text == "".join(word for word in words if word in "ab")
            if world.random.random() < 0.5:
                session.close()
    except (SystemExit, KeyboardInterrupt):
        assert world.acted
    finally:
        inside = False
        signal.signal(signal.SIGINT, before)


def test_a_script_ends_however_and_whenever_it_is_interrupted() -> None:
    check(script, ("exit", "interrupt", "kill", "collect"), virtual=False)


OURS = ("client/sync.py", "client/worker.py", "contextlib.py")


class Interruption:
    """Raises what Ctrl-C raises at one of the points where Python looks for signals: a call of ours, or the end of a call in C."""

    def __init__(self, point: int) -> None:
        self.left = point

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        waits = code.co_qualname == "Condition.wait" and getattr(argument, "__name__", "") == "acquire"
        if event in ("call", "c_return") and (waits or code.co_filename.endswith(OURS)):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def script(self, world: World) -> None:
        near, _ = near_end(Quick(world))
        sys.setprofile(self)
        try:
            with sync.connect(near, permission=lambda _: True) as connected:
                session = connected.new_session("/")
                assert session.prompt("a ask b").text() == "ab"
                session.close()
        except KeyboardInterrupt:
            assert self.left == 0
        finally:
            sys.setprofile(None)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # interrupted between the two
def test_a_script_leaves_no_task_and_no_thread_wherever_ctrl_c_interrupts_it() -> None:
    for point in count(1):
        interruption = Interruption(point)
        run(interruption.script, Schedule(point), virtual=False)
        if interruption.left > 0:  # there is no such point: the script was not interrupted
            break
    assert point > 50
