"""What only Kafka does: topics that are made again, partitions, groups, transactions."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from streamlearn.errors import PositionLost, StreamAway, StreamError
from streamlearn.records.record import Record
from streamlearn.stream import kafka_letters
from streamlearn.stream.interface import Stream
from streamlearn.stream.kafka_library import KafkaProducer, TopicPartition, errors
from streamlearn.stream.kafka_records import _decode_records
from tests.broker import Broker
from tests.stream.conftest import Opener
from tests.stream.examples import number, numbered, raised_within, read


def test_a_topic_that_is_not_there_is_not_created_by_reading(broker: Broker, new_stream: Opener) -> None:
    stream = new_stream(f"{broker.url}/not-there")
    with pytest.raises(StreamAway, match="no topic not-there") as raised:
        stream.open(None)
    assert "create it" in raised.value.hint
    with pytest.raises(StreamAway, match="no topic not-there"):
        stream.ends()
    with broker.admin() as admin:
        assert "not-there" not in admin.list_topics()
    with pytest.raises(StreamAway, match="no topic not-there"):
        new_stream(f"{broker.url}/not-there", create_topics=False).append(numbered(0, 1))
    stream.append(numbered(0, 1))
    stream.open(None)
    assert len(read(stream, 1)) == 1


@pytest.mark.parametrize("interleave", ["arrival", "fixed"])
def test_each_record_of_several_partitions_once_from_any_position(
    broker: Broker, new_stream: Opener, interleave: str
) -> None:
    url = f"{broker.url}/{broker.new_topic(partitions=3)}"
    stream = new_stream(url, interleave=interleave)
    stream.append([Record(r.value, None, r.headers) for r in numbered(0, 300)])
    begin = stream.open(None)
    assert begin.offsets == {0: 0, 1: 0, 2: 0}
    order, positions = [], [begin]
    while len(order) < 300:
        order += [number(r) for r in stream.poll(7, 1.0)]
        positions.append(stream.position())
    assert sorted(order) == list(range(300))
    assert positions[-1].offsets == {0: 100, 1: 100, 2: 100}
    again = new_stream(url, interleave=interleave)
    for position in positions[:: len(positions) // 5]:
        done = sum(position.offsets.values())
        again.open(position)
        rest = [number(r) for r in read(again, 300 - done, limit=11)]
        assert sorted(rest) == sorted(order[done:])
        if interleave == "fixed":
            assert rest == order[done:]


def test_a_fixed_order_waits_for_the_partition_whose_turn_it_is(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic(partitions=2)
    stream = new_stream(f"{broker.url}/{topic}", interleave="fixed")
    # Without a key, records go to the partitions in turn, so one appender's third record is in partition 0 again.
    stream.append([Record(b"0"), Record(b"1"), Record(b"2")])
    stream.open(None)
    assert [r.value for r in read(stream, 3, limit=2)] == [b"0", b"1", b"2"]
    assert stream.position().turn == 1
    other = new_stream(f"{broker.url}/{topic}")
    other.append([Record(b"3")])  # a new appender begins with partition 0: not its turn
    assert stream.poll(10, 0.5) == []
    waiting = stream.position()
    assert (waiting.offsets, waiting.turn) == ({0: 2, 1: 1}, 1)
    other.append([Record(b"4")])
    assert [r.value for r in read(stream, 2)] == [b"4", b"3"]
    stream.open(waiting)
    assert [r.value for r in read(stream, 2)] == [b"4", b"3"]


def test_partitions_added_while_it_runs_are_read(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic()
    stream = new_stream(f"{broker.url}/{topic}")
    stream.append(numbered(0, 5))
    stream.open(None)
    read(stream, 5)
    with broker.admin() as admin:
        admin.create_partitions({topic: 2})
    raised_within(10, StopIteration, lambda: _stop_if(len(stream.position().offsets) == 2, stream))
    new_stream(f"{broker.url}/{topic}").append([Record(b"value 5"), Record(b"value 6")])
    assert sorted(number(r) for r in read(stream, 2)) == [5, 6]


def _stop_if(done: bool, stream: Stream) -> None:
    if done:
        raise StopIteration
    assert stream.poll(10, 0.2) == []


def test_a_topic_deleted_and_created_again_while_it_is_followed(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic()
    stream, appender = new_stream(f"{broker.url}/{topic}"), new_stream(f"{broker.url}/{topic}")
    appender.append(numbered(0, 10))
    stream.open(None)
    read(stream, 10)
    broker.delete(topic)
    began = time.monotonic()
    raised_within(10, StreamAway, lambda: stream.poll(10, 0.2))
    broker.create(topic)
    # More than the old one had: the old offset exists again and must not be taken for the old record's.
    new_stream(f"{broker.url}/{topic}").append(numbered(100, 150))
    lost = _lost_within(10, stream)
    assert time.monotonic() - began < 20
    for part in (f"topic {topic}", "partition 0", "wanted offset 10", "available 0 to 50"):
        assert part in str(lost)
    assert "--from-earliest" in lost.hint
    old = stream.position()
    other = new_stream(f"{broker.url}/{topic}")
    with pytest.raises(PositionLost, match="deleted and created again"):
        other.open(old)
    other.open(old, allow_gap=True)
    assert other.position().stream_id != old.stream_id
    assert [number(r) for r in read(other, 50)] == list(range(100, 150))


def _lost_within(seconds: float, stream: Stream) -> PositionLost:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            assert stream.poll(10, 0.2) == [], "took the new topic's record for the old one's"
        except StreamAway:
            time.sleep(0.1)
        except PositionLost as lost:
            return lost
    raise AssertionError("not noticed")


def test_records_deleted_before_they_were_read(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic()
    stream = new_stream(f"{broker.url}/{topic}")
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 4)
    behind = stream.position()
    read(stream, 6)
    stream.append(numbered(10, 20))
    with broker.admin() as admin:
        admin.delete_records({TopicPartition(topic, 0): 15})
    late = new_stream(f"{broker.url}/{topic}")
    with pytest.raises(PositionLost, match="partition 0: wanted offset 4, available 15 to 20"):
        late.open(behind)
    # A running one that is overtaken, without what it had fetched ahead.
    stream._reader.go_to({0: 3})  # type: ignore[attr-defined]
    lost = raised_within(10, PositionLost, lambda: stream.poll(10, 0.5))
    assert "wanted offset 3, available 15 to 20" in str(lost)
    assert late.open(behind, allow_gap=True).offsets == {0: 15}


def test_commits_are_for_display_only(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic()
    stream = new_stream(f"{broker.url}/{topic}", group="learners")
    stream.append(numbered(0, 10))
    begin = stream.open(None)
    read(stream, 6)
    shown: list[int] = []
    deadline = time.monotonic() + 20
    while shown != [6]:
        # The broker's first group makes it create its own topic for them, which takes a moment.
        assert time.monotonic() < deadline
        stream.passed(stream.position(), begin)
        with broker.admin() as admin, suppress(errors.KafkaError):
            (offsets,) = admin.list_group_offsets(["learners"]).values()
            shown = [offset.offset for tp, offset in offsets.items() if tp.topic == topic]
    assert new_stream(f"{broker.url}/{topic}", group="learners").open(None).offsets == {0: 0}


def test_the_search_for_dead_letters_ends_where_they_are_older_than_the_run(
    broker: Broker, new_stream: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_letters, "CHUNK", 10)
    url = f"{broker.url}/{broker.new_topic()}"
    stream = new_stream(url)
    stream.append(numbered(0, 100))
    stream.open(None)
    for record in read(stream, 90, limit=1):
        stream.send_dead_letter(record, "shape", "wrong")
    end = stream.position()
    late = new_stream(url)
    late.open(end)
    read_chunks = []
    whole = kafka_letters._Reader.read
    monkeypatch.setattr(
        kafka_letters._Reader, "read", lambda self, first, end: read_chunks.append(first) or whole(self, first, end)
    )
    (record,) = read(late, 1)
    assert late.send_dead_letter(record, "shape", "wrong") is True
    assert read_chunks == [80]
    assert len(late.dead_letters()) == 91


def test_a_dead_letter_larger_than_the_topic_takes_otherwise(broker: Broker, new_stream: Opener) -> None:
    stream = new_stream(f"{broker.url}/{broker.new_topic()}")
    largest = Record(bytes(1_048_588 - 100))
    stream.append([largest])
    stream.open(None)
    (record,) = read(stream, 1)
    assert stream.send_dead_letter(record, "size", "x" * 500) is True
    assert stream.dead_letters(1)[0].value == largest.value
    with pytest.raises(StreamError, match="larger than the broker takes"):
        stream.append([Record(bytes(2_000_000))])
    stream.append(numbered(0, 1))


def test_a_header_name_that_is_not_utf8_does_not_stop_the_stream() -> None:
    # length, attributes, time, offset, no key, value "v", one header: name "\xff", value "x"
    body = bytes([0, 0, 0, 1, 2]) + b"v" + bytes([2, 2]) + b"\xff" + bytes([2]) + b"x"
    (record,) = _decode_records(bytes([2 * len(body)]) + body, 0, 1, 7, 1000, None, 3)
    assert record == Record(b"v", None, (("�", b"x"),), 1000, 3, 7)
    for cut in range(len(body)):
        with pytest.raises((ValueError, IndexError)):
            _decode_records(bytes([2 * len(body)]) + body[:cut], 0, 1, 7, 1000, None, 3)


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_records_of_the_librarys_own_producer(broker: Broker, new_stream: Opener, codec: str | None) -> None:
    topic = broker.new_topic()
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{broker.port}", compression_type=codec, linger_ms=20)
    for i in range(300):
        headers = [("label", b"boot"), ("id", b"%d" % i), ("long", b"l" * (i % 3) * 100)][: 1 + i % 3]
        producer.send(topic, None if i % 7 == 1 else b"%d" % i * (i % 100), b"k" * i or None, headers=headers)
    producer.close()
    stream = new_stream(f"{broker.url}/{topic}")
    stream.open(None)
    for i, record in enumerate(read(stream, 300, limit=13)):
        assert record.value == (b"" if i % 7 == 1 else b"%d" % i * (i % 100))
        assert record.key == (b"k" * i or None)
        assert record.headers == (("label", b"boot"), ("id", b"%d" % i), ("long", b"l" * (i % 3) * 100))[: 1 + i % 3]


def test_aborted_transactions_are_left_out(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic()
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{broker.port}", transactional_id=f"t-{topic}")
    producer.init_transactions()
    for i in range(4):
        producer.begin_transaction()
        producer.send(topic, b"value %d" % i)
        producer.flush()
        producer.commit_transaction() if i % 2 else producer.abort_transaction()
    producer.close()
    stream = new_stream(f"{broker.url}/{topic}")
    stream.open(None)
    assert [number(r) for r in read(stream, 2)] == [1, 3]
    assert stream.poll(10, 0.3) == []
