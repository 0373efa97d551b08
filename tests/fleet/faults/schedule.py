"""One random schedule of faults against a fleet, from a seed, and what has to be true at its end.

Three people use three sessions while one or two things at a time break. At the end the journal of each session is read from the broker:
its numbers have no gap, every event is there once, each client has seen exactly these events by number and by content, every prompt was
sent to an agent at most once and has one response, and nothing was stored by a worker that did not own the session any more.
"""

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from antiphon.fleet.records.formats import RunAssembler, RunHeader, events_subject
from antiphon.gateway.events import END, PROMPT, TURN, UPDATE, history_frame, parse_event
from antiphon.journal.base import JournalEntry
from tests.fleet.faults.client_program import number_of
from tests.fleet.faults.people import ClientUser, LinkedUser, NumberedUser, Watcher
from tests.fleet.faults.programs import LEASE, FaultyFleet, FleetProgram
from tests.waits import until

__all__ = ["FAULTS", "KINDS", "FleetSchedule", "Tally"]

FAULTS = (
    "kill worker",
    "kill gateway",
    "kill broker leader",
    "kill client",
    "stop worker",
    "restart broker",
    "cut worker",
    "stop broker leader",
    "fill broker",
)
KINDS = ("many 30", "slow 40", "slow 15", "ask 4", "big 2")
PROMPTS = 4
"""What each person sends in one schedule."""

Mend = Callable[[], Awaitable[None]]


class Tally:
    """What all schedules together have shown."""

    def __init__(self) -> None:
        self.schedules = 0
        self.faults: Counter[str] = Counter()
        self.both = 0
        """Rounds in which two things broke at once."""
        self.sessions = self.events = self.prompts = self.interrupted = self.answered = 0
        self.moves: list[float] = []
        """Seconds from the end of each worker to the event at a client that its session has moved."""
        self.failed: list[str] = []
        """The schedules that failed, and why."""

    def __str__(self) -> str:
        return (
            f"{self.schedules} schedules, {sum(self.faults.values())} faults {dict(self.faults)}, {self.both} rounds with two, "
            f"{self.sessions} sessions, {self.events} events, {self.prompts} prompts "
            f"({self.answered} answered, {self.interrupted} interrupted), {len(self.moves)} moves"
        )


