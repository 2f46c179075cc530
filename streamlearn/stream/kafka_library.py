"""The one door to kafka-python: what we use of it, public or not, and its quirks at import."""

from __future__ import annotations

import logging
import warnings
from typing import Any

with warnings.catch_warnings():
    # It reads its message schemas through a function of importlib that is deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
    from kafka.consumer.fetcher import Fetcher
    from kafka.net.compat import KafkaNetClient
    from kafka.net.inet import KafkaNetSocket
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.consumer import IsolationLevel
    from kafka.structs import OffsetAndMetadata

__all__ = [
    "Fetcher",
    "IsolationLevel",
    "KafkaAdminClient",
    "KafkaConnectionManager",
    "KafkaConsumer",
    "KafkaNetClient",
    "KafkaProducer",
    "NetworkSelector",
    "OffsetAndMetadata",
    "TopicPartition",
    "errors",
]

_sock_connect = KafkaNetSocket.sock_connect


async def _sock_connect_or_close(self: Any, net: Any, sock: Any, *args: Any, **kwargs: Any) -> Any:
    """It forgets to close the socket of a connection that fails; while a broker is away, that is one a second."""
    try:
        return await _sock_connect(self, net, sock, *args, **kwargs)
    except BaseException:
        sock.close()
        raise


KafkaNetSocket.sock_connect = _sock_connect_or_close

# It logs every failed attempt, some with a traceback; our callers get one StreamAway instead. Whoever wants to see more
# sets the level of this logger first.
if logging.getLogger("kafka").level == logging.NOTSET:
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
