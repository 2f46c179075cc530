"""Writing to Kafka: nothing counts as written before every in-sync replica has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from streamlearn.errors import StreamAway, StreamError
from streamlearn.records.record import Record
from streamlearn.settings.stream import KafkaSettings
from streamlearn.stream.kafka_client import KafkaClients
from streamlearn.stream.kafka_library import (
    KafkaAdminClient,
    KafkaNetClient,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
    errors,
)

# How many records may be under way at once: bounds the memory of a long append.
CHUNK = 2000
CLOSE_SECONDS = 2.0
KNOCK_SECONDS = 1.0
# A refused record comes with headers that say why: the largest one the stream holds must still fit.
LETTER_TOPIC = {"num_partitions": 1, "replication_factor": -1, "configs": {"max.message.bytes": str(32 << 20)}}
STREAM_TOPIC = {"num_partitions": -1, "replication_factor": -1}


class KafkaWriter:
    """Connects at the first use, and anew after a failure."""

    def __init__(self, clients: KafkaClients, settings: KafkaSettings) -> None:
        self._clients = clients
        self._settings = settings
        self._producer: KafkaProducer | None = None
        self._producer_client: KafkaNetClient | None = None
        self._admin: KafkaAdminClient | None = None
        self._partitions: dict[str, int] = {}  # of the topics known to exist
        self._turn = 0

    def append(self, topic: str, records: Sequence[Record]) -> None:
        """Records with a key go where Kafka puts that key; the others to the partitions in turn."""
        partitions = self._ensure_topic(topic, STREAM_TOPIC)
        for start in range(0, len(records), CHUNK):
            chunk = records[start : start + CHUNK]
            places: list[int | None] = []
            for record in chunk:
                places.append(self._turn % partitions if record.key is None else None)
                self._turn += record.key is None
            self._send(topic, chunk, places)

    def send_to(self, place: TopicPartition, record: Record) -> None:
        self._ensure_topic(place.topic, LETTER_TOPIC)
        self._send(place.topic, [record], [place.partition])

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """For lag tools only, so a failure is nobody's concern."""
        with suppress(StreamError), self._administration() as admin:
            admin.alter_group_offsets(group, dict(offsets))

    def close(self) -> None:
        self._drop_producer(CLOSE_SECONDS)
        self._drop_admin()

    def _send(self, topic: str, records: Sequence[Record], places: Sequence[int | None]) -> None:
        try:
            producer = self._connected_producer()
            with self._clients.errors(self._producer_client):
                sent = [
                    producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=partition,
                        timestamp_ms=record.timestamp or None,
                    )
                    for record, partition in zip(records, places, strict=True)
                ]
                for future in sent:
                    self._await(future)
        except BaseException:
            # What is still under way must not arrive after the caller was told that it failed.
            self._drop_producer(0.0)
            self._drop_admin()
            raise

    def _await(self, future: Any) -> None:
        """The producer itself gives up after a while; a broker that is gone is noticed sooner by knocking."""
        while not future.is_done:
            with suppress(errors.KafkaTimeoutError):
                future.get(timeout=KNOCK_SECONDS)
            if not future.is_done:
                self._clients.knock()
        if future.failed():
            raise future.exception

    def _ensure_topic(self, topic: str, settings: Mapping[str, Any]) -> int:
        if topic not in self._partitions:
            with self._administration() as admin:
                (found,) = admin.describe_topics([topic])
                if errors.for_code(found["error_code"]) is errors.UnknownTopicOrPartitionError:
                    found = self._create(admin, topic, settings)
                elif found["error_code"]:
                    raise errors.for_code(found["error_code"])(topic)
                self._partitions[topic] = len(found["partitions"])
        return self._partitions[topic]

    def _create(self, admin: KafkaAdminClient, topic: str, settings: Mapping[str, Any]) -> Any:
        if not self._settings.create_topics:
            raise StreamAway(f"there is no topic {topic}", hint="create it, or allow kafka.create_topics")
        # Somebody else may be creating it at this moment: just as good.
        with suppress(errors.TopicAlreadyExistsError):
            admin.create_topics({topic: dict(settings)}, timeout_ms=int(self._settings.request_timeout * 1000))
        admin.wait_for_topics([topic], timeout_ms=int(self._settings.request_timeout * 1000))
        (found,) = admin.describe_topics([topic])
        return found

    @contextmanager
    def _administration(self) -> Iterator[KafkaAdminClient]:
        if self._admin is None:
            self._admin, self._admin_client = self._clients.admin()
        try:
            with self._clients.errors(self._admin_client):
                yield self._admin
        except StreamError:
            self._drop_admin()
            raise

    def _connected_producer(self) -> KafkaProducer:
        if self._producer is None:
            self._producer, self._producer_client = self._clients.producer()
        return self._producer

    def _drop_producer(self, patience: float) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            self._partitions.clear()
            if patience == 0:
                # close() alone would wait for records that cannot be delivered, and then leave its thread running.
                producer._sender.force_close()
                producer._sender.join(CLOSE_SECONDS)
            with suppress(errors.KafkaTimeoutError):
                producer.close(timeout=CLOSE_SECONDS)

    def _drop_admin(self) -> None:
        if self._admin is not None:
            admin, self._admin = self._admin, None
            admin.close()
