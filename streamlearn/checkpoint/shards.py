"""Rows on disk: files named after their content, which checkpoints share.

A shard is a safetensors file with two arrays: "rows", and "digests" with the SHA-256 of each row. Its name is the
SHA-256 of the file. It never changes; a row that changes is written into a new shard, and a shard goes when no
checkpoint that is kept points into it.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamlearn import disk
from streamlearn.checkpoint.arrays import header
from streamlearn.checkpoint.damage import Damaged, chunks, opened
from streamlearn.checkpoint.tree import AnyArray, Rows, raw

SHARD_BYTES = 8 << 20  # small enough that rewriting what lives in one is a small part of a save
READ_ROWS_BYTES = 1 << 20  # asked of Rows.read at a time: the buffer is kept from others for well under a millisecond
_BREATH_BYTES, _BREATH = 96 << 10, 1e-4
DIGEST = 32

Digests = NDArray[np.uint8]  # one row of 32 bytes each


@dataclass(frozen=True)
class RowKind:
    """What one row is."""

    dtype: str
    shape: tuple[int, ...]

    @cached_property
    def bytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def fitting(self, size: int) -> int:
        """How many rows fill that many bytes; at least one."""
        return max(1, size // max(1, self.bytes))


@dataclass(frozen=True)
class Shard:
    sha256: str
    rows: int

    @property
    def name(self) -> str:
        return f"{self.sha256}.safetensors"

    def header(self, kind: RowKind) -> bytes:
        return header([("rows", kind.dtype, (self.rows, *kind.shape)), ("digests", "uint8", (self.rows, DIGEST))])

    def size(self, kind: RowKind) -> int:
        return len(self.header(kind)) + self.rows * (kind.bytes + DIGEST)


def digest_rows(rows: AnyArray, *, pausing: bool = False) -> Digests:
    """The SHA-256 of each row.

    One row is hashed too quickly for other threads to get the interpreter in between, and a learner would stand still
    for as long as all of them take: where one is learning, `pausing` stops for a breath every 96 KiB.
    """
    view, size = raw(rows), raw(rows[:1]).nbytes
    breath = max(1, _BREATH_BYTES // max(1, size))
    digests = bytearray()
    for index in range(len(rows)):
        digests += hashlib.sha256(view[index * size : (index + 1) * size]).digest()
        if pausing and index % breath == breath - 1:
            time.sleep(_BREATH)
    return np.frombuffer(digests, np.uint8).reshape(-1, DIGEST)


def write_shard(directory: Path, kind: RowKind, rows: Rows, slots: NDArray[np.int64]) -> tuple[Shard, Digests, int]:
    """Those slots, one after the other, in a new shard; also its digests and how many bytes were written.

    It is written even if a file of that name is there: that one may have been damaged since.
    """
    digests = np.empty((len(slots), DIGEST), np.uint8)
    step = kind.fitting(READ_ROWS_BYTES)
    with disk.NewFile(directory) as file:
        file.write(Shard("", len(slots)).header(kind))
        for start in range(0, len(slots), step):
            wanted = slots[start : start + step]
            block = rows.read(wanted)
            if block.shape != (len(wanted), *kind.shape) or block.dtype.name != kind.dtype:
                raise ValueError(f"rows of {kind} were promised, {block.dtype} of {block.shape} came")
            digests[start : start + step] = digest_rows(block, pausing=True)
            file.write(raw(block))
        file.write(raw(digests))
        shard = Shard(file.sha256, len(slots))
        file.publish(shard.name)
    return shard, digests, file.bytes


def check_shard(directory: Path, kind: RowKind, shard: Shard) -> Digests:
    """The row digests of a shard whose every byte is as it was written; anything else is Damaged."""
    start = shard.header(kind)
    whole, tail = hashlib.sha256(), shard.rows * DIGEST
    digests = bytearray()
    with opened(directory / shard.name, shard.size(kind)) as descriptor:
        if os.pread(descriptor, len(start), 0) != start:
            raise Damaged(f"{shard.name} does not hold rows of {kind.dtype} {kind.shape}")
        for chunk in chunks(descriptor):
            whole.update(chunk)
        if whole.hexdigest() != shard.sha256:
            raise Damaged(f"{shard.name} has changed since it was written")
        digests += os.pread(descriptor, tail, shard.size(kind) - tail)
    if len(digests) != tail:
        raise Damaged(f"{shard.name} is cut")
    return np.frombuffer(digests, np.uint8).reshape(-1, DIGEST)


def read_rows(directory: Path, kind: RowKind, shard: Shard, places: NDArray[np.int64]) -> AnyArray:
    """The rows at those places (ascending) of one shard."""
    size, start = kind.bytes, len(shard.header(kind))
    content = bytearray()
    with opened(directory / shard.name, shard.size(kind)) as descriptor:
        # Neighbours are read together.
        for run in np.split(places, np.flatnonzero(np.diff(places) != 1) + 1):
            content += os.pread(descriptor, len(run) * size, start + int(run[0]) * size)
    if len(content) != len(places) * size:
        raise Damaged(f"{shard.name} is cut")
    return np.frombuffer(content, np.dtype(kind.dtype).newbyteorder("<")).reshape(len(places), *kind.shape)
