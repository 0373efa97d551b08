"""Random end-of-life tests: something ends at any step of an event loop, and nothing may hang, be lost or be left.

A *scenario* is a function that takes a `World` and plays something with real objects: `async def` for what runs on a loop, `def` for what
starts a loop in a thread of its own. A *schedule* says what happens to it: a seed (the scenario draws from `world.random`), the name of
an *end* (cancel, close, kill, collect, or any name of the scenario's own) and the step of the loop before which the end happens. A step
is one callback: each task that goes on after an `await`, each read, each timer. So an end falls between any two awaits of any two tasks.

    async def scenario(world: World) -> None:
        connection = …
        world.offer("close", connection.close)      # what "close" does, from now on
        world.offer("kill", far.close)
        calls = [world.start(connection.request(…)) for _ in range(3)]
        await asyncio.wait(calls)
        world.finally_(lambda: check_order(received))  # after the end of everything

    def test_every_call_ends_however_the_connection_ends() -> None:
        check(scenario, ends=("cancel", "close", "kill", "collect"))

`check` runs the scenario undisturbed once for each seed, counts its steps, and then once for each of `POINTS` random pairs of end and
step. "cancel" cancels the scenario's own task unless the scenario offers something else; "collect" does what the scenario offers (drop
what it holds), if anything, and collects garbage, at once or at random moments from then on. An end that is not offered yet at its
step happens as soon as it is. A coroutine that an end returns is run as a task.

After each run:
- the scenario and all tasks have ended within a limit, or the failure shows where each of them waits;
- the scenario, and what it started with `world.start`, raised nothing but cancellation and `AcpError`, and nothing at all undisturbed;
- no exception was lost in the loop's handler, in a `__del__` or in a thread, and nothing was logged as an error;
- no thread, file descriptor or child process is left;
- what the scenario gave to `world.finally_` holds.

`virtual=True` (the default for `async def`) is for scenarios without threads, processes and sockets: the clock jumps to the next timer,
so a limit of five seconds costs nothing, a wait that nothing can end fails at once, and a schedule is exactly repeatable.

ANTIPHON_SCHEDULES=5000 says how many schedules each test runs. ANTIPHON_SCHEDULE=17:close:231 runs the one that a failure named.
"""

import asyncio
import gc
import inspect
import logging
import os
import random
import selectors
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from antiphon.errors import AcpError

__all__ = ["SCHEDULES", "Scenario", "Schedule", "World", "check", "run"]

T = TypeVar("T")
Scenario = Callable[["World"], Any]

SCHEDULES: Final = int(
    os.environ.get("ANTIPHON_SCHEDULES") or ("30" if os.environ.get("ANTIPHON_EXAMPLES") == "few" else "60")
)
"""Schedules for each test; fewer on the other Pythons."""

POINTS: Final = 10
"""Schedules that share a seed: the undisturbed run that counts the steps is made once for all of them."""

VIRTUAL_LIMIT: Final = 45.0
"""Seconds of a virtual clock in which everything has ended: more than all graces together, less than the timeout of any request."""

REAL_LIMIT: Final = 60.0
"""Seconds of a real clock. Generous, because a loaded machine is not a reason to fail."""


_END: Final = "the end:"


class Schedule(NamedTuple):
    """What happens to a scenario. Step 0: nothing does."""

    seed: int
    end: str = ""
    step: int = 0

    def __str__(self) -> str:
        return f"{self.seed}:{self.end}:{self.step}"

    @classmethod
    def read(cls, text: str) -> "Schedule":
        """The schedule that a failure named."""
        seed, end, step = text.split(":")
        return cls(int(seed), end, int(step))


