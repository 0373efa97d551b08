"""The least client that stores events at a NATS server: one socket, commands encoded beforehand, nothing checked. The floor of a journal there.

    python -m benchmarks.contestants.bare_append NAME=PORT,… SUBJECTS EVENTS SECONDS [RATE]

It connects to the server that leads the stream. Each of SUBJECTS subjects has one message under way, with EVENTS events and the same two
conditions of ownership that a worker's messages have: a stream on several servers takes no second one for a subject meanwhile. With RATE,
so many messages a second are sent in all. It waits for a line on stdin, and prints `{"events": …, "seconds": …, "p50": …, "p99": …}`, the
last two in milliseconds from the write to the answer.
"""

import heapq
import json
import re
import select
import socket
import sys
import time
from secrets import token_hex
from typing import Final

from antiphon.fleet.records.formats import encode_run, events_subject, owner_subject
from antiphon.fleet.streams import SESSIONS
from benchmarks.journal import quantiles
from benchmarks.updates import lines

CONNECT: Final = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}\r\n'
UNDER_WAY: Final = b"10164"
"""The server answers a message a moment before it forgets that it is under way, and refuses the next one of its subject: it is sent again."""
_ANSWER: Final = re.compile(rb"MSG _INBOX\.b\.(\d+) 1 \d+\r\n\{([^}]*)\}")


class BareSocket:
    """A connection to one server."""

    def __init__(self, port: int) -> None:
        self.raw = socket.create_connection(("127.0.0.1", port))
        self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.raw.sendall(CONNECT + b"SUB _INBOX.b.* 1\r\nPING\r\n")
        self._rest = b""
        while b"PONG" not in self._rest:
            self._rest += self.raw.recv(1 << 16)
        self._rest = b""

    def ask(self, subject: str, data: bytes) -> bytes:
        """Send a message and return the answer."""
        self.raw.sendall(b"PUB %b _INBOX.b.0 %d\r\n%b\r\n" % (subject.encode(), len(data), data))
        found = b""
        while True:
            found += self.raw.recv(1 << 16)
            head, end, rest = found.partition(b"\r\n")
            if end and head.startswith(b"MSG") and len(rest) >= int(head.rpartition(b" ")[2]) + 2:
                return rest[:-2]

    def answers(self) -> list[tuple[int, bool]]:
        """Read, and return the numbers of the messages that are answered, and whether each is stored."""
        *whole, self._rest = (self._rest + self.raw.recv(1 << 18)).split(b"}\r\n")
        found = []
        for each in whole:
            answer = _ANSWER.search(each + b"}")
            if answer is not None:
                assert b'"error"' not in answer[2] or UNDER_WAY in answer[2], answer[2]
                found.append((int(answer[1]), b'"error"' not in answer[2]))
        return found


def connected(servers: dict[str, int]) -> BareSocket:
    """Connect to the server that leads the stream."""
    first = BareSocket(next(iter(servers.values())))
    about = json.loads(first.ask(f"$JS.API.STREAM.INFO.{SESSIONS.name}", b""))
    leader = (about.get("cluster") or {}).get("leader", "")
    return BareSocket(servers[leader]) if leader in servers else first


def messages(link: BareSocket, subjects: int, events: int) -> list[bytes]:
    """Return the command that appends to each subject, fenced by an owner of its own."""
    data = encode_run([line.rstrip() for line in lines(["sess_" + 32 * "0"], events)])
    made = []
    for number in range(subjects):
        key = token_hex(16)
        epoch = int(json.loads(link.ask(owner_subject(key), b'{"worker":"bare"}'))["seq"])
        head = (
            f"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: {epoch}\r\n"
            f"Nats-Expected-Last-Subject-Sequence-Subject: {owner_subject(key)}\r\n\r\n"
        ).encode()
        size = len(head) + len(data)
        line = f"HPUB {events_subject(key)} _INBOX.b.{number} {len(head)} {size}\r\n".encode()
        made.append(line + head + data + b"\r\n")
    return made


def play(link: BareSocket, commands: list[bytes], seconds: float, rate: float) -> tuple[int, float, list[float]]:
    """Keep one message of each subject under way, or send them at a rate."""
    sent = [0.0] * len(commands)
    waits: list[float] = []
    began = time.perf_counter()
    end = began + seconds
    every = len(commands) / rate if rate else 0.0
    due = [(began + number / len(commands) * every, number) for number in range(len(commands))]
    free = [True] * len(commands)
    while (now := time.perf_counter()) < end or not all(free):
        out = []
        while due and due[0][0] <= now and now < end:
            _, number = heapq.heappop(due)
            sent[number], free[number] = now, False
            out.append(commands[number])
        if out:
            link.raw.sendall(b"".join(out))
        wait = max(0.0, min(due[0][0] if due and now < end else now + 1.0, now + 1.0) - now)
        if select.select([link.raw], [], [], wait)[0]:
            for number, is_stored in link.answers():
                now = time.perf_counter()
                if not is_stored:
                    link.raw.sendall(commands[number])
                    continue
                waits.append(1000 * (now - sent[number]))
                free[number] = True
                heapq.heappush(due, (max(now, sent[number] + every), number))
    return len(waits), time.perf_counter() - began, waits


def main() -> None:
    """Measure and print."""
    servers = {name: int(port) for name, _, port in (each.partition("=") for each in sys.argv[1].split(","))}
    subjects, events = int(sys.argv[2]), int(sys.argv[3])
    link = connected(servers)
    commands = messages(link, subjects, events)
    print("ready", flush=True)
    sys.stdin.readline()
    stored, seconds, waits = play(link, commands, float(sys.argv[4]), float(sys.argv[5]) if sys.argv[5:] else 0.0)
    half, most = quantiles(waits)
    print(json.dumps({"events": stored * events, "seconds": seconds, "p50": half, "p99": most}), flush=True)


if __name__ == "__main__":
    main()
