"""Connections to workers are cut at any step, workers freeze, come back and hand over their sessions: clients see each event once."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from antiphon.gateway.events import PROMPT, parse_event
from tests.fleet.hubs import MemoryFleet, MemoryWorker
from tests.fleet.streams import HttpClient
from tests.gateway.peers import DRIVER, RawClient, ScriptedAgent
from tests.schedules import World, check
from tests.waits import until

CWD = Path("/tmp")
NAMES = ("one", "two", "three")
PROMPTS = 4


class WorkingAgent(ScriptedAgent):
    """An agent that answers prompts by itself: some text, sometimes a permission request, some text, the end."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        self.capabilities["sessionCapabilities"] = {"close": {}}
        self._world = world
        self._name = name
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[object, asyncio.Future[None]] = {}
        self._cancelled: set[str] = set()
        self.prompts: Counter[str] = Counter()
        """How often each prompt came."""
        self.answers = {
            "session/new": lambda _: {"sessionId": self._opened()},
            "session/load": lambda _: {},
            "session/close": lambda _: {},
        }

    def _opened(self) -> str:
        self.sessions += 1
        return f"{self._name}-{self.sessions}"

    def _message(self, message: dict[str, Any]) -> None:
        if message.get("method") == "session/prompt":
            task = asyncio.get_running_loop().create_task(self._work(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif message.get("method") == "session/cancel":
            self._cancelled.add(message["params"]["sessionId"])
            for waiting in self._answers.values():
                if not waiting.done():
                    waiting.set_result(None)
        elif "method" not in message and message.get("id") in self._answers:
            if not self._answers[message["id"]].done():
                self._answers[message["id"]].set_result(None)
        else:
            super()._message(message)

    async def _work(self, message: dict[str, Any]) -> None:
        session, text = message["params"]["sessionId"], message["params"]["prompt"][-1]["text"]
        self.prompts[text] += 1
        self._cancelled.discard(session)
        random, asks = self._world.random, f"{self._name}/{text}"
        for piece in range(random.randint(1, 4)):
            await asyncio.sleep(random.random() / 50)
            if session in self._cancelled:
                break
            self.say(session, f"{asks}/{piece}")
            if random.random() < 0.3 and piece < 3:
                id = f"{asks}/{piece}"
                self._answers[id] = asyncio.get_running_loop().create_future()
                self.ask(id, session)
                await self._answers[id]
        reason = "cancelled" if session in self._cancelled else "end_turn"
        self.result(message["id"], {"stopReason": reason})

    async def close(self) -> None:
        for task in (*self._tasks,):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class RandomFleet(MemoryFleet):
    """A fleet with working agents, and what can go wrong in it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.agents: list[WorkingAgent] = []
        self.is_over = False
        self._running: list[MemoryWorker] = []

    async def start(self) -> None:
        await self.hub.start()
        for name in NAMES:
            worker = self.workers[name] = MemoryWorker(name, CWD, self)
            agent = WorkingAgent(self._world, name)
            worker.agent = agent
            worker.hub.agents["demo"]._source = agent.start
            self.agents.append(agent)
            await worker.hub.start()
            self._running.append(worker)

    async def end(self) -> None:
        self.is_over = True
        await self.close()
        for worker in (*self._running,):
            await self._end_worker(worker)
        for agent in self.agents:
            await agent.close()

    async def _end_worker(self, worker: MemoryWorker) -> None:
        if worker in self._running:
            self._running.remove(worker)
            await worker.hub.close()
            worker.is_alive = False
            await worker.cut()
            if worker.serving:
                await asyncio.wait(worker.serving)

    async def cut(self) -> None:
        for _ in range(self._world.random.randint(1, 3)):
            await self._pick().cut()
            await asyncio.sleep(self._world.random.random() / 5)

    async def freeze(self) -> None:
        """A worker is taken for dead, and finds later that it is not."""
        frozen = self._pick()
        frozen.freeze()
        await asyncio.sleep(self._world.random.random())
        frozen.is_alive = frozen in self._running
        await self.cut()

    async def drain(self) -> None:
        """A worker hands its sessions over, and ends when its turns have."""
        worker = self._pick()
        await worker.hub.drain(0.5)
        await self._end_worker(worker)
        await self.freeze()

    async def hide(self) -> None:
        """A worker is alive and not reached for a while."""
        name = self._pick().name
        self.unreached.add(name)
        await self.workers[name].cut()
        await asyncio.sleep(self._world.random.random())
        self.unreached.discard(name)

    def _pick(self) -> MemoryWorker:
        return self._world.random.choice(self.living() or self._running or [*self.workers.values()])


class Person:
    """A client with sessions of its own, and one that both clients use."""

    def __init__(self, client: RawClient, name: str, world: World) -> None:
        self.client = client
        self.name = name
        self.prompted: dict[int, str] = {}
        """The session of each prompt, by the id of its request."""
        self._world = world
        self._answered = 0

    async def play(self, sessions: list[str]) -> None:
        answering = asyncio.get_running_loop().create_task(self._answer())
        try:
            for place in range(PROMPTS):
                session = self._world.random.choice(sessions)
                asked = self.client.prompt(session, f"{self.name}{place}")
                self.prompted[asked] = session
                if self._world.random.random() < 0.2:
                    self.client.notify("session/cancel", {"sessionId": session})
                if self._world.random.random() < 0.6:
                    await self.client.response(asked)
            for asked in self.prompted:
                await self.client.response(asked)
        finally:
            answering.cancel()

    async def _answer(self) -> None:
        """Answer what is asked, in a while."""
        while True:
            await asyncio.sleep(0.01)
            for request in self.client.requests()[self._answered :]:
                self._answered += 1
                self.client.choose(request)


def numbers_of(person: Person, session: str) -> list[int]:
    """The numbers of the events of a session that a client was given, in the order in which they came."""
    found = []
    for each in person.client.messages:
        part = each.get("params") or each.get("result") or {}
        if part.get("sessionId") == session or ("method" not in each and person.prompted.get(each["id"]) == session):
            number = ((part.get("_meta") or {}).get("antiphon") or {}).get("number", part.get("number"))
            found += [number] if number else []
    return found


def check_numbers(fleet: RandomFleet, person: Person, session: str) -> None:
    """Each event once, in order, and each with what the journal has under its number."""
    stored = fleet.journal.events.get(fleet.key(session), [])
    assert numbers_of(person, session) == [*range(1, len(stored) + 1)]
    for message in person.client.messages:
        params = message.get("params", {})
        text = params.get("update", {}).get("content", {}).get("text", "")
        if params.get("sessionId") == session and text:
            number = params["_meta"]["antiphon"]["number"]
            assert text.encode() in parse_event(stored[number - 1]).frame, (number, text)


def agent_texts(fleet: RandomFleet, session: str) -> list[str]:
    """The texts of agents in a session, as they are stored."""
    found = []
    for data in fleet.journal.events.get(fleet.key(session), []):
        event = parse_event(data)
        if event.kind == PROMPT or not event.frame.startswith(b"{"):
            continue
        update = msgspec.json.decode(event.frame).get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            found.append(update["content"]["text"])
    return found


def texts_in(client: RawClient, session: str) -> list[str]:
    updates = [
        each["params"]["update"]
        for each in client.messages
        if each.get("method") == "session/update" and each["params"]["sessionId"] == session
    ]
    return [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]


async def opened(client: RawClient, method: str, params: dict[str, object]) -> dict[str, Any]:
    """Open a session. One whose connection is lost before its response came is opened again."""
    while True:
        response = await client.response(client.begin(method, {"cwd": str(CWD), "mcpServers": [], **params}))
        if "result" in response:
            result: dict[str, Any] = response["result"]
            return result
        assert response["error"]["data"]["recoverable"] is True, response


async def scenario(world: World) -> None:
    here = RandomFleet(world)
    await here.start()
    troubles = {"cut": here.cut, "freeze": here.freeze, "drain": here.drain, "hide": here.hide}
    for name in troubles:
        world.offer(name, lambda name=name: None if here.is_over else troubles[name]())  # type: ignore[misc]
    try:
        page, plain = await here.client(numbers=True), await here.client()
        sessions = [(await opened(page, "session/new", {}))["sessionId"] for _ in range(2)]
        await opened(plain, "session/resume", {"sessionId": sessions[0]})
        people = [Person(page, "page", world), Person(plain, "plain", world)]
        playing = [world.start(people[0].play(sessions)), world.start(people[1].play(sessions[:1]))]
        await asyncio.wait(playing)
        for task in playing:
            task.result()
        await settled(here, people, sessions)
    finally:
        await here.end()
    for session in sessions:
        check_numbers(here, people[0], session)
    assert texts_in(plain, sessions[0]) == agent_texts(here, sessions[0])
    for person in people:
        answers = Counter(each["id"] for each in person.client.messages if "id" in each and "method" not in each)
        assert all(answers[asked] == 1 for asked in person.prompted), answers
    sent = sum((agent.prompts for agent in here.agents), Counter[str]())
    assert not [text for text, times in sent.items() if times > 1], sent


async def settled(here: RandomFleet, people: list[Person], sessions: list[str]) -> None:
    """Wait until both clients have all that is stored."""
    page, plain = people

    def has_all() -> bool:
        stored = all(
            len(numbers_of(page, each)) >= len(here.journal.events.get(here.key(each), [])) for each in sessions
        )
        return stored and len(texts_in(plain.client, sessions[0])) >= len(agent_texts(here, sessions[0]))

    await until(has_all)


class HttpPerson:
    """A client over HTTP whose stream is cut again and again."""

    def __init__(self, client: HttpClient, session: str, world: World) -> None:
        self.client = client
        self.session = session
        self.prompted: list[int] = []
        self._world = world
        self._answered: set[int] = set()

    async def play(self) -> None:
        background = [asyncio.get_running_loop().create_task(work) for work in (self._cut(), self._answer())]
        try:
            for place in range(PROMPTS):
                self.prompted.append(await self.client.prompt(self.session, f"http{place}"))
                if self._world.random.random() < 0.6:
                    await self.client.response(self.prompted[-1])
            for asked in self.prompted:
                await self.client.response(asked)
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)
            if self.session not in self.client.streams:
                self.client.listen(self.session)

    async def _cut(self) -> None:
        while True:
            await asyncio.sleep(self._world.random.random() / 10)
            await self.client.cut(self.session)
            await asyncio.sleep(self._world.random.random() / 20)
            self.client.listen(self.session)

    async def _answer(self) -> None:
        while True:
            await asyncio.sleep(0.01)
            for message in self.client.messages:
                if message.get("method") == "session/request_permission" and message["id"] not in self._answered:
                    self._answered.add(message["id"])
                    result = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
                    await self.client.post({"jsonrpc": "2.0", "id": message["id"], "result": result})


async def http_scenario(world: World) -> None:
    here = RandomFleet(world)
    await here.start()
    client = HttpClient(here.hub, DRIVER)
    try:
        await client.initialize()
        opening = {"cwd": str(CWD), "mcpServers": []}
        session = (await client.request("session/new", opening))["sessionId"]
        client.listen(session)
        troubles = {"cut": here.cut, "freeze": here.freeze, "drain": here.drain, "hide": here.hide}
        for name in troubles:
            world.offer(name, lambda name=name: None if here.is_over else troubles[name]())  # type: ignore[misc]
        person = HttpPerson(client, session, world)
        playing = world.start(person.play())
        await asyncio.wait([playing])
        playing.result()
        await until(lambda: len(client.texts) >= len(agent_texts(here, session)))
        for asked in person.prompted:
            await client.response(asked)
    finally:
        await client.leave()
        await here.end()
    assert client.texts == agent_texts(here, session)
    places = [int(id) for id, message in client.events if message.get("method") == "session/update"]
    assert places == sorted(set(places))
    sent = sum((agent.prompts for agent in here.agents), Counter[str]())
    assert not [text for text, times in sent.items() if times > 1], sent


def test_a_stream_over_http_that_is_cut_again_and_again_shows_each_event_once() -> None:
    check(http_scenario, ends=("cut", "freeze", "drain", "hide"))


def test_clients_see_each_event_once_whatever_becomes_of_connections_and_workers() -> None:
    check(scenario, ends=("cut", "freeze", "drain", "hide"))
