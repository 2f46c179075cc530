"""Numbers in memory that several processes see: a small file of doubles, mapped.

Each server writes a file of its own, so nothing is locked, and an addition costs what it costs in plain memory. What a
server has counted stays in its file when it is killed, and the server that takes its place counts on from there: the
sum over all files never falls. That is also why no file is ever left over. prometheus_client's own way for several
processes keeps a file for each process that ever lived, and looks up a key for each addition.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

CELL_BYTES = 8


def own_cells(path: Path | None, count: int) -> memoryview[float]:
    """For the one process that writes. Without a path, or where the disk does not take it: this process's memory."""
    if path is None:
        return memoryview(bytearray(count * CELL_BYTES)).cast("d")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size != count * CELL_BYTES:
            os.ftruncate(descriptor, 0)
            # Really written, not only made longer: on a full disk a page that is not there yet would end the process.
            os.pwrite(descriptor, bytes(count * CELL_BYTES), 0)
            if os.fstat(descriptor).st_size != count * CELL_BYTES:
                raise OSError(28, "the disk is full")
        return memoryview(mmap.mmap(descriptor, count * CELL_BYTES)).cast("d")
    finally:
        os.close(descriptor)


def read_cells(path: Path, count: int) -> Sequence[float] | None:
    """What another process has written so far. None: it is not there, or not of this layout."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return memoryview(content).cast("d").tolist() if len(content) == count * CELL_BYTES else None
