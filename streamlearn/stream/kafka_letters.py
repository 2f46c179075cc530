"""Dead letters on Kafka: one topic beside the stream's, and each refused record in it once.

A daemon that dies after it sent a letter reads the record again and would send it again. So, before the first letter
of a run, the end of the dead-letter topic is read for letters of records that this run may meet again.

How far back? Every letter carries `read-to`: how far the stream had been read when it was sent, in this run or any
run before. So once a letter says "read to" no further than where this run began, all letters before it are about
records before that, too, and the search ends. It costs what was sent since the checkpoint, not what the topic holds.
Once checkpoints are made, the oldest that is kept takes the place of the beginning: a daemon may go back to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from streamlearn.records.record import Position, Record
from streamlearn.stream.dead_letters import PREFIX, error_headers
from streamlearn.stream.kafka_client import KafkaClients
from streamlearn.stream.kafka_library import KafkaConsumer, TopicPartition, errors
from streamlearn.stream.kafka_records import decode_fast

READ_TO = PREFIX + "read-to"
CHUNK = 1000


class KafkaLetters:
    """Letters live in partition 0 only: their order is what ends the search."""

    def __init__(self, clients: KafkaClients, topic: str, request_timeout: float) -> None:
        self._clients = clients
        self._source = topic
        self.topic = f"{topic}.dead-letters"
        self._partition = TopicPartition(self.topic, 0)
        self._timeout = request_timeout
        self._begin = Position()
        self._sent: set[tuple[int, int]] | None = None  # None: not looked up yet
        self._read_to: dict[int, int] = {}

    def begin(self, position: Position) -> None:
        """A run begins at this position: nothing before it will be refused again."""
        self._begin = position
        self._sent = None

    def passed(self, oldest: Position) -> None:
        """Nobody goes back behind the oldest checkpoint: letters of records before it need not be known any more."""
        self._begin = oldest
        if self._sent is not None:
            self._sent = {(p, offset) for p, offset in self._sent if offset >= oldest.offsets.get(p, 0)}

    def send(
        self, record: Record, reason: str, message: str, read: Position, write: Callable[[TopicPartition, Record], None]
    ) -> bool:
        if self._sent is None:
            self._look_up()
        assert self._sent is not None
        place = (record.partition, record.offset)
        if place in self._sent:
            return False
        for partition, offset in read.offsets.items():
            self._read_to[partition] = max(self._read_to.get(partition, 0), offset)
        read_to = json.dumps({"stream": read.stream_id, "offsets": self._read_to}).encode()
        headers = (*record.headers, *error_headers(reason, message, self._source, *place), (READ_TO, read_to))
        try:
            # Dated now: with the date of an old record, retention would delete the letter at once.
            write(self._partition, Record(record.value, record.key, headers))
        except BaseException:
            # Whether it arrived is unknown now: look again before the next attempt.
            self._sent = None
            raise
        self._sent.add(place)
        return True

    def newest(self, limit: int | None) -> list[Record]:
        with self._reader() as reader:
            if reader is None:
                return []
            first, end = reader.range()
            if limit is not None:
                first = max(first, end - limit)
            letters = reader.read(first, end)
        return letters if limit is None else letters[len(letters) - min(limit, len(letters)) :]

    def _look_up(self) -> None:
        sent: set[tuple[int, int]] = set()
        read_to: dict[int, int] = dict(self._read_to)
        with self._reader() as reader:
            for letter in reader.backwards() if reader is not None else ():
                place, then = _read_letter(letter, self._begin.stream_id)
                if then is None:
                    continue
                for partition, offset in then.items():
                    read_to[partition] = max(read_to.get(partition, 0), offset)
                if place is not None and place[1] >= self._begin.offsets.get(place[0], 0):
                    sent.add(place)
                if all(offset <= self._begin.offsets.get(partition, 0) for partition, offset in then.items()):
                    break
        self._read_to = read_to
        self._sent = sent

    def _reader(self) -> _Opened:
        return _Opened(self._clients, self._partition, self._timeout)


class _Opened:
    """A reader of the dead-letter topic for as long as the `with`; None where there is no such topic."""

    def __init__(self, clients: KafkaClients, partition: TopicPartition, timeout: float) -> None:
        self._clients, self._partition, self._timeout = clients, partition, timeout

    def __enter__(self) -> _Reader | None:
        self._consumer, client = self._clients.consumer()
        try:
            if self._clients.find_topic(client, self._partition.topic) is None:
                return None
            decode_fast(self._consumer)
            return _Reader(self._clients, self._consumer, self._partition, self._timeout)
        except BaseException:
            self._consumer.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


class _Reader:
    def __init__(
        self, clients: KafkaClients, consumer: KafkaConsumer, partition: TopicPartition, timeout: float
    ) -> None:
        self._clients, self._consumer, self._partition, self._timeout = clients, consumer, partition, timeout
        consumer.assign([partition])

    def range(self) -> tuple[int, int]:
        only = [self._partition]
        milliseconds = int(self._timeout * 1000)
        with self._clients.errors():
            first = self._consumer.beginning_offsets(only, timeout_ms=milliseconds)[self._partition]
            end = self._consumer.end_offsets(only, timeout_ms=milliseconds)[self._partition]
        return first, end

    def read(self, first: int, end: int) -> list[Record]:
        letters: list[Record] = []
        with self._clients.errors():
            self._consumer.seek(self._partition, first)
            while self._consumer.position(self._partition) < end:
                answer = self._consumer.poll(timeout_ms=int(self._timeout * 1000), max_records=CHUNK)
                if not answer and self._consumer.position(self._partition) < end:
                    raise errors.KafkaTimeoutError(f"{self._partition.topic} cannot be read")
                letters += answer.get(self._partition, [])
        return [letter for letter in letters if letter.offset < end]

    def backwards(self) -> Iterator[Record]:
        first, end = self.range()
        while end > first:
            start = max(first, end - CHUNK)
            yield from reversed(self.read(start, end))
            end = start


def _read_letter(letter: Record, stream_id: str) -> tuple[tuple[int, int] | None, Mapping[int, int] | None]:
    """Which record it is about, and how far had been read; None where somebody else wrote it, or for another stream."""
    headers = dict(letter.headers)
    try:
        read_to = json.loads(headers[READ_TO])
        if read_to["stream"] != stream_id:
            return None, None
        offsets = {int(partition): int(offset) for partition, offset in read_to["offsets"].items()}
        return (int(headers[PREFIX + "partition"]), int(headers[PREFIX + "offset"])), offsets
    except (KeyError, ValueError, TypeError, AttributeError):
        return None, None