class World:
    """What a scenario is given: random numbers, the ends it offers, the tasks it starts, the checks that come last."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.random = random.Random(schedule.seed)
        self.acted = False
        """Whether the end has happened."""
        self.over = False
        """Whether the main coroutine of a loop is: nothing happens any more, and tasks are only cancelled."""
        self.main: asyncio.Task[Any] | None = None
        self.steps = self.length = 0
        self.troubles: list[str] = []
        self.left: set[asyncio.Task[Any]] = set()
        """Tasks that lived when the main coroutine of a loop in a thread had ended."""
        self._ends: dict[str, Callable[[], Any]] = {"cancel": self._cancel, "collect": lambda: None}
        self._started: list[asyncio.Task[Any]] = []
        self._checks: list[Callable[[], object]] = []

    def offer(self, end: str, do: Callable[[], Any]) -> None:
        """From now on the end of this name does this."""
        self._ends[end] = do

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> "asyncio.Task[T]":
        """Run something as a task that has to end, with its result, cancelled or with an `AcpError`."""
        task = asyncio.get_running_loop().create_task(work, name=name or getattr(work, "__qualname__", None))
        self._started.append(task)
        return task

    def finally_(self, check: Callable[[], object]) -> None:
        """Call this after the end of everything. It raises what is wrong."""
        self._checks.append(check)

    async def pause(self, most: int = 4) -> None:
        """Let the loop turn a random number of times."""
        for _ in range(self.random.randint(0, most)):
            await asyncio.sleep(0)

    # For those who run it.

    def _cancel(self) -> None:
        if self.main is not None:
            self.main.cancel()

    def step(self) -> None:
        """One more step of the loop is about to be taken."""
        self.steps += 1
        if self.acted or self.over or not self.schedule.step or self.steps < self.schedule.step:
            return
        do = self._ends.get(self.schedule.end)
        if do is None:
            return
        self.acted = True
        try:
            result = do()
            if inspect.iscoroutine(result):
                _ = self.start(result, f"{_END} {self.schedule.end}")
        except AcpError:
            pass  # it ended already
        except Exception as error:
            self.trouble("the end raised", error)
        if self.schedule.end == "collect":
            self._collect()

    def _collect(self) -> None:
        moment = random.Random(str(self.schedule)).randint(0, 40)
        if moment:
            gc.set_threshold(moment, 1, 1)
        else:
            gc.collect()

    def trouble(self, what: str, error: BaseException | None = None) -> None:
        """Something that must not happen did."""
        details = "" if error is None else "\n" + "".join(traceback.format_exception(error))
        self.troubles.append(what + details)

    def judge(self, error: BaseException | None, who: str) -> None:
        """How something ended: what is in order after an end is a fault without one."""
        if error is None or (self.acted and isinstance(error, AcpError | asyncio.CancelledError)):
            return
        self.trouble(f"{who} raised", error)

    def judge_tasks(self) -> None:
        """How everything that was started ended."""
        for task in self._started:
            if task.cancelled():
                self.judge(asyncio.CancelledError(), task.get_name())
            elif task.done():
                self.judge(task.exception(), task.get_name())
            else:
                self.trouble(f"never ended: {where(task)}")
        self._started.clear()  # with their tracebacks, and what the frames in them hold
        self.main = None

    def last(self) -> None:
        """The checks of the scenario."""
        for each in self._checks:
            try:
                each()
            except BaseException as error:
                self.trouble("a check failed", error)
        self._checks.clear()
        self._ends.clear()


# The loop.


class _Ready(deque[Any]):
    """The callbacks that a loop takes one by one."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def popleft(self) -> Any:
        self._world.step()
        return super().popleft()


class Stuck(Exception):
    """Nothing can end this wait."""


