"""Kafka clients built our way: quiet, impatient, leaving nothing behind when they fail, with the reason at hand."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from streamlearn.errors import StreamAway, StreamError
from streamlearn.settings.stream import KafkaSettings
from streamlearn.stream.kafka_library import (
    KafkaAdminClient,
    KafkaConnectionManager,
    KafkaConsumer,
    KafkaNetClient,
    KafkaProducer,
    NetworkSelector,
    errors,
)
from streamlearn.stream.url import KafkaAddress

T = TypeVar("T")

AUTHENTICATION_FAULTS = (
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
)


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # the library has no types
    """Remembers why a connection failed. The library itself only logs it, and tries a wrong password for ever."""

    last_fault: BaseException | None = None

    def get_connection(self, node_id: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.last_fault, AUTHENTICATION_FAULTS):
            raise self.last_fault
        connection = super().get_connection(node_id, *args, **kwargs)
        if not connection.connected:
            connection.init_future.add_errback(self._note)
            connection.init_future.add_callback(lambda _: self._note(None))
        return connection

    def _note(self, fault: BaseException | None) -> None:
        if not isinstance(self.last_fault, AUTHENTICATION_FAULTS):  # which explain what fails after them
            self.last_fault = fault


class KafkaClients:
    """Makes consumers, producers and admin clients for one address."""

    def __init__(self, address: KafkaAddress, settings: KafkaSettings) -> None:
        self._address = address
        self._settings = settings
        self._ssl = _ssl_context(settings) if settings.encrypted else None

    def consumer(self) -> tuple[KafkaConsumer, KafkaNetClient]:
        return self._make(
            KafkaConsumer,
            group_id=None,  # the group is for display: the consumer must neither wait for it nor read from it
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            metrics_enabled=False,
            fetch_max_wait_ms=min(500, int(self._settings.request_timeout * 500)),
            max_partition_fetch_bytes=4 << 20,
        )

    def producer(self) -> tuple[KafkaProducer, KafkaNetClient]:
        return self._make(
            KafkaProducer,
            enable_idempotence=True,
            acks="all",
            delivery_timeout_ms=self._milliseconds(2 * self._settings.request_timeout),
            max_block_ms=self._milliseconds(self._settings.request_timeout),
            max_request_size=64 << 20,  # the broker's own limit decides
            batch_size=256 << 10,
            metrics_enabled=False,
        )

    def admin(self) -> tuple[KafkaAdminClient, KafkaNetClient]:
        return self._make(KafkaAdminClient)

    def _make(self, kind: Callable[..., T], **settings: Any) -> tuple[T, KafkaNetClient]:
        self.knock()
        made: list[KafkaNetClient] = []

        def make_client(**configs: Any) -> KafkaNetClient:
            net = NetworkSelector(**configs)
            manager = _Manager(net, **configs)
            # Looking for a topic must not create it; the library drops this setting on its way here.
            manager.cluster.config["allow_auto_create_topics"] = False
            made.append(KafkaNetClient(net=net, manager=manager, **configs))
            return made[0]

        try:
            return kind(**self._common(), **settings, kafka_client=make_client), made[0]
        except BaseException as error:
            # A client whose construction fails has no close(): end its thread and sockets here.
            if made:
                made[0].close()
            if isinstance(error, errors.KafkaError):
                fault = made[0]._manager.last_fault if made else None
                raise self.translate(error, fault) from error
            raise

    def _common(self) -> dict[str, Any]:
        settings = self._settings
        common: dict[str, Any] = {
            "bootstrap_servers": [f"{host}:{port}" for host, port in self._address.servers],
            "client_id": "streamlearn",
            "security_protocol": settings.security_protocol,
            "ssl_context": self._ssl,
            "bootstrap_timeout_ms": self._milliseconds(settings.connect_timeout),
            "request_timeout_ms": self._milliseconds(settings.request_timeout),
            "reconnect_backoff_max_ms": 1000,
        }
        if settings.authenticated:
            common["sasl_mechanism"] = settings.sasl_mechanism
            common["sasl_plain_username"] = settings.username
            common["sasl_plain_password"] = settings.password.get_secret_value() if settings.password else None
        return common

    def knock(self) -> None:
        """One plain connection first: says at once, and exactly, what the library would find out slowly and vaguely."""
        reasons = []
        for host, port in self._address.servers:
            try:
                with socket.create_connection((host, port), timeout=self._settings.connect_timeout) as plain:
                    if self._ssl is not None:
                        self._ssl.wrap_socket(plain, server_hostname=host).close()
                    return
            except ssl.SSLCertVerificationError as error:
                raise StreamError(
                    f"{self._address.url}: {host}:{port} is not trusted: {error.verify_message}",
                    hint="the certificate must name that host and be signed by one in kafka.ca_file",
                ) from error
            except ssl.SSLError as error:
                raise StreamError(
                    f"{self._address.url}: no TLS connection to {host}:{port}: {error.reason or error}",
                    hint="does that port speak TLS? compare kafka.security_protocol with the broker's listener",
                ) from error
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error}")
        raise StreamAway(f"{self._address.url}: no broker answers ({', '.join(reasons)})", hint="is Kafka running?")

    def find_topic(self, client: KafkaNetClient, topic: str) -> str | None:
        """The topic's id, which another topic of the same name would not have. None: there is no such topic."""
        cluster = client.cluster
        # The first answer may be to a question that was under way before ours: ask twice before believing a no.
        for ask in (lambda: cluster.set_topics([topic]), cluster.request_update):
            with self.errors(client), suppress(errors.UnknownTopicOrPartitionError):
                wait_for(ask(), self._settings.request_timeout)
            if cluster.topic_id(topic) is not None and cluster.partitions_for_topic(topic):
                return str(cluster.topic_id(topic))
        return None

    def translate(self, error: BaseException, fault: BaseException | None = None) -> StreamError:
        """A kafka-python error in our words; `fault` is what the connection failed of, if known."""
        url = self._address.url
        for known in (error, fault):
            if isinstance(known, AUTHENTICATION_FAULTS):
                return StreamError(
                    f"{url}: the broker refuses user {self._settings.username!r}: {_said(known)}",
                    hint="check kafka.username, kafka.password and kafka.sasl_mechanism",
                )
            if isinstance(known, errors.AuthorizationError):
                return StreamError(f"{url}: not allowed: {_said(known)}", hint="give the user rights on this topic")
        if isinstance(error, errors.MessageSizeTooLargeError):
            return StreamError(
                f"{url}: a record is larger than the broker takes", hint="raise the topic's max.message.bytes"
            )
        if isinstance(error, errors.RetriableError | errors.BrokerNotAvailableError):
            reason = _said(fault) if fault is not None else _said(error)
            # A broker that refuses somebody says so and hangs up; the library sometimes hears only the second.
            doubt = f", or does it refuse user {self._settings.username!r}?" if self._settings.authenticated else "?"
            return StreamAway(f"{url}: the broker does not answer: {reason}", hint="is Kafka running" + doubt)
        return StreamError(f"{url}: {_said(error)}")

    @contextmanager
    def errors(self, client: KafkaNetClient | None = None) -> Iterator[None]:
        try:
            yield
        except errors.KafkaError as error:
            fault = client._manager.last_fault if client is not None else None
            raise self.translate(error, fault) from error

    @staticmethod
    def _milliseconds(seconds: float) -> int:
        return int(seconds * 1000)


def wait_for(future: Any, seconds: float) -> None:
    """Wait for one of the library's futures; raises what it failed with, or KafkaTimeoutError."""
    done = threading.Event()
    future.add_both(lambda _: done.set())
    if not done.wait(seconds):
        raise errors.KafkaTimeoutError(f"no answer within {seconds:g} s")
    if future.failed():
        raise future.exception


def _said(error: BaseException) -> str:
    """The error in one line, without the class's number and the tuple around it."""
    text = " ".join(str(arg) for arg in error.args if arg) or type(error).__name__
    return " ".join(text.split())


def _ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.check_hostname
    if settings.cert_file is not None:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context
