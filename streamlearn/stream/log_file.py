"""The embedded log's file: how it is made, recognised and opened, and what SQLite's errors mean to a user."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamlearn.errors import StreamAway, StreamError

FORMAT = 1
# Marks the file as ours for `file` and for us: "SLlg".
APPLICATION_ID = 0x534C6C67

SCHEMA = """
CREATE TABLE log (
    id TEXT NOT NULL,                -- made once with the file: tells this log from another one at the same path
    first_offset INTEGER NOT NULL,   -- the oldest record still here
    next_offset INTEGER NOT NULL     -- what the next record will get
);
CREATE TABLE records (
    offset INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, key BLOB, headers BLOB NOT NULL, value BLOB NOT NULL
);
CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL, offset INTEGER NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    timestamp INTEGER NOT NULL, key BLOB, headers BLOB NOT NULL, value BLOB NOT NULL,
    UNIQUE (partition, offset)       -- a record that is refused again after a crash is not written again
);
"""


def connect(path: Path, *, busy_timeout: float, create: bool = True, durable: bool = True) -> sqlite3.Connection:
    """A connection to the log at `path`. Transactions are begun by hand."""
    with sqlite_errors(path):
        if not create and not path.exists():
            raise StreamAway(f"{path}: there is no log yet", hint="whoever appends or follows first makes it")
        # Only a file that is not there yet may be opened by hand: closing it would drop the locks SQLite holds on it
        # for other connections of this process. SQLite gives the -wal and -shm files the same mode.
        if not path.exists():
            try:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                pass
            except OSError as error:
                raise StreamError(
                    f"{path}: cannot make the log: {error.strerror}",
                    hint="its directory must exist and be writable by this user",
                ) from error
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path, time.monotonic() + busy_timeout)
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare(connection: sqlite3.Connection, path: Path, deadline: float) -> None:
    while True:
        try:
            if not _is_log(connection, path):
                connection.execute("PRAGMA page_size=8192")
                # Switching to WAL does not wait for others, it fails at once: hence the loop.
                connection.execute("PRAGMA journal_mode=WAL")
                with transaction(connection):
                    if not _is_log(connection, path):
                        _create(connection)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_log(connection: sqlite3.Connection, path: Path) -> bool:
    """False for an empty file; raises StreamError for one that is something else."""
    # Counted before the id is read: whoever makes the log meanwhile writes both at once, so tables without the id of a
    # log belong to something else.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID:
        if version > FORMAT:
            raise StreamError(
                f"{path}: written in log format {version}, this streamlearn knows formats up to {FORMAT}",
                hint="use the newer streamlearn that wrote it",
            )
        return True
    if tables:
        raise _not_a_log(path)
    return False


def _create(connection: sqlite3.Connection) -> None:
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute("INSERT INTO log VALUES (?, 0, 0)", (str(uuid.uuid4()),))
    connection.execute(f"PRAGMA user_version={FORMAT}")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")


def _not_a_log(path: Path) -> StreamError:
    return StreamError(f"{path}: is not a streamlearn log", hint="give the path of a log, or one where no file is yet")


def file_identity(path: Path) -> tuple[int, int] | None:
    """Tells whether a path still leads to the file that was opened; None: to no file at all."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Takes the write lock at the start, so that waiting for others happens here and never in the middle."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has rolled it back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """What SQLite raises, said in our words. What may pass by itself is StreamAway."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StreamAway(f"{path}: the disk is full", hint="free some space; nothing was lost") from error
        if code == sqlite3.SQLITE_READONLY:
            raise StreamAway(
                f"{path}: cannot be written: {error}", hint="is the disk or the file read-only?"
            ) from error
        if code == sqlite3.SQLITE_BUSY:
            raise StreamAway(
                f"{path}: another process has been writing for too long", hint="see who holds it"
            ) from error
        if code == sqlite3.SQLITE_IOERR:
            raise StreamAway(f"{path}: the disk failed: {error}", hint="see the system log") from error
        if code == sqlite3.SQLITE_CANTOPEN:
            raise StreamError(
                f"{path}: cannot be opened: {error}", hint="it must be a file this user may read and write"
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise _not_a_log(path) from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise StreamError(f"{path}: is damaged: {error}", hint="restore it from a copy") from error
        raise StreamError(f"{path}: {error}") from error
