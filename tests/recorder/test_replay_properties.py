"""Any session, replayed against its own client, is the same; any change in it is found."""

import json
from typing import Any, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.replay.agent import Player, StrictPlayer
from antiphon.recorder.replay.client import ClientPlayer
from antiphon.recorder.replay.script import ReplayNames, Script
from antiphon.traffic.entries import Direction, Entry, parse
from tests.recorder.replay_recordings import TURN, client, raw, strict, tolerant

IDS = ["0", "1", "-7", "1.0", '"1"', '"é"', "null", "1180591620717411303424", "1180591620717411303425", "1e3"]
"""Every kind of id, as it is written."""

VALUES = st.sampled_from([None, True, 0, -3, "", "é", [], [1, {"a": None}], {"ab": ["x"], "é": {"b": 2}}, "/w/a", 1.5])
PARAMS = st.dictionaries(st.sampled_from(["text", "items", "x y", "optionId"]), VALUES, min_size=1, max_size=3)


class PlayedLine(NamedTuple):
    """A line, in parts: its id can be another."""

    dir: Direction
    id: str | None
    rest: str
    kind: str

    def line(self, id: str | None = None) -> bytes:
        """The line, under another id if need be."""
        named = "" if self.id is None else f'"id": {id or self.id},'
        return f'{{"jsonrpc":"2.0",{named}{self.rest}}}'.encode()


STEPS = st.lists(
    st.tuples(st.sampled_from(Direction), st.sampled_from(["ask", "tell", "answer"]), st.integers(0, 9), PARAMS),
    min_size=1,
    max_size=10,
)


def conversation(steps: list[tuple[Direction, str, int, dict[str, Any]]]) -> list[PlayedLine]:
    """Questions, answers and notifications of both sides, in any order in which they can happen."""
    texts: list[PlayedLine] = []
    open: dict[Direction, list[str]] = {Direction.C2A: [], Direction.A2C: []}
    for dir, what, number, params in steps:
        content = msgspec.json.encode(params).decode()
        method = f'"method":"m/{number % 3}","params":{content}'
        free = [id for id in IDS if id not in open[dir]]
        asked = open[dir.other]
        if what == "answer" and asked:
            texts.append(PlayedLine(dir, asked.pop(number % len(asked)), f'"result":{content}', "answer"))
        elif what == "ask" and free:
            open[dir].append(free[number % len(free)])
            texts.append(PlayedLine(dir, open[dir][-1], method, "ask"))
        else:
            texts.append(PlayedLine(dir, None, method, "tell"))
    return texts


CONVERSATIONS = STEPS.map(conversation)


def player_of(texts: list[PlayedLine]) -> StrictPlayer:
    lines: list[Entry] = [parse(number, 0.0, one.dir, one.line()) for number, one in enumerate(texts, 1)]
    return StrictPlayer(Script(lines, Direction.A2C), ReplayNames(lines, Direction.C2A), speed=0.0)


@given(CONVERSATIONS)
def test_a_recording_matches_its_own_client_under_any_ids(texts: list[PlayedLine]) -> None:
    player = player_of(texts)
    sent, wanted = player.ready(0.0), []
    live: dict[str, str] = {}  # the recorded id of an open question of the client → the one it has now
    for number, one in enumerate(texts):
        id = one.id
        if one.dir is Direction.C2A:
            if one.kind == "ask":
                id = live[str(one.id)] = f'"live-{number}"'
            player.receive(one.line(id), 0.0)
            sent += player.ready(0.0)
        else:
            wanted.append(one.line(live.pop(str(id)) if one.kind == "answer" else id) + b"\n")
    assert player.problems == []
    player.end(0.0)
    assert sent == wanted and player.problems == []


@given(st.data())
def test_any_change_in_what_the_client_sends_is_reported_with_its_path(data: st.DataObject) -> None:
    lines = data.draw(CONVERSATIONS)
    mine = [place for place, one in enumerate(lines) if one.dir is Direction.C2A]
    if not mine:
        return
    chosen = data.draw(st.sampled_from(mine))
    message = msgspec.json.decode(f"{{{lines[chosen].rest}}}")
    part = "result" if lines[chosen].kind == "answer" else "params"
    path = change(data, message[part], part)
    rest = msgspec.json.encode({part: message[part]}).decode()[1:-1]
    method = "" if part == "result" else f'"method":"{message["method"]}",'
    player = player_of(lines)
    player.ready(0.0)
    for place, one in enumerate(lines):
        if one.dir is Direction.C2A:
            assert player.problems == []
            player.receive(one._replace(rest=method + rest).line() if place == chosen else one.line(), 0.0)
            player.ready(0.0)
        if place == chosen:
            break
    assert any(f": {path}: recorded " in problem for problem in player.problems), (path, player.problems)
    assert any(problem.startswith(f"message {chosen + 1} (") for problem in player.problems)


def change(data: st.DataObject, value: Any, path: str) -> str:
    """Change one thing somewhere in a value, and say where."""
    key = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    if isinstance(value, dict):
        path += f".{key}" if key.isascii() and key.isidentifier() else f".{msgspec.json.encode(key).decode()}"
    else:
        path += f"[{key}]"
    if isinstance(value[key], dict | list) and value[key] and data.draw(st.booleans()):
        return change(data, value[key], path)
    value[key] = "☃ nobody says this"
    return path


ODD: list[Any] = [None, True, 0, -1, 1.5, 2**70, "", "s1", "x\n", [], {}, [{}], {"a": 1}]
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", 2]),
        "id": st.sampled_from(ODD),
        "method": st.sampled_from(["session/prompt", "session/cancel", "$/cancel_request", "session/update", 5, "x\n"]),
        "params": st.sampled_from(
            [*ODD, {"sessionId": "s1"}, {"sessionId": 1}, {"cwd": "/x"}, {"cwd": 3}, {"update": []}, {"requestId": 0}]
        ),
        "result": st.sampled_from([*ODD, {"terminalId": "t"}]),
        "error": st.sampled_from(ODD),
    },
)
WORDS = st.one_of(
    st.sampled_from(TURN).map(raw),
    PARTS.map(lambda parts: json.dumps(parts).encode()),
    st.sampled_from([b"[]", b"1", b"null", b"\xff", b'{"a":"\\ud800"}', b"{" * 300, b'{"id":1,"id":2,"method":"x"}']),
)


@given(st.lists(WORDS, max_size=8))
def test_whatever_comes_a_player_goes_on_or_names_the_reason(frame: list[bytes]) -> None:
    players: list[Player] = [strict(TURN), tolerant(TURN), client(TURN), client(TURN, is_strict=False)]
    for player in players:
        sent = player.ready(0.0)
        for now, line in enumerate(frame):
            player.receive(line, float(now))
            sent += player.ready(float(now))
        sent += player.end(100.0)
        assert all(json.loads(line) for line in sent)
        assert "\n" not in "".join(player.problems)
        if isinstance(player, ClientPlayer):
            assert json.dumps([one.as_data() for one in player.differences])
