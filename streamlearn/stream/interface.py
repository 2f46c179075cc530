"""What a stream must be able to do. `kafka.py` and `log.py` do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from streamlearn.records.record import Position, Record


class Stream(Protocol):
    """One topic (or one log file), followed by one daemon and appended to by anybody.

    A stream that does not answer for now raises StreamAway; the caller waits and calls again, nothing is lost.
    One thread uses one Stream object; whoever else wants to append makes another with `open_stream`.
    """

    url: str  # as the user gave it, without secrets

    def open(self, position: Position | None, *, allow_gap: bool = False) -> Position:
        """Go to `position` (None: the earliest record there is) and say where that is.

        Raises PositionLost when those records are gone or the stream is not the one the position belongs to;
        with `allow_gap` it goes on from the earliest that is left instead.
        """

    def poll(self, limit: int, timeout: float) -> Sequence[Record]:
        """Up to `limit` records after the position, in order, waiting at most `timeout` seconds for the first."""

    def position(self) -> Position:
        """Behind the last record that poll returned."""

    def ends(self) -> Mapping[int, int]:
        """For each partition, the offset that the next record appended will get. Cheap enough for once a second."""

    def append(self, records: Sequence[Record]) -> None:
        """Returns when all of them are durable on the stream.

        After StreamAway some may be there and some not: appending again may repeat them.
        """

    def passed(self, newest: Position, oldest: Position) -> None:
        """Where the newest checkpoint stands, and the oldest that is kept. Never read back.

        Lag tools are shown `newest` (Kafka). Somebody may go back to `oldest`, but no further: records before it may
        be deleted (log, if its retention says so).
        """

    def send_dead_letter(self, record: Record, reason: str, message: str) -> bool:
        """Durable when it returns. Once per record, whatever crashed in between: False if it was there already."""

    def dead_letters(self, limit: int | None = None) -> Sequence[Record]:
        """The newest `limit` dead letters, oldest first; partition and offset are those of the dead letter itself."""

    def close(self) -> None: ...
