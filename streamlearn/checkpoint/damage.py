"""What is wrong with one checkpoint, and how its files are opened so that it is found out before anything is used."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READ_BYTES = 4 << 20


class Damaged(Exception):
    """A file that is missing, cut, changed, or makes no sense.

    The store falls back to the checkpoint before; only when none is left is it StateCorrupt.
    """


@contextmanager
def opened(path: Path, size: int | None = None) -> Iterator[int]:
    """A descriptor of a regular file of exactly that size: lengths are known good before memory is taken for them."""
    try:
        # O_NONBLOCK: a pipe put in the place of a file must not hang the daemon.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise Damaged(f"{path.name} is missing") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Damaged(f"{path.name} is not a file")
        if size is not None and status.st_size != size:
            raise Damaged(f"{path.name} has {status.st_size} bytes instead of {size}")
        yield descriptor
    finally:
        os.close(descriptor)


def chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, READ_BYTES):
        yield chunk