class FleetSchedule:
    """The schedule of one seed."""

    def __init__(
        self,
        fleet: FaultyFleet,
        seed: int,
        tally: Tally,
        faults: Sequence[str] = FAULTS,
        kinds: Sequence[str] = KINDS,
    ) -> None:
        """`kinds` are those of the prompts."""
        self.fleet = fleet
        self.seed = seed
        self.tally = tally
        self._faults = [fault for fault in faults if len(fleet.servers) > 1 or fault != "kill broker leader"]
        self._kinds = kinds
        self._draw = random.Random(seed)
        self.users: list[NumberedUser] = [NumberedUser(fleet, f"s{seed}n"), LinkedUser(fleet, f"s{seed}l")]
        self.client = ClientUser(fleet, f"s{seed}c")
        self.watchers: list[Watcher] = []
        self._keys: dict[str, str] = {}
        self._troubled: set[str] = set()
        """The names of the programs that a fault has now."""
        self._gone: list[tuple[str, float]] = []
        """When each worker was killed, stopped or cut off, with the name of its start."""

    # Playing.

    async def play(self) -> None:
        """Play it to its end, and check what is left."""
        people: list[NumberedUser | ClientUser] = [*self.users, self.client]
        try:
            for person in people:
                await person.come()
                self._keys[person.session] = await self.fleet.key(person.session)
            for place, user in enumerate(self.users):
                file = self.fleet.directory / f"watcher-{self.seed}-{place}"
                self.watchers.append(Watcher(self.fleet, user.session, file))
                await self.watchers[-1].start()
            using = [asyncio.ensure_future(self._use(person)) for person in people]
            breaking = asyncio.ensure_future(self._break(using))
            try:
                await asyncio.gather(breaking, *using)
            finally:
                for task in (breaking, *using):
                    task.cancel()
                await asyncio.gather(breaking, *using, return_exceptions=True)
            await self._check()
        finally:
            for watcher in self.watchers:
                await watcher.kill()
            for person in people:
                await person.leave()
        self.tally.schedules += 1

    def __str__(self) -> str:
        """Describe how far everybody is, for a schedule that does not come to its end."""
        lines = [f"schedule {self.seed} in {self.fleet.directory}: {dict(self.tally.faults)} so far"]
        people: list[NumberedUser | ClientUser] = [*self.users, self.client]
        for person in people:
            waiting = [prompt.name for prompt in person.prompts if not prompt.responses and not prompt.is_cut]
            lines.append(f"{person.name} ({person.kind}), session {person.session}: no response to {waiting}")
        lines += [
            f"{user.name} has seen {user.last} events, connected: {user.client is not None}" for user in self.users
        ]
        return "\n".join(lines)

    async def _use(self, person: NumberedUser | ClientUser) -> None:
        draw = random.Random(person.name)  # one for each: the order in which they draw is not that of the seed
        for place in range(PROMPTS):
            name = f"{person.name}{place}"
            await person.prompt(name, f"{name} {draw.choice(self._kinds)}")

    async def _break(self, using: "Sequence[asyncio.Task[None]]") -> None:
        """Break one or two things at a time, at random moments while prompts are sent."""
        for _ in range(self._draw.randint(2, 3)):
            wanted = sum(len(user.messages) for user in self.users) + self._draw.randint(1, 60)
            await until(
                lambda wanted=wanted: (
                    sum(len(user.messages) for user in self.users) >= wanted  # type: ignore[misc]
                    or all(task.done() for task in using)
                )
            )
            chosen = self._draw.sample(self._faults, min(len(self._faults), self._draw.choice((1, 1, 2))))
            self.tally.both += len(chosen) > 1
            mends = [await self._strike(fault) for fault in chosen]
            await asyncio.gather(*(mend() for mend in mends))

    async def _strike(self, fault: str) -> Mend:
        """Let one fault happen, and return what mends it, after a while."""
        self.tally.faults[fault] += 1
        match fault:
            case "kill worker":
                worker = await self._pick_worker()
                await worker.kill()
                return self._after(self._draw.choice((0.0, 2.5)) * LEASE, worker.start, worker)
            case "stop worker":
                worker = await self._pick_worker()
                worker.stop()
                return self._after(self._draw.uniform(1.3, 3) * LEASE, worker.go_on, worker)
            case "cut worker":
                worker = await self._pick_worker()
                return self._after(self._draw.uniform(0.2, 3) * LEASE, self._cut(worker), worker)
            case "kill gateway":
                gateway = self._draw.choice(self.fleet.gateways)
                await gateway.kill()
                return self._after(self._draw.uniform(0, 1), gateway.start)
            case "kill broker leader":
                return await self._kill_leader()
            case "stop broker leader":
                return await self._stop_leader()
            case "fill broker":
                await self.fleet.fill_broker()
                return self._after(self._draw.uniform(0.5, 4), self.fleet.make_room)
            case "restart broker":
                return self._restart_broker()
            case _:
                return await self._kill_client()

    def _after(
        self, seconds: float, mend: Callable[[], Awaitable[None] | None], worker: FleetProgram | None = None
    ) -> Mend:
        async def later() -> None:
            await asyncio.sleep(seconds)
            done = mend()
            if done is not None:
                await done
            if worker is not None:
                self._troubled.discard(worker.name)

        return later

    async def _pick_worker(self) -> FleetProgram:
        """Return a worker that nothing has happened to yet: mostly one that owns a session of this schedule."""
        key = self._draw.choice([*self._keys.values()])
        owner = await self.fleet.owner(key) if self._draw.random() < 0.8 else None
        well = [each for each in self.fleet.workers if each.name not in self._troubled]
        worker = owner if owner in well and owner is not None else self._draw.choice(well)
        self._troubled.add(worker.name)
        self._gone.append((str(worker.about["worker"]), asyncio.get_running_loop().time()))
        return worker

    def _cut(self, worker: FleetProgram) -> Callable[[], None]:
        """Break all ways of a worker to the broker: connections end, or nothing arrives any more. Return what mends them."""
        ways, ends = self.fleet.networks[worker.name], self._draw.random() < 0.5
        for way in ways:
            way.refuses = ends
            if ends:
                way.cut()
            else:
                way.is_open.clear()

        def mend() -> None:
            for way in ways:
                way.refuses = False
                way.is_open.set()

        return mend

    async def _kill_leader(self) -> Mend:
        server = await self.fleet.leader()
        if server.is_running:
            server.kill()

        def start() -> None:
            if not server.is_running:
                server.restart()

        return self._after(self._draw.uniform(0, 2), start)

    async def _stop_leader(self) -> Mend:
        """Freeze the leader: its connections stay, others choose another one after a while, and it comes back with what it knew."""
        server = await self.fleet.leader()
        if server.is_running:
            server.freeze()
        return self._after(self._draw.choice((0.5, 3.0, 7.0, 11.0)), server.thaw)

    def _restart_broker(self) -> Mend:
        kills = self._draw.random() < 0.5
        for server in self.fleet.servers:
            if server.is_running:
                server.kill() if kills else server.stop()

        def start() -> None:
            for server in self.fleet.servers:
                if not server.is_running:
                    server.start(wait=False)
            for server in self.fleet.servers:
                server.wait()

        return self._after(self._draw.uniform(0, 1.5), start)

    async def _kill_client(self) -> Mend:
        place = self._draw.randrange(len(self.users))
        if self._draw.random() < 0.4:
            await self.users[place].cut()
            return self._after(0.0, lambda: None)
        await self.watchers[place].kill()
        return self._after(self._draw.uniform(0, 1), self.watchers[place].start)

    # Checking.

    async def _check(self) -> None:
        for user, watcher in zip(self.users, self.watchers, strict=True):
            last = await user.idle()
            await user.caught_up(last)
            user.look()
            await watcher.caught_up(last)
            journal = await self._journal(user.session)
            assert len(journal) == last, f"{user.name}: {last} events were announced, {len(journal)} are stored"
            self._same(f"client {user.name}", user.messages, journal)
            self._same(f"watcher of {user.name}", watcher.messages, journal)
            self._check_turns(user, journal)
            for worker, at in user.moved:
                self.tally.moves += [at - max(since)] if (since := self._since(worker, at)) else []
        await self._check_client()
        sent = Counter(line.split()[0] for line in self.fleet.noted("prompt"))
        assert not [name for name, times in sent.items() if times > 1], f"prompts that ran twice: {sent}"
        await self.fleet.none_left()

    def _since(self, worker: str, at: float) -> list[float]:
        """Return when a worker was killed, stopped or cut off before a time."""
        return [since for name, since in self._gone if name == worker and since < at]

    async def check_journals(self) -> None:
        """Check only how the events of each session are stored, of a schedule that did not come to its end."""
        for session in self._keys:
            await self._journal(session)

    async def _check_client(self) -> None:
        """Compare what the client without numbers has seen with the journal."""
        helper = NumberedUser(self.fleet, "helper")
        helper.session = self.client.session
        try:
            await helper.idle()
        finally:
            await helper.leave()
        journal = await self._journal(self.client.session)
        stored = [text for event in journal if (text := _sent(event)) is not None]
        await until(lambda: len(self.client.texts) >= len(stored))
        assert [_digest(text) for text in self.client.texts] == [_digest(text) for text in stored], self.client.name
        self._check_turns(self.client, journal)

    async def _journal(self, session: str) -> list[bytes]:
        """Return the events of a session as they are stored. No worker has stored one after another had the session."""
        key = self._keys[session]
        assembler, events, after, epochs = RunAssembler(), list[bytes](), 0, list[int]()
        while page := await self.fleet.ask(partial(self.fleet.observer.read, events_subject(key), after)):
            for message in page:
                after = message.sequence
                run = assembler.take(message)
                epochs.append(int(RunHeader.of(message).name.partition(".")[0]))
                if run is not None:
                    assert run.header.first == len(events) + 1, (
                        f"{session}: event {run.header.first} is stored behind event {len(events)}"
                    )
                    events += run.events
        assert epochs == sorted(epochs), f"{session}: a worker stored events after another had taken the session"
        self.tally.sessions += 1
        self.tally.events += len(events)
        return events

    def _same(self, who: str, messages: Sequence[dict[str, Any]], journal: Sequence[bytes]) -> None:
        """Check that messages are exactly the events of a journal, in their order, by number and by content."""
        seen = [(number_of(each), _content(each)) for each in messages if number_of(each)]
        stored = []
        for number, data in enumerate(journal, 1):
            frame = history_frame("", JournalEntry(number, data))
            assert frame is not None
            stored.append((number, _content(json.loads(frame))))
        if seen != stored:
            numbers = [number for number, _ in seen]
            doubled = [number for number, count in Counter(numbers).items() if count > 1]
            missing = sorted(set(range(1, len(stored) + 1)) - set(numbers))
            other = [number for number, content in seen if (number, content) not in stored]
            raise AssertionError(
                f"{who} saw {len(seen)} of {len(stored)} events: lost {missing}, doubled {doubled}, other content {other}, "
                f"in order: {numbers == sorted(numbers)}"
            )

    def _check_turns(self, user: NumberedUser | ClientUser, journal: Sequence[bytes]) -> None:
        """Check that turns are whole: what an agent sent is in its turn, in order, and each prompt has one response, that of its turn."""
        turns = _Turns(journal)
        sent = {line.split()[0] for line in self.fleet.noted("prompt")}
        for prompt in user.prompts:
            self.tally.prompts += 1
            begun, said, ended = turns.of(prompt.name)
            assert begun <= 1, f"{prompt.name} has {begun} turns"
            assert said == [f"{prompt.name}/{place}" for place in range(len(said))], (prompt.name, said)
            assert len(ended) == begun, f"{prompt.name} has {begun} turns, of which {len(ended)} have ended"
            assert prompt.name not in sent or begun, f"{prompt.name} was sent to an agent, and has no turn"
            if ended and "stopReason" in ended[0]:
                assert len(said) == int(prompt.text.split()[2]), (
                    f"{prompt.name} has ended, and {len(said)} pieces are stored"
                )
            if prompt.is_cut:
                continue
            assert len(prompt.responses) == 1, f"{prompt.name} has the responses {prompt.responses}"
            response = prompt.responses[0]
            assert ended, f"{prompt.name} has no turn, and the response {response}"
            if "result" in response:
                self.tally.answered += 1
                assert response["result"]["stopReason"] == ended[0].get("stopReason"), (response, ended)
            else:
                self.tally.interrupted += 1
                data = response["error"].get("data") or {}
                assert (data.get("antiphon") or {}).get("interrupted") is True, response
                assert "stopReason" not in ended[0], (response, ended)


