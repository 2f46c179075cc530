"""Clients that ask as fast as they are told, and keep how long each answer took."""

from __future__ import annotations

import re
import selectors
import socket
import threading
import time

import numpy as np

_LENGTH = re.compile(rb"content-length: (\d+)")


def request(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: bench", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Asker:
    """One connection, one question at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def send(self, question: bytes) -> None:
        self.socket.sendall(question)

    def receive(self) -> bool:
        """Read what is there; True when the answer is whole. Raises for any answer but 200."""
        piece = self.socket.recv(262_144)
        if not piece:
            raise ConnectionError("the server closed the connection")
        self._received += piece
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or length is None or len(body) < int(length[1]):
            return False
        if b" 200 " not in head[:16]:
            raise ConnectionError(f"the server answered {head[:40]!r}")
        self._received = b""
        return True

    def ask(self, question: bytes) -> float:
        """Seconds until the answer was there."""
        begun = time.perf_counter()
        self.send(question)
        while not self.receive():
            pass
        return time.perf_counter() - begun


def latencies(port: int, question: bytes, seconds: float, pause: float = 0.002) -> list[float]:
    """One connection that asks, waits for the answer, and asks again after a short pause."""
    asker = Asker(port)
    for _ in range(20):
        asker.ask(question)
    end, found = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        found.append(asker.ask(question))
        time.sleep(pause)
    asker.socket.close()
    return found


def p99(found: list[float]) -> float:
    return float(np.quantile(found, 0.99))


def answers_per_second(port: int, question: bytes, connections: int, seconds: float) -> float:
    """All connections ask again as soon as they are answered."""
    waiting = selectors.DefaultSelector()
    for _ in range(connections):
        asker = Asker(port)
        waiting.register(asker.socket, selectors.EVENT_READ, asker)
        asker.send(question)
    answered, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for key, _ in waiting.select(1):
            if key.data.receive():
                answered += 1
                key.data.send(question)
    rate = answered / (time.perf_counter() - begun)
    for key in list(waiting.get_map().values()):
        key.data.socket.close()
    return rate


class SteadyClient:
    """Asks so many times a second, for as long as the block lasts."""

    def __init__(self, port: int, question: bytes, rate: float) -> None:
        self._asker, self._question, self._pause = Asker(port), question, 1 / rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self._asker.ask(self._question)

    def __enter__(self) -> SteadyClient:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._asker.socket.close()
