"""What a dead letter says about itself, the same on every kind of stream."""

from __future__ import annotations

from streamlearn.records.record import Headers

PREFIX = "streamlearn.error."


def error_headers(reason: str, message: str, topic: str, partition: int, offset: int) -> Headers:
    return (
        (PREFIX + "reason", reason.encode()),
        (PREFIX + "message", message.encode()),
        (PREFIX + "topic", topic.encode()),
        (PREFIX + "partition", b"%d" % partition),
        (PREFIX + "offset", b"%d" % offset),
    )
