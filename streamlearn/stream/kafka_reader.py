"""Reading one topic, with an eye on two things the library leaves alone: is anybody there, and is it the same topic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from streamlearn.errors import PositionLost, StreamAway
from streamlearn.records.record import Record
from streamlearn.settings.stream import KafkaSettings
from streamlearn.stream.kafka_client import KafkaClients, wait_for
from streamlearn.stream.kafka_library import TopicPartition, errors
from streamlearn.stream.kafka_records import decode_fast
from streamlearn.stream.url import KafkaAddress

FROM_EARLIEST = "serve --from-earliest goes on from the earliest record there is"
PROBE_SECONDS = 1.0
LONGEST_WAIT = 0.5


class KafkaReader:
    def __init__(self, clients: KafkaClients, address: KafkaAddress, settings: KafkaSettings) -> None:
        self._clients = clients
        self._topic = address.topic
        self._url = address.url
        self._settings = settings
        self._consumer, self._client = clients.consumer()
        self._cluster = self._client.cluster
        self._probe: Any = None
        self._asked = 0.0
        self._next: dict[int, int] = {}  # the library would not always say: it may raise what it found out instead
        self._silent_since: float | None = None
        try:
            decode_fast(self._consumer)
            topic_id = clients.find_topic(self._client, self._topic)
            if topic_id is None:
                raise self._no_topic()
            self.topic_id = topic_id
        except BaseException:
            self.close()
            raise

    def _no_topic(self) -> StreamAway:
        return StreamAway(
            f"{self._url}: there is no topic {self._topic}",
            hint="create it, or start a producer that does; reading never creates one",
        )

    def partitions(self) -> set[int]:
        return set(self._cluster.partitions_for_topic(self._topic) or ())

    def available(self) -> dict[int, tuple[int, int]]:
        """For each partition the earliest offset there is, and the one behind the last."""
        partitions = [TopicPartition(self._topic, partition) for partition in sorted(self.partitions())]
        milliseconds = int(self._settings.request_timeout * 1000)
        with self._clients.errors(self._client):
            first = self._consumer.beginning_offsets(partitions, timeout_ms=milliseconds)
            end = self._consumer.end_offsets(partitions, timeout_ms=milliseconds)
        return {tp.partition: (first[tp], end[tp]) for tp in partitions}

    def go_to(self, offsets: Mapping[int, int]) -> None:
        self._next = dict(offsets)
        self._consumer.assign([TopicPartition(self._topic, partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(TopicPartition(self._topic, partition), offset)

    def pause(self, partitions: set[int]) -> None:
        """Fetch nothing for these, and for all others again."""
        for tp in self._consumer.assignment():
            if tp.partition in partitions:
                self._consumer.pause(tp)
            else:
                self._consumer.resume(tp)

    def poll(self, limit: int, deadline: float) -> dict[int, Sequence[Record]]:
        while True:
            left = max(0.0, deadline - time.monotonic())
            with self._clients.errors(self._client):
                try:
                    answer = self._consumer.poll(timeout_ms=int(min(left, LONGEST_WAIT) * 1000), max_records=limit)
                except (errors.OffsetOutOfRangeError, errors.LogTruncationError):
                    answer = {}
                    self._check_position()
                self._next |= {tp.partition: records[-1].offset + 1 for tp, records in answer.items()}
                self._look_around()
            if answer or time.monotonic() >= deadline:
                return {tp.partition: records for tp, records in answer.items()}

    def _look_around(self) -> None:
        """Ask the broker for news of the topic once a second. Costs a dictionary lookup otherwise."""
        seen = self._seen_topic_id()
        if seen is not None and seen != self.topic_id:
            self._check_position()
        now = time.monotonic()
        if self._probe is None and now - self._asked >= PROBE_SECONDS:
            self._probe = self._cluster.request_update()
            self._asked = now
        if self._probe is not None and self._probe.is_done:
            fault = self._probe.exception
            if fault is None or isinstance(fault, errors.BrokerResponseError):
                self._silent_since = None
                if seen is None and isinstance(fault, errors.UnknownTopicOrPartitionError):
                    raise self._no_topic()
            elif self._silent_since is None:
                self._silent_since = self._asked
            self._probe = None
        silent_since = self._asked if self._silent_since is None and self._probe else self._silent_since
        if silent_since is not None and now - silent_since > self._settings.away_after:
            fault = self._client._manager.last_fault
            raise StreamAway(
                f"{self._url}: the broker does not answer any more" + (f": {fault}" if fault else ""),
                hint="is Kafka running?",
            )

    def _seen_topic_id(self) -> str | None:
        topic_id = self._cluster.topic_id(self._topic)
        return None if topic_id is None else str(topic_id)

    def _check_position(self) -> None:
        """The broker says an offset is out of range: raise PositionLost, unless a second look finds it again."""
        with suppress(errors.UnknownTopicOrPartitionError):
            wait_for(self._cluster.request_update(), self._settings.request_timeout)
        if self._seen_topic_id() not in (None, self.topic_id):
            raise self.recreated(self._next)
        for partition, (first, end) in self.available().items():
            if partition in self._next and not first <= self._next[partition] <= end:
                raise self.out_of_range(partition, self._next[partition], first, end)

    def out_of_range(self, partition: int, wanted: int, first: int, end: int) -> PositionLost:
        there = f"{first} to {end}" if end >= 0 else "none, the partition does not exist"
        return PositionLost(
            f"topic {self._topic}, partition {partition}: wanted offset {wanted}, available {there} ({self._url})",
            hint=f"the records were deleted before they were learned; {FROM_EARLIEST}",
        )

    def recreated(self, wanted: Mapping[int, int]) -> PositionLost:
        available = self.available()
        places = ", ".join(
            f"partition {partition}: wanted offset {offset} of the old one, available {first} to {end} of the new one"
            for partition, offset in sorted(wanted.items())
            for first, end in [available.get(partition, (0, 0))]
        )
        return PositionLost(
            f"topic {self._topic} was deleted and created again; {places} ({self._url})",
            hint=f"what was in the old topic and not learned is gone; {FROM_EARLIEST}",
        )

    def close(self) -> None:
        self._consumer.close(timeout_ms=1000)
