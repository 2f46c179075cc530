"""Streams that are closed when their test ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamlearn.settings.stream import KafkaSettings, StreamSettings
from streamlearn.stream.interface import Stream
from streamlearn.stream.url import open_stream

Opener = Callable[..., Stream]


@pytest.fixture
def new_stream() -> Iterator[Opener]:
    opened: list[Stream] = []

    def make(url: str, **settings: Any) -> Stream:
        opened.append(open_stream(url, StreamSettings(kafka=KafkaSettings(**settings))))
        return opened[-1]

    yield make
    for stream in opened:
        stream.close()
    assert [thread.name for thread in threading.enumerate() if "kafka" in thread.name.lower()] == []
