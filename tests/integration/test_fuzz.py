"""Whatever is sent, the server answers below 500 (or closes), shows no traceback, and goes on serving."""

from __future__ import annotations

import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import schemathesis

from streamlearn.serving.v2_tensors import LENGTH_HEADER
from tests.http.client import OCTETS
from tests.integration.daemon import SAMPLE, Daemon, feed

PICTURE = SAMPLE.test[0].tobytes()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("fuzzed")
    feed(f"log:{folder / 'stream.log'}", 0, 500)
    with Daemon(folder / "state") as daemon:
        daemon.ready()
        daemon.has_learned(500)
        yield daemon
        assert daemon.ask("POST", "/v1/admin/resume", headers=daemon.token).status == 200
        assert daemon.ask("POST", "/v1/predict", PICTURE, OCTETS).status == 200
        assert daemon.stop() == 0
        assert "a request failed" not in daemon.output
        assert "died" not in daemon.output


# ---------------------------------------------------------------------- by the description


def fuzz_by_description(daemon: Daemon, examples: int) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    schema = schemathesis.openapi.from_dict(daemon.ask("GET", "/openapi.json").json)
    schema.config.update(base_url=daemon.http_url, headers=daemon.token)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    answers: Counter[int] = Counter()
    operations = [
        found.ok()
        for found in schema.get_all_operations()
        if found.ok().path != "/v1/events"  # never ends: has a test of its own
    ]

    def fuzz(operation: Any, seed: int) -> None:
        @hypothesis.seed(seed)
        @hypothesis.given(case=operation.as_strategy())
        @hypothesis.settings(
            max_examples=max(examples // len(operations), 1),
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate],
        )
        def ask(case: schemathesis.Case) -> None:
            response = case.call(timeout=30)
            answers[response.status_code] += 1
            case.validate_response(response, checks=checks)

        ask()

    seed = 0
    while answers.total() < examples:  # some operations leave little to make up
        seed += 1
        for operation in operations:
            fuzz(operation, seed)
    assert answers[200] > 0
    assert answers[422] > 0


def test_requests_made_up_from_the_description(daemon: Daemon) -> None:
    fuzz_by_description(daemon, 300)


@pytest.mark.long
def test_many_requests_made_up_from_the_description(daemon: Daemon) -> None:
    fuzz_by_description(daemon, 10_000)


# ---------------------------------------------------------------------- by the byte


def requests() -> list[bytes]:
    """Whole ones, to be spoilt."""

    def post(path: str, body: bytes, *headers: str) -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", ""]
        return "\r\n".join(lines).encode() + body

    tensor = b'{"inputs":[{"name":"input","datatype":"UINT8","shape":[1,28,28],"parameters":{"binary_data_size":784}}]}'
    octets = [f"{name}: {value}" for name, value in OCTETS.items()]
    chunked = b"POST /v1/predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX-Shape: 28,28\r\n\r\n310\r\n" + PICTURE
    return [
        post("/v1/predict", PICTURE, *octets),
        post("/v1/predict?top_k=2", PICTURE, *octets, "X-Id: fuzz"),
        post("/v1/predict", b'{"instances": [[[1, 2], [3, 4]]], "ids": ["a"]}', "Content-Type: application/json"),
        post("/v2/models/streamlearn/infer", tensor + PICTURE, f"{LENGTH_HEADER.decode()}: {len(tensor)}"),
        post("/v1/labels", b'{"id": "fuzz", "label": "Bag"}', "Content-Type: application/json"),
        post("/v1/examples", PICTURE, *octets, "X-Label: Bag"),
        chunked + b"\r\n0\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/buffer?limit=3 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"DELETE /v1/buffer?label=x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /openapi.json HTTP/1.0\r\n\r\n",
    ]


def spoilt(request: bytes, rng: random.Random) -> list[bytes]:
    """In pieces, as they are sent."""
    data = bytearray(request)
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        place = rng.randrange(len(data))
        match rng.randrange(8):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + rng.choice([1, 3, 50])]
            case 2:
                data[place:place] = rng.randbytes(rng.choice([1, 4, 300]))
            case 3:
                data[place:place] = b"\r\n"
            case 4:
                length = b"Content-Length: %d" % rng.choice([0, 1, 783, 785, 10**7, 10**30, 2**63])
                data = bytearray(re.sub(rb"Content-Length: \d+", length, bytes(data)))
            case 5:
                data[0:0] = data[:place]
            case 6:
                head = data.find(b"\r\n") + 2
                data[head:head] = b"X-%d: " % place + b"y" * rng.choice([1, 1000, 40_000]) + b"\r\n"
            case 7:
                del data[place:]
        if not data:
            return [b""]
    cut = rng.randrange(len(data))
    return [bytes(data)] if rng.random() < 0.7 else [bytes(data[:cut]), bytes(data[cut:])]


def send(port: int, pieces: list[bytes], rng: random.Random) -> bytes:
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, suppress(ConnectionError):
        for piece in pieces:
            connection.sendall(piece)
        if rng.random() < 0.1:
            return b""  # gone without a word
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            received += piece
    return received


def fuzz_by_byte(daemon: Daemon, count: int) -> None:
    port = int(daemon.http_url.rpartition(":")[2])
    statuses: Counter[int] = Counter()
    bad: list[tuple[list[bytes], bytes]] = []
    whole = requests()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(count // 8):
            pieces = spoilt(rng.choice(whole), rng)
            answer = send(port, pieces, rng)
            found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]
            statuses.update(found)
            if any(status >= 500 for status in found) or b"Traceback" in answer or (answer and not found):
                bad.append((pieces, answer))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad, bad[:3]
    assert {200, 400, 422} <= statuses.keys(), statuses
    assert sum(statuses.values()) > count * 0.4, statuses


def test_spoilt_requests(daemon: Daemon) -> None:
    fuzz_by_byte(daemon, 1600)


@pytest.mark.long
def test_many_spoilt_requests(daemon: Daemon) -> None:
    fuzz_by_byte(daemon, 10_000)


def test_random_bytes(daemon: Daemon) -> None:
    port = int(daemon.http_url.rpartition(":")[2])
    rng = random.Random(1)
    for _ in range(200):
        answer = send(port, [rng.randbytes(rng.choice([1, 10, 500, 5000]))], rng)
        assert not re.search(rb"HTTP/1\.1 5\d\d", answer)
