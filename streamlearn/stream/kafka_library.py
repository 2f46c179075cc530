"""The one door to kafka-python: what we use of it, public or not, and its quirks at import."""

from __future__ import annotations

import logging
import warnings

with warnings.catch_warnings():
    # It reads its message schemas through a function of importlib that is deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
    from kafka.consumer.fetcher import Fetcher
    from kafka.net.compat import KafkaNetClient
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

# It logs every failed attempt, some with a traceback; our callers get one StreamAway instead. Whoever wants to see more
# sets the level of this logger first.
if logging.getLogger("kafka").level == logging.NOTSET:
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
