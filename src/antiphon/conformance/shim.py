"""The program that a client starts as its agent: carries bytes between its stdio and the check, and reports what became of it.

Run as `python -I -S shim.py SOCKET`, with nothing but the standard library, because a client may have a short timeout. It opens
two connections: one carries stdio as it is, the other one line of JSON for each event: how it was started, the end of its input,
signals. The check sends on it what an agent may do besides sending messages: fill stderr, outlive its input, exit.
"""

import json
import os
import signal
import socket
import sys
import threading

SIZE = 65536


class Shim:
    """The descriptors, and whether the end of input is the end of all.

    A thread for each direction, so that neither waits for the other: a client may write without reading, and the check too.
    """

    def __init__(self, path: str) -> None:
        self.control = _connected(path, b"control\n")
        self.rest = b""
        self.report({"pid": os.getpid(), "cwd": os.getcwd(), "argv": sys.argv[2:]})
        self.data = _connected(path, f"data {os.getpid()}\n".encode())
        self.outlives_input = False

    def report(self, fact: "dict[str, object]") -> None:
        try:
            self.control.sendall(json.dumps(fact).encode() + b"\n")
        except OSError:
            os._exit(1)  # the check is over

    def run(self) -> None:
        for carry in (self.carry_in, self.carry_out):
            threading.Thread(target=carry, daemon=True).start()
        while True:
            self.run_commands()

    def carry_in(self) -> None:
        while chunk := os.read(0, SIZE):
            try:
                self.data.sendall(chunk)
            except OSError:
                os._exit(0)
        self.report({"event": "eof"})
        if self.outlives_input:
            self.data.shutdown(socket.SHUT_WR)
        else:
            os._exit(0)

    def carry_out(self) -> None:
        while chunk := self.data.recv(SIZE):
            try:
                _write(1, chunk)
            except OSError:
                self.report({"event": "stdout closed"})
                return
        os._exit(0)

    def run_commands(self) -> None:
        chunk = self.control.recv(SIZE)
        if not chunk:
            os._exit(0)
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.decode().partition(" ")
            if name == "exit":
                os._exit(int(value))
            elif name == "outlive":
                self.outlives_input = True
                self.report({"event": "outlives input"})
            elif name == "flood":
                self.flood(int(value))

    def flood(self, size: int) -> None:
        line = b"agent: " + b"something happened " * 4 + b"\n"
        try:
            for _ in range(size // len(line)):
                _write(2, line)
        except OSError:
            self.report({"event": "stderr closed"})
        self.report({"event": "flooded"})


def _connected(path: str, hello: bytes) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.connect(path)
    found.sendall(hello)
    return found


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def main() -> None:
    """Carry until one end is gone."""
    pump = Shim(sys.argv[1])

    def leave(number: int, _: object) -> None:
        pump.report({"event": signal.Signals(number).name})
        os._exit(0)

    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, leave)
    pump.run()


if __name__ == "__main__":
    main()