class _VirtualSelector(selectors.DefaultSelector):
    """Waits for nothing: a wait with a timeout is over at once, and one without can never end."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0)
        if not events and timeout is None:
            raise Stuck
        if not events and timeout is not None and timeout > 0:
            self.now += timeout
        return events


class ScheduledLoop(asyncio.SelectorEventLoop):
    """An event loop that reports each step to its world."""

    def __init__(self, world: World, *, virtual: bool) -> None:
        self._virtual = _VirtualSelector() if virtual else None
        super().__init__(self._virtual)
        self._world = world
        self._ready = _Ready(world)
        self.set_exception_handler(self._lost)

    def time(self) -> float:
        return super().time() if self._virtual is None else self._virtual.now

    def _lost(self, _: object, context: dict[str, Any]) -> None:
        self._world.trouble(f"lost in the loop: {context.get('message')} {context}", context.get("exception"))

    def run_until_complete(self, future: Any) -> Any:
        main = asyncio.ensure_future(future, loop=self)
        try:
            return super().run_until_complete(main)
        finally:
            if self._virtual is None and main.done() and not self._world.over:
                self._world.over = True
                rest = (task for task in asyncio.all_tasks(self) if not task.get_name().startswith(_END))
                self._world.left |= {task for task in rest if not task.done()}


def where(task: "asyncio.Task[Any]") -> str:
    """Where a task waits, from its outermost frame to the innermost."""
    lines = [f"{task.get_name()}: {task!r}"]
    inner: Any = task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None) or getattr(inner, "ag_frame", None)
        if frame is not None:
            lines.append(f"    {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}")
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None) or getattr(inner, "ag_await", None)  # fmt: skip
    return "\n".join(lines)


# What is watched.


class _Log(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.trouble(f"logged: {self.format(record)}")


@contextmanager
def _watched(world: World, *, logs: bool) -> Iterator[None]:
    """Collect exceptions that nothing catches, and errors in the log."""
    hooks = sys.unraisablehook, threading.excepthook
    thresholds = gc.get_threshold()
    log, handler = logging.getLogger("antiphon"), _Log(world)

    def unraisable(lost: Any) -> None:
        world.trouble(f"lost in {lost.object!r}: {lost.err_msg}", lost.exc_value)

    def in_thread(lost: Any) -> None:
        world.trouble(f"lost in the thread {lost.thread!r}", lost.exc_value)

    sys.unraisablehook, threading.excepthook = unraisable, in_thread
    if logs:
        log.addHandler(handler)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        log.removeHandler(handler)
        sys.unraisablehook, threading.excepthook = hooks


def _descriptors() -> set[tuple[int, int, int]]:
    """Our descriptors, each with the file behind it: its name may change while it is open."""
    found = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the one that lists them is closed again
            status = os.fstat(int(name))
            found.add((int(name), status.st_dev, status.st_ino))
    return found


def _children() -> set[str]:
    """Our child processes, as `pid command`. Linux only."""
    found = set()
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="utf-8") as children:
                for pid in children.read().split():
                    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
                        found.add(f"{pid} {words.read().replace(bytes(1), b' ').decode(errors='replace')[:200]}")
    return found


def _left(before: set[T], now: Callable[[], set[T]], limit: float) -> set[T]:
    """What is there now and was not before. It may take a moment to go."""
    end = time.monotonic() + limit
    pause = threading.Event()
    while (left := now() - before) and time.monotonic() < end:
        pause.wait(0.005)
    return left


# Running.


def run(
    scenario: Scenario,
    schedule: Schedule,
    *,
    virtual: bool = True,
    limit: float | None = None,
    logs: bool = True,
    keeps: Callable[[str], bool] = lambda _: False,
) -> int:
    """Run one schedule, check everything, and return how many steps it took.

    `logs`: whether errors in the log are faults. `keeps`: whether a child process (`pid command`) may stay after the run.

    Raises:
        AssertionError: something hung, was lost or was left.
    """
    world = World(schedule)
    before = _descriptors(), set(threading.enumerate()), _children()
    limit = limit or (VIRTUAL_LIMIT if virtual else REAL_LIMIT)
    with _watched(world, logs=logs):
        if inspect.iscoroutinefunction(scenario):
            _run_on_a_loop(scenario, world, virtual=virtual, limit=limit)
        else:
            _run_in_this_thread(scenario, world, limit)
        world.last()
        gc.collect()
    settle = 0.0 if world.troubles else REAL_LIMIT
    for thread in _left(before[1], lambda: set(threading.enumerate()), settle):
        world.trouble(f"a thread is left: {thread!r}")
    for child in _left(before[2], lambda: {each for each in _children() if not keeps(each)}, settle):
        world.trouble(f"a process is left: {child}")
        with suppress(OSError):
            os.kill(int(child.split()[0]), signal.SIGKILL)
    for fd in _left(before[0], _descriptors, 0.0):
        with suppress(OSError):
            world.trouble(f"a descriptor is left: {fd[0]} {os.readlink(f'/dev/fd/{fd[0]}')}")
    if world.troubles:
        name = getattr(scenario, "__qualname__", repr(scenario))
        found = "\n- ".join(world.troubles)
        raise AssertionError(f"{name} with ANTIPHON_SCHEDULE={schedule} (step {world.steps}):\n- {found}")
    return world.length or world.steps


def _run_on_a_loop(scenario: Scenario, world: World, *, virtual: bool, limit: float) -> None:
    loop = ScheduledLoop(world, virtual=virtual)
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_live(scenario, world, limit))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    except Stuck:
        for task in asyncio.all_tasks(loop):
            world.trouble(f"waits for ever: {where(task)}")
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        if world.troubles:
            with suppress(Stuck, BaseException):
                loop.run_until_complete(asyncio.wait_for(asyncio.sleep(10), 5))
        world.main = None
        asyncio.set_event_loop(None)
        loop.close()


async def _live(scenario: Scenario, world: World, limit: float) -> None:
    world.main = main = asyncio.get_running_loop().create_task(scenario(world), name="the scenario")
    await asyncio.wait([main], timeout=limit)
    world.length = world.steps
    if not main.done():
        world.trouble(f"not over after {limit:g} seconds: {where(main)}")
    else:
        world.judge(asyncio.CancelledError() if main.cancelled() else main.exception(), "the scenario")
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    if rest:
        rest = (await asyncio.wait(rest, timeout=limit))[1]
    for task in rest:
        world.trouble(f"a task is left after {limit:g} seconds: {where(task)}")
    world.judge_tasks()
    del main, rest
    for _ in range(3):
        gc.collect()  # tasks and futures report to the loop an exception that nothing took when they are collected
        await asyncio.sleep(0)


class _Policy(asyncio.DefaultEventLoopPolicy):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return ScheduledLoop(self._world, virtual=False)


class Hang(BaseException):
    """The scenario did not end in time. No `Exception`, so that nothing takes it for one of its own."""


def _run_in_this_thread(scenario: Scenario, world: World, limit: float) -> None:
    def hang(*_: object) -> None:
        raise Hang

    earlier = asyncio.get_event_loop_policy()
    handler = signal.signal(signal.SIGALRM, hang)
    asyncio.set_event_loop_policy(_Policy(world))
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        scenario(world)
    except Hang as error:
        world.trouble(f"not over after {limit:g} seconds", error)
    except BaseException as error:
        world.judge(error, "the scenario")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        asyncio.set_event_loop_policy(earlier)
    for task in world.left:
        if not task.done() or task.cancelled():
            world.trouble(f"a task was left when the loop ended: {task!r}")
    world.left.clear()


def check(
    scenario: Scenario,
    ends: Sequence[str] = ("cancel", "close", "kill", "collect"),
    *,
    count: int = SCHEDULES,
    **how: Any,
) -> None:
    """Run `count` schedules of a scenario. `how` is what `run` takes.

    Raises:
        AssertionError: one of them fails; with the schedule that repeats it.
    """
    if chosen := os.environ.get("ANTIPHON_SCHEDULE"):
        run(scenario, Schedule.read(chosen), **how)
        return
    gc.collect()
    gc.freeze()  # each run collects several times: it looks at its own objects, not at those of all tests before
    for seed in range((count + POINTS - 1) // POINTS):
        steps = run(scenario, Schedule(seed), **how)
        for point in range(POINTS):
            draw = random.Random(f"{seed}/{point}")
            run(scenario, Schedule(seed, draw.choice(ends), draw.randint(1, steps)), **how)
