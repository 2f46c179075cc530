"""What every kind of stream must do, run over each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamlearn.errors import PositionLost
from streamlearn.records.record import Position, Record
from streamlearn.stream.interface import Stream
from streamlearn.stream.url import open_stream
from tests.stream.examples import number, numbered, read

Opener = Callable[[], Stream]


@pytest.fixture(params=["log", "kafka"])
def new_stream(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Each call gives another Stream object on the same stream, as another process would have."""
    if request.param == "log":
        url = f"log:{tmp_path / 'examples.log'}"
    else:
        broker = request.getfixturevalue("broker")
        url = f"{broker.url}/{broker.new_topic()}"
    opened: list[Stream] = []

    def make() -> Stream:
        opened.append(open_stream(url))
        return opened[-1]

    yield make
    for stream in opened:
        stream.close()
    assert [thread.name for thread in threading.enumerate() if "kafka" in thread.name.lower()] == []


def test_records_come_back_as_they_were_and_in_order(new_stream: Opener) -> None:
    stream = new_stream()
    sent = [
        Record(b"", None, ()),
        Record(bytes(range(256)) * 40, b"", (("name", b""), ("name", b"twice"), ("ünï", b"\x00\x01\xff"))),
        Record(b"x" * 900_000, b"\0key", (("a\x01b", b"c"),)),
        *numbered(0, 500),
    ]
    assert stream.open(None).offsets == {0: 0}
    stream.append(sent)
    got = read(stream, len(sent))
    assert [(r.value, r.key, r.headers) for r in got] == [(r.value, r.key, r.headers) for r in sent]
    assert [r.offset for r in got] == list(range(len(sent)))
    assert all(r.partition == 0 for r in got)
    assert [r.timestamp for r in got[3:]] == [r.timestamp for r in sent[3:]]
    assert abs(got[0].timestamp / 1000 - time.time()) < 60
    assert stream.ends() == {0: len(sent)}


def test_the_position_is_behind_the_last_record_returned_at_any_boundary(new_stream: Opener) -> None:
    first = new_stream()
    first.append(numbered(0, 100))
    first.open(None)
    positions = [first.position()]
    for _ in range(100):
        (record,) = read(first, 1, limit=1)
        positions.append(first.position())
        assert positions[-1].offsets == {0: record.offset + 1}
    again = new_stream()
    for done in (0, 1, 37, 99):
        assert again.open(positions[done]) == positions[done]
        assert [number(r) for r in read(again, 100 - done, limit=7)] == list(range(done, 100))
    again.open(positions[100])
    assert again.poll(10, 0.0) == []


def test_an_empty_stream_has_a_position_too(new_stream: Opener) -> None:
    stream = new_stream()
    begin = stream.open(None)
    assert begin.stream_id
    assert stream.poll(10, 0.0) == []
    assert stream.position() == begin
    assert new_stream().open(begin) == begin
    assert stream.dead_letters() == []


def test_poll_waits_no_longer_than_asked_and_wakes_for_a_record(new_stream: Opener) -> None:
    stream, appender = new_stream(), new_stream()
    stream.open(None)
    appender.append(numbered(0, 1))
    read(stream, 1)
    began = time.monotonic()
    assert stream.poll(10, 0.3) == []
    assert 0.25 < time.monotonic() - began < 1.0
    delays = []
    for i in range(5):
        arrived: list[float] = []
        thread = threading.Thread(
            target=lambda i=i, arrived=arrived: (
                time.sleep(0.05),
                appender.append(numbered(i, i + 1)),
                arrived.append(time.monotonic()),
            )
        )
        thread.start()
        records = stream.poll(10, 5.0)
        delays.append(time.monotonic())
        thread.join()
        assert len(records) == 1
        delays[-1] -= arrived[0]
    # Against the moment the appender knew: may be negative, must not be a polling interval.
    assert sorted(delays)[2] < 0.05


def test_appended_is_there_for_whoever_comes_next(new_stream: Opener) -> None:
    stream = new_stream()
    for i in range(5):
        stream.append(numbered(10 * i, 10 * i + 10))
        assert new_stream().ends() == {0: 10 * i + 10}
    stream.append([])
    assert stream.ends() == {0: 50}


