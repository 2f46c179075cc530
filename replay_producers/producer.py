"""Sending a sequence of records to a stream: at a given rate, each once, and going on where an earlier try ended."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from replay_producers.progress import say
from replay_producers.sequence import Sequence
from streamlearn.errors import StreamAway
from streamlearn.records.record import Position, Record
from streamlearn.stream.interface import Stream

BATCH = 500  # records that are durable together
LONGEST_WAIT = 5.0  # between two tries to reach a stream that is away


class StopFlag:
    """Signal handlers only set a flag, so that no batch is left half sent. A second Ctrl-C leaves at once."""

    def __init__(self) -> None:
        self.raised = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """In the main thread only: there Ctrl-C and SIGTERM raise it."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._raise) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self.raised:
            os._exit(130)
        self.raised = True


@dataclass(frozen=True, slots=True)
class Produced:
    there: int  # records of the sequence that are on the stream now
    found: int  # of these, how many were there already
    seconds: float


def produce(
    stream: Stream,
    sequence: Sequence,
    *,
    rate: float | None = None,
    again: bool = False,
    stop: StopFlag | None = None,
    tell: Callable[[int], object] = lambda there: None,
) -> Produced:
    """Returns when all of it is durable on the stream, or soon after the stop flag is raised.

    `again` sends everything, whether it is there already or not. `tell` hears how many are there.
    """
    started = time.monotonic()
    sending = _Sending(stream, sequence, rate, stop or StopFlag(), tell)
    found = 0 if again else sending.look()
    sending.go()
    return Produced(sending.there, found, time.monotonic() - started)


class _Sending:
    def __init__(
        self, stream: Stream, sequence: Sequence, rate: float | None, stop: StopFlag, tell: Callable[[int], object]
    ) -> None:
        self.there = 0
        self._gaps: set[int] = set()  # numbers below `there` that are missing on the stream
        self._stream, self._sequence, self._rate, self._stop, self._tell = stream, sequence, rate, stop, tell

    def look(self) -> int:
        """Find out what is on the stream already; says how many."""
        self._patiently(self._look)
        return self.there

    def go(self) -> None:
        while not self._stop.raised and self.there < len(self._sequence):
            if not self._try_all():
                self._patiently(self._look)

    def _try_all(self) -> bool:
        """False: the stream went away, and part of a batch may be there."""
        # A slow rate must not wait for a full batch.
        size = BATCH if self._rate is None else max(1, min(BATCH, int(self._rate / 10)))
        start, sent, missing = time.monotonic(), 0, sorted(self._gaps)
        numbered: Iterator[tuple[int, Record]] = itertools.chain(
            ((number, next(self._sequence.records(number))) for number in missing),
            enumerate(self._sequence.records(self.there), self.there),
        )
        while batch := list(itertools.islice(numbered, size)):
            if self._rate is not None and not self._wait_until(start + sent / self._rate):
                return True
            if self._stop.raised:
                return True
            try:
                self._stream.append([record for _, record in batch])
            except StreamAway as error:
                say(f"{error.message}; trying again", "yellow")
                return False
            sent += len(batch)
            self._gaps -= {number for number, _ in batch}
            self.there = max(self.there, batch[-1][0] + 1)
            self._tell(self.there)
        return True

    def _wait_until(self, moment: float) -> bool:
        while (left := moment - time.monotonic()) > 0:
            if self._stop.raised:
                return False
            time.sleep(min(left, 0.1))
        return True

    def _patiently(self, action: Callable[[], None]) -> None:
        wait = 0.5
        while not self._stop.raised:
            try:
                action()
            except StreamAway as error:
                say(f"{error.message}; trying again", "yellow")
                if not self._wait_until(time.monotonic() + wait):
                    return
                wait = min(2 * wait, LONGEST_WAIT)
            else:
                return

    def _look(self) -> None:
        """A batch is sent when the one before it is durable, so only the last BATCH records can have gaps."""
        self._stream.append([])  # the stream exists from now on
        numbers = numbers_at_the_end(self._stream, self._sequence)
        self.there = max(numbers, default=-1) + 1
        self._gaps = {number for number in range(max(0, self.there - BATCH), self.there) if number not in numbers}
        self._tell(self.there)


def numbers_at_the_end(stream: Stream, sequence: Sequence) -> set[int]:
    """The numbers of this run's newest records on the stream: none if it has none, else at least the last BATCH.

    Looks back from the end, twice as far each time, until it has seen enough.
    """
    opened = stream.open(None)
    ends = dict(stream.ends())
    if len(ends) > 1:
        say(f"{stream.url} has {len(ends)} partitions: the order holds inside each of them only", "yellow")
    back = 2 * BATCH
    while True:
        starts = {place: max(opened.offsets.get(place, 0), end - back) for place, end in ends.items()}
        whole = all(start <= opened.offsets.get(place, 0) for place, start in starts.items())
        numbers = {
            number
            for record in _between(stream, Position(starts, opened.stream_id), ends)
            if (number := sequence.number_of(record)) is not None
        }
        if whole or (numbers and min(numbers) <= max(numbers) - BATCH):
            return numbers
        back *= 4


def _between(stream: Stream, start: Position, ends: Mapping[int, int]) -> Iterator[Record]:
    position = stream.open(start, allow_gap=True)
    while any(position.offsets.get(place, 0) < end for place, end in ends.items()):
        records = stream.poll(5000, 2.0)
        if not records:  # the end may be a mark of Kafka's own that nobody gets to see
            return
        yield from (record for record in records if record.offset < ends.get(record.partition, 0))
        position = stream.position()
