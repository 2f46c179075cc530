"""Brokers that are not there, go, hang and come back."""

from __future__ import annotations

import logging
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from streamlearn.errors import StreamAway
from streamlearn.records.record import Position
from tests.broker import Broker, _free_ports
from tests.stream.conftest import Opener
from tests.stream.examples import number, numbered, raised_within, read


def test_a_broker_that_is_not_there_is_told_at_once(new_stream: Opener, caplog: pytest.LogCaptureFixture) -> None:
    (port,) = _free_ports(1)
    stream = new_stream(f"kafka://127.0.0.1:{port}/digits")
    for call in (
        lambda: stream.open(None),
        stream.ends,
        lambda: stream.append(numbered(0, 1)),
        lambda: stream.dead_letters(1),
        lambda: stream.send_dead_letter(numbered(0, 1)[0], "shape", "wrong"),
    ):
        began = time.monotonic()
        with pytest.raises(StreamAway, match=r"no broker answers.*Connection refused"):
            call()
        assert time.monotonic() - began < 1
    stream.passed(Position({0: 2}, "some"), Position({0: 1}, "some"))
    assert [record for record in caplog.records if record.name.startswith("kafka")] == []


def test_a_server_that_is_no_broker(new_stream: Opener, own_port: int) -> None:
    began = time.monotonic()
    with pytest.raises(StreamAway, match="does not answer"):
        new_stream(f"kafka://127.0.0.1:{own_port}/digits", connect_timeout=1).open(None)
    assert time.monotonic() - began < 5


@pytest.fixture
def own_port() -> Iterator[int]:
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("kill", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_broker_that_goes_and_comes_back(
    own_broker: Broker, new_stream: Opener, caplog: pytest.LogCaptureFixture, kill: bool
) -> None:
    caplog.set_level(logging.DEBUG, logger="streamlearn")
    topic = own_broker.new_topic()
    stream, appender = new_stream(f"{own_broker.url}/{topic}"), new_stream(f"{own_broker.url}/{topic}")
    appender.append(numbered(0, 100))
    begin = stream.open(None)
    records = read(stream, 60)
    assert stream.send_dead_letter(records[5], "shape", "wrong") is True
    own_broker.stop(kill=kill)
    got = [number(r) for r in records]

    def follow() -> None:
        got.extend(number(r) for r in stream.poll(10, 0.5))

    raised_within(10, StreamAway, follow)
    with pytest.raises(StreamAway):
        appender.append(numbered(1000, 1001))
    busy = time.process_time()
    for _ in range(4):
        with pytest.raises(StreamAway):
            stream.poll(10, 0.5)
    assert time.process_time() - busy < 0.5
    with pytest.raises(StreamAway):
        stream.send_dead_letter(records[6], "shape", "wrong")
    stream.passed(begin, begin)
    own_broker.start()
    returned = time.monotonic()
    appender.append(numbered(100, 120))
    while len(got) < 120:
        assert time.monotonic() - returned < 15
        try:
            follow()
        except StreamAway:
            time.sleep(0.1)
    assert got == list(range(120))
    assert stream.send_dead_letter(records[5], "shape", "wrong") is False
    assert stream.send_dead_letter(records[6], "shape", "wrong") is True
    assert len(stream.dead_letters()) == 2
    assert [record for record in caplog.records if record.name.startswith("kafka")] == []


@pytest.mark.long
def test_a_broker_that_hangs_and_goes_on(own_broker: Broker, new_stream: Opener) -> None:
    """It still takes connections, as a stopped process does, and says nothing."""
    stream = new_stream(f"{own_broker.url}/{own_broker.new_topic()}")
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 10)
    own_broker.signal(signal.SIGSTOP)
    try:
        raised_within(5, StreamAway, lambda: stream.poll(10, 0.5))
        with pytest.raises(StreamAway):
            stream.poll(10, 0.5)
    finally:
        own_broker.signal(signal.SIGCONT)
    new_stream(stream.url).append(numbered(10, 20))
    assert [number(r) for r in read(stream, 10, seconds=15)] == list(range(10, 20))