def test_a_dead_letter_keeps_the_record_and_says_why(new_stream: Opener) -> None:
    stream = new_stream()
    stream.append([Record(b"\xff\0bytes", b"key", (("label", b"\xc3"),))])
    stream.open(None)
    (record,) = read(stream, 1)
    assert stream.send_dead_letter(record, "label", "the label is not UTF-8: ü") is True
    (letter,) = stream.dead_letters()
    assert (letter.value, letter.key) == (record.value, record.key)
    assert letter.headers[:1] == record.headers
    headers = dict(letter.headers)
    assert headers["streamlearn.error.reason"] == b"label"
    assert headers["streamlearn.error.message"] == "the label is not UTF-8: ü".encode()
    assert headers["streamlearn.error.partition"] == b"0"
    assert headers["streamlearn.error.offset"] == b"0"
    assert headers["streamlearn.error.topic"].decode() in stream.url


def test_a_dead_letter_is_written_once_whatever_crashed_in_between(new_stream: Opener) -> None:
    stream = new_stream()
    stream.append(numbered(0, 60))
    begin = stream.open(None)
    records = read(stream, 40)
    middle = stream.position()
    records += read(stream, 20)
    for record in records[::5]:
        assert stream.send_dead_letter(record, "shape", "wrong") is True
        assert stream.send_dead_letter(record, "shape", "wrong") is False
    # The same again from the beginning, as after a crash before the first checkpoint; then from a later checkpoint;
    # then from the beginning once more, as after a rollback; with letters for other records in between.
    for position, expected_new in ((begin, [3]), (middle, [43]), (begin, [4]), (middle, [44, 59])):
        other = new_stream()
        other.open(position)
        for record in records:
            if record.offset >= position.offsets[0] and (record.offset % 5 == 0 or record.offset in expected_new):
                assert other.send_dead_letter(record, "shape", "wrong") is (record.offset in expected_new)
    offsets = [int(dict(letter.headers)["streamlearn.error.offset"]) for letter in stream.dead_letters()]
    assert offsets == [*range(0, 60, 5), 3, 43, 4, 44, 59]
    assert [letter.offset for letter in stream.dead_letters(3)] == [14, 15, 16]
    assert stream.dead_letters(0) == []


def test_passed_changes_nothing_that_is_read(new_stream: Opener) -> None:
    stream = new_stream()
    stream.append(numbered(0, 20))
    begin = stream.open(None)
    read(stream, 10)
    stream.passed(stream.position(), begin)
    stream.passed(stream.position(), stream.position())
    assert [number(r) for r in read(stream, 10)] == list(range(10, 20))
    other = new_stream()
    assert other.open(begin) == begin
    assert other.open(None) == begin


def test_a_dead_letter_is_known_as_long_as_a_checkpoint_before_it_is_kept(new_stream: Opener) -> None:
    stream = new_stream()
    stream.append(numbered(0, 30))
    stream.open(None)
    records = read(stream, 10)
    oldest = stream.position()
    records += read(stream, 10)
    assert stream.send_dead_letter(records[15], "shape", "wrong") is True
    # The second oldest is from before the topic or log was made anew: its offsets mean other records.
    for before in (oldest, Position({0: 1000}, "another")):
        stream.passed(stream.position(), before)
        assert stream.send_dead_letter(records[15], "shape", "wrong") is False
        again = new_stream()
        again.open(stream.position())
        again.passed(stream.position(), before)
        again.open(oldest)
        assert again.send_dead_letter(read(again, 6)[-1], "shape", "wrong") is False
    assert len(stream.dead_letters()) == 1


@pytest.mark.parametrize("wanted", [1000, -1])
def test_a_position_that_is_not_there_is_lost(new_stream: Opener, wanted: int) -> None:
    stream = new_stream()
    stream.append(numbered(0, 10))
    begin = stream.open(None)
    lost = Position({0: wanted}, begin.stream_id)
    with pytest.raises(
        PositionLost,
        match=rf"wanted offset {wanted}\b.*available 0 to 10|wanted offset {wanted}, available are 0 to 10",
    ) as raised:
        stream.open(lost)
    assert "--from-earliest" in raised.value.hint
    assert stream.open(lost, allow_gap=True) == begin
    assert len(read(stream, 10)) == 10


def test_a_position_of_another_stream_is_lost(new_stream: Opener) -> None:
    stream = new_stream()
    stream.append(numbered(0, 10))
    begin = stream.open(None)
    other = Position({0: 5}, "another")
    with pytest.raises(PositionLost, match="wanted offset 5") as raised:
        stream.open(other)
    assert "--from-earliest" in raised.value.hint
    assert stream.open(other, allow_gap=True) == begin


def test_closing_twice_and_using_it_afterwards(new_stream: Opener) -> None:
    stream = new_stream()
    stream.append(numbered(0, 2))
    begin = stream.open(None)
    stream.close()
    stream.close()
    stream.open(begin)
    assert len(read(stream, 2)) == 2
