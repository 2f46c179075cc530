"""The embedded log: an SQLite file that several processes append to and one daemon follows."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from streamlearn.errors import PositionLost, StreamAway
from streamlearn.records.record import Position, Record
from streamlearn.settings.stream import EmbeddedLogSettings
from streamlearn.stream.dead_letters import error_headers
from streamlearn.stream.headers import decode_headers, encode_headers
from streamlearn.stream.log_file import connect, file_identity, sqlite_errors, transaction

FROM_EARLIEST = "serve --from-earliest goes on from the earliest record there is"

# Idle following: how long to sleep between two looks at the file. The first is for latency, the last for idle cost.
SHORTEST_SLEEP, LONGEST_SLEEP = 0.0005, 0.008
# How often to look whether the path still leads to the file that is open.
FILE_CHECK_SECONDS = 1.0
# An appender waits for one chunk of deletions at most, and so does learning: a few milliseconds.
SWEEP_CHUNK = 2000


class LogStream:
    """Appending, dead letters and `passed` may be called from any thread; the rest from one."""

    def __init__(self, path: Path, settings: EmbeddedLogSettings | None = None) -> None:
        self.url = f"log:{path}"
        self._path = path
        self._settings = settings or EmbeddedLogSettings()
        # Apart from the writer, so that the reader's data_version shows what this process appends, too.
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._sweeper: sqlite3.Connection | None = None
        self._write_lock = threading.Lock()
        self._stream_id = ""
        self._offset = 0
        self._reader_file: tuple[int, int] | None = None
        self._writer_file: tuple[int, int] | None = None
        self._file_checked = 0.0
        self._sweep_to = 0  # records before this may be deleted,
        self._swept_to = 0  # before this they are
        self._read_since_sweep = 0
        self._data_version = -1  # at the last look that found nothing new

    def open(self, position: Position | None, *, allow_gap: bool = False) -> Position:
        reader = self._connected_reader(create=True)
        with sqlite_errors(self._path):
            stream_id, first, end = reader.execute("SELECT id, first_offset, next_offset FROM log").fetchone()
        wanted = first if position is None else position.offsets.get(0, first)
        if position is not None and not allow_gap:
            if position.stream_id != stream_id:
                raise PositionLost(
                    f"{self.url}: is another log than the one the checkpoint belongs to"
                    f" (wanted offset {wanted} of {position.stream_id}, this is {stream_id})",
                    hint=f"put the old log back, or {FROM_EARLIEST}",
                )
            if not first <= wanted <= end:
                raise PositionLost(
                    f"{self.url}: wanted offset {wanted}, available are {first} to {end}", hint=FROM_EARLIEST
                )
        belongs = position is None or position.stream_id == stream_id
        self._offset = wanted if belongs and first <= wanted <= end else first
        self._stream_id = stream_id
        self._data_version = -1
        return self.position()

    def poll(self, limit: int, timeout: float) -> Sequence[Record]:
        # Deleting keeps pace with reading, and goes on when there is nothing to read.
        if self._swept_to < self._sweep_to and self._read_since_sweep >= SWEEP_CHUNK // 2:
            self._sweep()
        deadline = time.monotonic() + timeout
        sleep = SHORTEST_SLEEP
        with sqlite_errors(self._path):
            while True:
                self._check_file()
                reader = self._connected_reader()
                # Asked before reading: what is committed in between changes it, and is seen in the next round.
                (version,) = reader.execute("PRAGMA data_version").fetchone()
                if version != self._data_version:
                    records = self._read(reader, limit)
                    if records:
                        return records
                    self._data_version = version
                left = deadline - time.monotonic()
                if left <= 0:
                    self._read_since_sweep = SWEEP_CHUNK
                    return []
                time.sleep(min(sleep, left))
                sleep = min(sleep * 2, LONGEST_SLEEP)

    def _read(self, reader: sqlite3.Connection, limit: int) -> list[Record]:
        rows = reader.execute(
            "SELECT offset, timestamp, key, headers, value FROM records WHERE offset >= ? ORDER BY offset LIMIT ?",
            (self._offset, limit),
        ).fetchall()
        if not rows:
            return []
        if rows[0][0] != self._offset:
            raise PositionLost(
                f"{self.url}: wanted offset {self._offset}, available from {rows[0][0]}:"
                " records were deleted before they were read",
                hint=FROM_EARLIEST,
            )
        self._offset = rows[-1][0] + 1
        self._read_since_sweep += len(rows)
        return [
            Record(value, key, decode_headers(headers), timestamp, 0, offset)
            for offset, timestamp, key, headers, value in rows
        ]

    def position(self) -> Position:
        return Position({0: self._offset}, self._stream_id)

    def ends(self) -> Mapping[int, int]:
        with sqlite_errors(self._path):
            (end,) = self._connected_reader().execute("SELECT next_offset FROM log").fetchone()
        return {0: end}

    def append(self, records: Sequence[Record]) -> None:
        now = int(time.time() * 1000)
        rows = [(r.timestamp or now, r.key, encode_headers(r.headers), r.value) for r in records]
        with self._write_lock, sqlite_errors(self._path):
            writer = self._connected_writer()
            with transaction(writer):
                (offset,) = writer.execute("SELECT next_offset FROM log").fetchone()
                writer.executemany(
                    "INSERT INTO records VALUES (?, ?, ?, ?, ?)",
                    ((offset + i, *row) for i, row in enumerate(rows)),
                )
                writer.execute("UPDATE log SET next_offset = ?", (offset + len(rows),))

    def passed(self, newest: Position, oldest: Position) -> None:
        # An oldest checkpoint of another log says nothing about this one.
        if self._settings.retention == "keep" or oldest.stream_id != self._stream_id:
            return
        self._sweep_to = max(self._sweep_to, oldest.offsets.get(0, 0))
        self._sweep()

    def _sweep(self) -> None:
        """Delete one chunk of what was passed. `poll` comes back for the rest, so that no call takes long."""
        self._read_since_sweep = 0
        # Old records that stay a little longer do no harm: the next chunk tries again.
        with suppress(StreamAway), self._write_lock, sqlite_errors(self._path):
            if self._sweeper is None:
                # Not durable: a deletion that a power cut undoes is simply made again.
                self._sweeper = connect(self._path, busy_timeout=self._settings.busy_timeout, durable=False)
            with transaction(self._sweeper):
                (first,) = self._sweeper.execute("SELECT first_offset FROM log").fetchone()
                self._swept_to = max(first, min(first + SWEEP_CHUNK, self._sweep_to))
                self._sweeper.execute("UPDATE log SET first_offset = ?", (self._swept_to,))
                self._sweeper.execute("DELETE FROM records WHERE offset < ?", (self._swept_to,))

    def send_dead_letter(self, record: Record, reason: str, message: str) -> bool:
        row = (record.partition, record.offset, reason, message)
        content = (int(time.time() * 1000), record.key, encode_headers(record.headers), record.value)
        with self._write_lock, sqlite_errors(self._path):
            writer = self._connected_writer()
            with transaction(writer):
                written = writer.execute(
                    "INSERT INTO dead_letters (partition, offset, reason, message, timestamp, key, headers, value)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    row + content,
                ).rowcount
        return written == 1

    def dead_letters(self, limit: int | None = None) -> Sequence[Record]:
        with sqlite_errors(self._path):
            rows = (
                self._connected_reader()
                .execute(
                    "SELECT id, partition, offset, reason, message, timestamp, key, headers, value"
                    " FROM dead_letters ORDER BY id DESC LIMIT ?",
                    (-1 if limit is None else limit,),
                )
                .fetchall()
            )
        letters = []
        for number, partition, offset, reason, message, timestamp, key, headers, value in reversed(rows):
            errors = error_headers(reason, message, str(self._path), partition, offset)
            letters.append(Record(value, key, (*decode_headers(headers), *errors), timestamp, 0, number - 1))
        return letters

    def close(self) -> None:
        with self._write_lock:
            for connection in (self._reader, self._writer, self._sweeper):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = self._sweeper = None

    def _connected_reader(self, *, create: bool = False) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = connect(self._path, busy_timeout=self._settings.busy_timeout, create=create)
            self._reader_file = file_identity(self._path)
            self._data_version = -1
        return self._reader

    def _connected_writer(self) -> sqlite3.Connection:
        """Looks every time: what is appended to a file that was deleted meanwhile would be gone without a word."""
        if self._writer is not None and file_identity(self._path) != self._writer_file:
            self._writer.close()
            self._writer = None
        if self._writer is None:
            self._writer = connect(self._path, busy_timeout=self._settings.busy_timeout)
            self._writer_file = file_identity(self._path)
        return self._writer

    def _check_file(self) -> None:
        """A log that was deleted or replaced goes on existing for whoever has it open: notice it."""
        now = time.monotonic()
        if now - self._file_checked < FILE_CHECK_SECONDS:
            return
        found = file_identity(self._path)
        if found is None:
            raise StreamAway(f"{self.url}: the file is gone", hint="put it back")
        if found != self._reader_file and self._reader is not None:
            self._reader.close()
            self._reader = None
            self.open(self.position())
        self._file_checked = now
