"""Records to put on a stream, and what reading them gives."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamlearn.records.record import Record
from streamlearn.stream.interface import Stream

A_MINUTE_AGO = int(time.time() * 1000) - 60_000


def numbered(first: int, end: int) -> list[Record]:
    return [
        Record(b"value %d" % i, b"key %d" % i, (("label", b"boot"), ("id", b"%d" % i)), timestamp=A_MINUTE_AGO + i)
        for i in range(first, end)
    ]


def number(record: Record) -> int:
    return int(record.value.removeprefix(b"value "))


def read(stream: Stream, count: int, *, limit: int = 1000, seconds: float = 20.0) -> list[Record]:
    """Exactly `count` records, asking for no more than that."""
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(records) < count:
        records += stream.poll(min(limit, count - len(records)), 0.5)
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records within {seconds} s"
    return records


def raised_within(seconds: float, kind: type[Exception], call: Callable[[], object]) -> Exception:
    """Call again and again until it raises `kind`; any other error of ours is not what was meant."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            call()
        except kind as error:
            return error
    raise AssertionError(f"no {kind.__name__} within {seconds} s")
