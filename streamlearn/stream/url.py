"""Stream URLs: `kafka://host:9092[,host:port]/topic` and `log:PATH`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from streamlearn.errors import SettingsError
from streamlearn.settings.stream import StreamSettings, check_kafka_settings
from streamlearn.stream.interface import Stream

FORMS = "write kafka://host:9092/topic or log:PATH"
DEFAULT_KAFKA_PORT = 9092
# "<topic>.dead-letters" has to fit into Kafka's 249 characters as well.
LONGEST_TOPIC = 249 - len(".dead-letters")


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    servers: tuple[tuple[str, int], ...]
    topic: str

    @property
    def url(self) -> str:
        return f"kafka://{','.join(f'{_bracketed(host)}:{port}' for host, port in self.servers)}/{self.topic}"


@dataclass(frozen=True, slots=True)
class LogAddress:
    path: Path

    @property
    def url(self) -> str:
        return f"log:{self.path}"


def parse_url(url: str) -> KafkaAddress | LogAddress:
    if url.startswith("log:"):
        path = url.removeprefix("log:")
        if not path or "\0" in path:
            raise _wrong(url, "has no path")
        return LogAddress(Path(path).expanduser())
    if url.startswith("kafka://"):
        return _parse_kafka(url)
    raise _wrong(url, "is of no kind known here")


def open_stream(url: str, settings: StreamSettings | None = None) -> Stream:
    """Nothing is contacted yet: the stream's own `open` does that. Kafka is imported only for a Kafka URL."""
    settings = settings or StreamSettings()
    address = parse_url(url)
    if isinstance(address, LogAddress):
        from streamlearn.stream.log import LogStream

        return LogStream(address.path, settings.log)
    check_kafka_settings(settings.kafka, [host for host, _ in address.servers])
    from streamlearn.stream.kafka import KafkaStream

    return KafkaStream(address, settings.kafka)


def _parse_kafka(url: str) -> KafkaAddress:
    servers_text, slash, topic = url.removeprefix("kafka://").partition("/")
    if "@" in servers_text:
        # Not echoed: what stands before the @ is probably a password.
        raise SettingsError(["stream: a kafka:// URL holds no user or password; use stream.kafka.username, .password"])
    if not slash or not topic:
        raise _wrong(url, "names no topic")
    if not re.fullmatch(r"[A-Za-z0-9._-]+", topic) or topic in (".", ".."):
        raise _wrong(url, f"has a topic Kafka does not allow ({topic!r}): letters, digits, '.', '_' and '-' only")
    if len(topic) > LONGEST_TOPIC:
        raise _wrong(url, f"has a topic of {len(topic)} characters; at most {LONGEST_TOPIC} fit")
    return KafkaAddress(tuple(_parse_server(url, server) for server in servers_text.split(",")), topic)


def _parse_server(url: str, server: str) -> tuple[str, int]:
    match = re.fullmatch(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d+))?", server)
    if match is None:
        raise _wrong(url, f"has no host:port in {server!r}")
    port = int(match["port"] or DEFAULT_KAFKA_PORT)
    if not 0 < port < 65536:
        raise _wrong(url, f"has port {port}, which is not between 1 and 65535")
    return match["host"].strip("[]"), port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _wrong(url: str, what: str) -> SettingsError:
    return SettingsError([f"stream: {url!r} {what}"], hint=FORMS)
