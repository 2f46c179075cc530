"""Predictions that wait for their label, in a small database that all servers of a daemon share.

The input waits on the disk, not in memory, and survives a server. What is not labelled in time, or is one too many, is
given up: its input goes, its id is remembered for as long again, so that a late label is told apart from a wrong one.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from streamlearn.records.record import Array
from streamlearn.serving.messages import HttpError, away
from streamlearn.settings.http import LabelSettings

SWEEP_SECONDS = 1.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS predictions (
    id TEXT PRIMARY KEY,
    at REAL NOT NULL,
    state TEXT NOT NULL,      -- waiting, labelled, expired
    label TEXT,               -- the one it got
    predicted TEXT, probability REAL, version INTEGER NOT NULL,
    shape TEXT NOT NULL, dtype TEXT NOT NULL, input BLOB, bytes INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS by_age ON predictions (state, at);
CREATE TABLE IF NOT EXISTS totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    labelled INTEGER NOT NULL, expired INTEGER NOT NULL, delay_sum REAL NOT NULL, delay_max REAL NOT NULL
);
INSERT OR IGNORE INTO totals VALUES (1, 0, 0, 0, 0);
"""


@dataclass(frozen=True, slots=True)
class Prediction:
    id: str
    input: Array
    label: str | None  # as predicted
    probability: float | None
    version: int
    at: float = 0.0


class PendingLabels:
    """All of it runs in one thread of its own: the event loop never waits for the disk."""

    def __init__(self, path: Path, settings: LabelSettings) -> None:
        self._path, self._settings = path, settings
        self._thread = ThreadPoolExecutor(1, "labels")
        self._swept_at = 0.0
        with suppress(sqlite3.Error, OSError):  # a full disk: predictions without an id need none of this
            self._thread.submit(lambda: self._database).result()

    @cached_property
    def _database(self) -> sqlite3.Connection:
        """Used in the thread only. When it could not be opened, the next who needs it tries again."""
        return _open(self._path)

    async def remember(self, predictions: Sequence[Prediction]) -> None:
        """Returns when they would survive this process."""
        await self._run(self._remember, predictions)

    async def waiting(self, id: str) -> tuple[Prediction | None, str | None]:
        """The prediction with this id; or None and the label it got before. HttpError if there is none."""
        found: tuple[Prediction | None, str | None] = await self._run(self._waiting, id)
        return found

    async def labelled(self, prediction: Prediction, label: str) -> float:
        """Its label is on the stream. Returns how late it came, in seconds."""
        delay: float = await self._run(self._labelled, prediction, label)
        return delay

    async def forget(self, *, id: str | None) -> int:
        """Erasure: neither the input nor the id stays."""
        forgotten: int = await self._run(self._forget, id)
        return forgotten

    async def counts(self) -> dict[str, Any]:
        counts: dict[str, Any] = await self._run(self._counts)
        return counts

    def close(self) -> None:
        if "_database" in self.__dict__:
            self._thread.submit(self._database.close).result()
        self._thread.shutdown()

    async def _run(self, action: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, action, *arguments)
        except (sqlite3.Error, OSError) as error:
            raise away("labels-unavailable", f"predictions with an id cannot be kept now: {error}", 5) from error

    # ------------------------------------------------------------------ in the thread

    def _remember(self, predictions: Sequence[Prediction]) -> None:
        now = time.time()
        rows = []
        for one in predictions:
            content = one.input.tobytes()
            shape = ",".join(map(str, one.input.shape))
            known = (one.label, one.probability, one.version, shape, str(one.input.dtype), content, len(content))
            rows.append((one.id, now, "waiting", None, *known))
        with self._database as transaction:
            transaction.executemany(f"INSERT OR REPLACE INTO predictions VALUES ({','.join('?' * 11)})", rows)
        if now - self._swept_at > SWEEP_SECONDS:
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Give up what is too old or too much. Called at most once a second, so the bounds hold about that well."""
        self._swept_at = now
        with self._database as database:
            give_up = "UPDATE predictions SET state = 'expired', input = NULL, bytes = 0 WHERE state = 'waiting' AND "
            expired = database.execute(give_up + "at < ?", (now - self._settings.expire_seconds,)).rowcount
            count, size = database.execute(
                "SELECT count(*), coalesce(sum(bytes), 0) FROM predictions WHERE state = 'waiting'"
            ).fetchone()
            over = max(
                count - self._settings.max_pending,
                -(-(size - self._settings.max_pending_bytes) * count // size) if size else 0,
            )
            if over > 0:
                oldest = "id IN (SELECT id FROM predictions WHERE state = 'waiting' ORDER BY at LIMIT ?)"
                expired += database.execute(give_up + oldest, (over,)).rowcount
            database.execute("UPDATE totals SET expired = expired + ?", (expired,))
            # Their ids are kept a while longer, and never more of them than predictions may wait.
            database.execute(
                "DELETE FROM predictions WHERE state != 'waiting' AND (at < ? OR id IN (SELECT id FROM predictions"
                " WHERE state != 'waiting' ORDER BY at DESC LIMIT -1 OFFSET ?))",
                (now - 2 * self._settings.expire_seconds, self._settings.max_pending),
            )

    def _waiting(self, id: str) -> tuple[Prediction | None, str | None]:
        row = self._database.execute(
            "SELECT at, state, label, predicted, probability, version, shape, dtype, input FROM predictions"
            " WHERE id = ?",
            (id,),
        ).fetchone()
        if row is None:
            raise HttpError(404, "unknown-id", "no prediction was made with this id, or it was long ago")
        at, state, label, predicted, probability, version, shape, dtype, content = row
        if state == "labelled":
            return None, label
        if state == "expired" or time.time() - at > self._settings.expire_seconds:
            raise HttpError(410, "expired-id", "the prediction with this id has waited too long and was given up")
        input = np.frombuffer(content, dtype).reshape(tuple(map(int, shape.split(","))))
        return Prediction(id, input, predicted, probability, version, at), None

    def _labelled(self, prediction: Prediction, label: str) -> float:
        delay = max(0.0, time.time() - prediction.at)
        with self._database as database:
            database.execute(
                "UPDATE predictions SET state = 'labelled', label = ?, input = NULL, bytes = 0 WHERE id = ?",
                (label, prediction.id),
            )
            database.execute(
                "UPDATE totals SET labelled = labelled + 1, delay_sum = delay_sum + ?, delay_max = max(delay_max, ?)",
                (delay, delay),
            )
        return delay

    def _forget(self, id: str | None) -> int:
        with self._database as database:
            return database.execute("DELETE FROM predictions WHERE id = ?", (id,)).rowcount

    def _counts(self) -> dict[str, Any]:
        (pending,) = self._database.execute("SELECT count(*) FROM predictions WHERE state = 'waiting'").fetchone()
        labelled, expired, total, longest = self._database.execute(
            "SELECT labelled, expired, delay_sum, delay_max FROM totals"
        ).fetchone()
        delay = {"mean": total / labelled, "max": longest} if labelled else None
        return {"pending": pending, "labelled": labelled, "expired": expired, "delay_seconds": delay}


def _open(path: Path) -> sqlite3.Connection:
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=5.0)
    database.execute("PRAGMA journal_mode=WAL")
    # A power cut may cost the last few; a process that dies costs none.
    database.execute("PRAGMA synchronous=OFF")
    database.executescript(SCHEMA)
    return database
