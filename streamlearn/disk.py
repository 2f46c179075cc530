"""The only room that changes state files: write, fsync, rename, fsync directory, unlink.

A file appears under its name only when all of it is on the disk: it is written under a temporary name in the same
directory, fsynced, renamed, and the directory is fsynced. Whoever reads it sees the old file or the new one, whole.
Files are 0600 and directories 0700: the state holds users' data.

What the operating system refuses (ENOSPC, EROFS, EDQUOT, ...) is raised as the OSError it is: the caller decides
whether to wait, and the files that were there before are untouched.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

TEMPORARY = ".tmp"  # how a name ends while its file is being written
WRITE_BYTES = 4 << 20  # one write: long enough to be fast, short enough for others to get their turn at the disk

Bytes: TypeAlias = bytes | bytearray | memoryview

_serial = itertools.count()


# Each operation is a function of its own, called through this module, so that a test can record them and fail any one.


def write(descriptor: int, data: memoryview) -> int:
    return os.write(descriptor, data)


def fsync(descriptor: int) -> None:
    os.fsync(descriptor)


def rename(source: Path, target: Path) -> None:
    os.replace(source, target)


def unlink(path: Path) -> None:
    os.unlink(path)


def fsync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """With its parents; those that are made here belong to their owner only, those that were there stay as they are."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    fsync_directory(directory.parent)


class NewFile:
    """A file on its way to its name; without `publish` it leaves nothing behind.

    `sha256` and `bytes` tell of what was written so far, so that a file can be named after its content.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bytes = 0
        self._hash = hashlib.sha256()
        self._temporary: Path | None = directory / f"{os.getpid()}-{next(_serial)}{TEMPORARY}"
        # O_EXCL: never write through a name (or a link) that somebody else put there.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self._temporary, flags, 0o600)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, data: Bytes) -> None:
        with memoryview(data) as whole, whole.cast("B") as flat:
            for start in range(0, len(flat), WRITE_BYTES):
                piece = flat[start : start + WRITE_BYTES]
                self._hash.update(piece)
                self.bytes += len(piece)
                while piece:  # the system may take less than it was given
                    piece = piece[write(self._descriptor, piece) :]

    def publish(self, name: str) -> Path:
        """All of it is on the disk, under that name, when this returns."""
        if self._temporary is None:
            raise RuntimeError("published already")
        fsync(self._descriptor)
        target = self.directory / name
        rename(self._temporary, target)
        self._temporary = None
        fsync_directory(self.directory)
        return target

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        if self._temporary is not None:
            # What led here is the error to tell; a file that cannot be removed now is swept later.
            with contextlib.suppress(OSError):
                unlink(self._temporary)


def write_file(path: Path, pieces: Iterable[Bytes]) -> int:
    """The whole file or none of it; returns its size. The directory must exist."""
    with NewFile(path.parent) as file:
        for piece in pieces:
            file.write(piece)
        file.publish(path.name)
    return file.bytes


def move(source: Path, target: Path) -> None:
    """From one directory to another, and on the disk in both when it returns."""
    rename(source, target)
    fsync_directory(target.parent)
    if source.parent != target.parent:
        fsync_directory(source.parent)


def remove(paths: Iterable[Path]) -> None:
    """Files that may be gone already. Not fsynced: a file that comes back after a power cut is removed again."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            unlink(path)
