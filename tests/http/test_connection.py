"""What a client may cost: sizes, times, numbers; and that whoever is refused can read why."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlearn.learner import Learner
from tests.http.client import Running

LIMITS = {"max_body_bytes": 20_000, "request_seconds": 0.6, "idle_seconds": 1.0, "max_connections": 8}


@pytest.fixture
def strict(tmp_path: Path, learner: Learner) -> Iterator[Running]:
    with Running(tmp_path / "state", learner, http=LIMITS) as server:
        yield server


def converse(server: Running, *pieces: bytes, pause: float = 0.0, end: bool = False) -> bytes:
    """Send the pieces and read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except OSError:
                break  # it has said no already
            time.sleep(pause)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def refusal(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["code"]


CLOSE = b"Connection: close\r\n"


def test_a_request_in_single_bytes(strict: Running) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n"
    pieces = [request[place : place + 1] for place in range(len(request))]
    assert b'{"status": "ok"}' in converse(strict, *pieces)


def test_several_requests_in_one_piece_are_answered_in_order(strict: Running) -> None:
    paths = [b"/healthz", b"/v2", b"/nothing", b"/readyz"] * 10
    requests = [b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths]
    requests[-1] = requests[-1].replace(b"\r\n\r\n", b"\r\n" + CLOSE + b"\r\n")
    answer = converse(strict, b"".join(requests))
    statuses = [int(part.split()[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 200, 404, 200] * 10


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nno colon here\r\n\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /v1/predict HTTP/1.1\r\nContent-Length: 20001\r\n\r\n", 413),
        (b"POST /v1/predict HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: 1\r\n" % place for place in range(500)) + b"\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS where none is spoken
        (b"\0" * 100, 400),
    ],
)
def test_what_is_not_http_or_too_large_is_refused(strict: Running, sent: bytes, status: int) -> None:
    assert refusal(converse(strict, sent))[0] == status
    assert strict.ask("GET", "/healthz").status == 200


def test_a_chunked_body_over_the_limit(strict: Running) -> None:
    chunk = b"1000\r\n" + b"a" * 0x1000 + b"\r\n"
    head = b"POST /v1/predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert refusal(converse(strict, head, *[chunk] * 50)) == (413, "body-too-large")


def test_an_endless_header_is_cut(strict: Running) -> None:
    begun = time.monotonic()
    answer = converse(strict, b"GET / HTTP/1.1\r\n", *[b"X-More: " + b"a" * 1000 + b"\r\n"] * 2000)
    assert refusal(answer)[0] == 431
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "start",
    [b"GET /", b"GET /healthz HTTP/1.1\r\nHost:", b"POST /v1/predict HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc"],
)
def test_a_slow_sender_is_cut(strict: Running, start: bytes) -> None:
    begun = time.monotonic()
    assert refusal(converse(strict, start, *[b"x"] * 60, pause=0.05)) == (408, "too-slow")
    assert time.monotonic() - begun < 8


def test_half_a_request_and_goodbye(strict: Running) -> None:
    assert converse(strict, b"POST /v1/predict HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc", end=True) == b""
    assert strict.ask("GET", "/healthz").status == 200


def test_who_says_nothing_is_closed(strict: Running) -> None:
    assert converse(strict) == b""


def test_a_client_may_close_its_side_and_still_read(strict: Running) -> None:
    assert b'{"status": "ok"}' in converse(strict, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", end=True)


def test_one_connection_too_many(strict: Running) -> None:
    opened = [socket.create_connection(("127.0.0.1", strict.port), timeout=10) for _ in range(8)]
    try:
        time.sleep(0.2)
        answer = converse(strict)
        assert refusal(answer) == (503, "too-many-connections")
        assert b"retry-after: 1" in answer
    finally:
        for connection in opened:
            connection.close()
    time.sleep(0.2)
    assert strict.ask("GET", "/healthz").status == 200


def test_expect_100_continue(strict: Running) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/labels HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" + CLOSE + b"\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{}")
        assert b"422" in read_all(connection)


def test_old_http_is_answered_and_closed(strict: Running) -> None:
    assert b'{"status": "ok"}' in converse(strict, b"GET /healthz HTTP/1.0\r\n\r\n")


def test_head_and_wrong_methods(strict: Running) -> None:
    head = strict.ask("HEAD", "/healthz")
    assert (head.status, head.body) == (200, b"")
    wrong = strict.ask("POST", "/healthz")
    assert (wrong.status, wrong.code, wrong.headers["allow"]) == (405, "wrong-method", "GET, HEAD")
    assert strict.ask("GET", "/%ff").code == "bad-path"
    assert strict.ask("GET", "/nowhere").code == "unknown-path"


def test_an_upgrade_is_not_offered(strict: Running) -> None:
    answer = converse(strict, b"GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert b"200 OK" in answer