class _Turns:
    """The turns of a journal, by the names of their prompts."""

    def __init__(self, journal: Sequence[bytes]) -> None:
        self._begun: Counter[str] = Counter()
        self._sent: dict[str, list[str]] = {}
        self._ended: dict[str, list[dict[str, Any]]] = {}
        names: dict[str, str] = {}
        running = ""
        for data in journal:
            event = parse_event(data)
            if event.kind == TURN:
                assert not running, f"turn {running} runs, and another begins"
                running = event.header.turn
            elif event.kind == PROMPT:
                name = json.loads(event.frame)["params"]["update"]["content"]["text"].split()[0]
                assert event.header.turn == running or not event.header.turn
                names[running] = name
                self._begun[name] += 1
            elif event.kind == END:
                frame = json.loads(event.frame)
                self._ended.setdefault(names.get(running, ""), []).append(frame.get("result") or frame.get("error"))
                running = ""
            elif event.kind == UPDATE and (text := _sent(data)) is not None:
                name = text.partition("/")[0]
                assert names.get(running) == name, f"{text[:20]} is stored in the turn of {names.get(running)}"
                self._sent.setdefault(name, []).append(text.strip())

    def of(self, name: str) -> tuple[int, list[str], list[dict[str, Any]]]:
        """Return how many turns a prompt has, what the agent sent in them, and how they ended."""
        return self._begun[name], self._sent.get(name, []), self._ended.get(name, [])


def _sent(data: bytes) -> str | None:
    """Return what an agent sent with an event; None for any other event."""
    if data[:1] != UPDATE:
        return None
    update = json.loads(data).get("params", {}).get("update", {})
    return str(update["content"]["text"]) if update.get("sessionUpdate") == "agent_message_chunk" else None


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _content(message: dict[str, Any]) -> str:
    """Return the digest of what an event says, in whichever of its forms a client gets it."""
    method = str(message.get("method", ""))
    params = message.get("params") or {}
    match method.removeprefix("_antiphon/session/"):
        case "session/update":
            update = {**params["update"]}
            update.pop("_meta", None)
            return _digest(("update", update))
        case "" | "turn_ended":
            part = params if method else message
            result = part.get("result")
            return _digest(("ended", result["stopReason"] if result else part["error"]["message"]))
        case "session/request_permission" | "requested":
            asked = params.get("params") or params
            return _digest(("requested", asked["toolCall"]))
        case name:
            kept = ("turn", "prompt", "request", "from", "to")
            return _digest((name, {key: params[key] for key in kept if key in params}))
