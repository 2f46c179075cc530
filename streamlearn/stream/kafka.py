"""A Kafka topic as a stream. Where to read on is the checkpoint's business: no group is joined, no commit read back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from streamlearn.errors import StreamAway, StreamError
from streamlearn.records.record import Position, Record
from streamlearn.settings.stream import KafkaSettings
from streamlearn.stream.interleave import Turns
from streamlearn.stream.kafka_client import KafkaClients
from streamlearn.stream.kafka_letters import KafkaLetters
from streamlearn.stream.kafka_library import OffsetAndMetadata, TopicPartition
from streamlearn.stream.kafka_reader import KafkaReader
from streamlearn.stream.kafka_writer import KafkaWriter
from streamlearn.stream.url import KafkaAddress

# A caller that does not wait between two attempts must not make this a busy loop.
RECONNECT_SECONDS = 0.5
# "fixed": how many records of one partition wait for their turn before its fetching pauses.
MOST_WAITING = 5000


class KafkaStream:
    """One thread uses it. After StreamAway the next call connects anew and goes on behind the last record returned."""

    def __init__(self, address: KafkaAddress, settings: KafkaSettings) -> None:
        self.url = address.url
        self._address = address
        self._settings = settings
        self._clients = KafkaClients(address, settings)
        self._writer = KafkaWriter(self._clients, settings)
        self._letters = KafkaLetters(self._clients, address.topic, settings.request_timeout)
        self._reader: KafkaReader | None = None
        self._tried = 0.0
        self._offsets: dict[int, int] = {}
        self._stream_id = ""
        self._turns = Turns([0], 0)

    def open(self, position: Position | None, *, allow_gap: bool = False) -> Position:
        self._connect(position, allow_gap)
        opened = self.position()
        self._letters.begin(opened)
        return opened

    def _connect(self, position: Position | None, allow_gap: bool) -> None:
        self._disconnect()
        reader = KafkaReader(self._clients, self._address, self._settings)
        try:
            available = reader.available()
            self._offsets = self._start(reader, available, position, allow_gap)
            reader.go_to(self._offsets)
        except BaseException:
            reader.close()
            raise
        self._reader = reader
        self._stream_id = reader.topic_id
        self._turns = Turns(self._offsets, 0 if position is None else position.turn)

    def _start(
        self, reader: KafkaReader, available: Mapping[int, tuple[int, int]], position: Position | None, allow_gap: bool
    ) -> dict[int, int]:
        starts = {partition: first for partition, (first, _) in available.items()}
        if position is None:
            return starts
        if position.stream_id != reader.topic_id:
            if allow_gap:
                return starts
            raise reader.recreated(position.offsets)
        for partition, wanted in position.offsets.items():
            first, end = available.get(partition, (0, -1))
            if first <= wanted <= end:
                starts[partition] = wanted
            elif not allow_gap:
                raise reader.out_of_range(partition, wanted, first, end)
        return starts

    def poll(self, limit: int, timeout: float) -> Sequence[Record]:
        deadline = time.monotonic() + timeout
        reader = self._connected(timeout)
        try:
            if self._settings.interleave == "fixed" and len(self._offsets) > 1:
                return self._poll_in_turn(reader, limit, deadline)
            records: list[Record] = []
            for partition, some in reader.poll(limit, deadline).items():
                self._offsets[partition] = some[-1].offset + 1
                records += some
            self._take_up_new_partitions(reader)
            return records
        except StreamAway:
            self._disconnect()
            raise

    def _poll_in_turn(self, reader: KafkaReader, limit: int, deadline: float) -> list[Record]:
        records = self._turns.take(limit)
        while not records:
            for partition, some in reader.poll(MOST_WAITING, deadline).items():
                self._turns.add(partition, some)
            records = self._turns.take(limit)
            reader.pause({p for p in self._offsets if self._turns.waiting(p) >= MOST_WAITING})
            if time.monotonic() >= deadline:
                break
        for record in records:
            self._offsets[record.partition] = record.offset + 1
        return records

    def _take_up_new_partitions(self, reader: KafkaReader) -> None:
        """Partitions added to the topic. In a fixed order they would change it: there they wait for the next open."""
        if self._settings.interleave == "arrival" and (partitions := reader.partitions()) > set(self._offsets):
            self._offsets = dict.fromkeys(partitions, 0) | self._offsets
            reader.go_to(self._offsets)

    def position(self) -> Position:
        return Position(dict(self._offsets), self._stream_id, self._turns.turn)

    def ends(self) -> Mapping[int, int]:
        if self._stream_id:
            return _ends(self._connected(0.0))
        # Never opened: somebody only wants to know.
        with closing(KafkaReader(self._clients, self._address, self._settings)) as reader:
            return _ends(reader)

    def append(self, records: Sequence[Record]) -> None:
        self._writer.append(self._address.topic, records)

    def passed(self, newest: Position, oldest: Position) -> None:
        # An oldest checkpoint of a topic that was made anew says nothing about this one's letters.
        if oldest.stream_id == self._stream_id:
            self._letters.passed(oldest)
        # Only lag tools see it: while the broker is away there is nobody to show it to.
        if self._reader is not None and newest.stream_id == self._stream_id:
            offsets = {
                TopicPartition(self._address.topic, partition): OffsetAndMetadata(offset, "", -1)
                for partition, offset in newest.offsets.items()
            }
            self._writer.commit(self._settings.group, offsets)

    def send_dead_letter(self, record: Record, reason: str, message: str) -> bool:
        return self._letters.send(record, reason, message, self.position(), self._writer.send_to)

    def dead_letters(self, limit: int | None = None) -> Sequence[Record]:
        return self._letters.newest(limit)

    def close(self) -> None:
        self._disconnect()
        self._writer.close()

    def _connected(self, patience: float) -> KafkaReader:
        if self._reader is not None:
            return self._reader
        if not self._stream_id:
            raise StreamError(f"{self.url}: not opened", hint="call open() first")
        time.sleep(max(0.0, min(patience, self._tried + RECONNECT_SECONDS - time.monotonic())))
        self._tried = time.monotonic()
        try:
            # Checks once more that the topic is the same and the records are still there.
            self._connect(self.position(), allow_gap=False)
        except StreamError as error:
            # It worked before, so whatever is refused now may be allowed again soon: not the end of the daemon.
            raise StreamAway(error.message, error.hint) from error
        assert self._reader is not None
        return self._reader

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _ends(reader: KafkaReader) -> dict[int, int]:
    return {partition: end for partition, (_, end) in reader.available().items()}
