"""States to save, a small replay buffer, and a disk that fails when told to."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from streamlearn import disk


class Buffer:
    """What a replay buffer is to a checkpoint: slots, and a number that changes with the content of each."""

    def __init__(self, slots: int, row_shape: tuple[int, ...] = (16,), dtype: str = "uint8", seed: int = 0) -> None:
        self.content = np.zeros((slots, *row_shape), dtype)
        self.keys = np.full(slots, -1, np.int64)
        self.random = np.random.default_rng(seed)
        self.changes = 0

    def change(self, slots: Any) -> None:
        slots = np.asarray(slots, np.int64)
        noise = self.random.integers(0, 256, (len(slots), *self.content.shape[1:]))
        self.content[slots] = noise.astype(self.content.dtype)
        self.keys[slots] = self.changes + np.arange(len(slots))
        self.changes += len(slots)

    def empty(self, slots: Any) -> None:
        self.content[slots] = 0
        self.keys[slots] = -1

    def freeze(self, *, copy: bool = True) -> Frozen:
        return Frozen(self.content.copy() if copy else self.content, self.keys.copy())


class Frozen:
    def __init__(self, content: Any, keys: Any) -> None:
        self.content, self.keys = content, keys
        self.dtype, self.row_shape = content.dtype, content.shape[1:]
        self.rows_read = self.released = 0

    def read(self, rows: Any) -> Any:
        self.rows_read += len(rows)
        return self.content[rows]

    def release(self) -> None:
        self.released += 1


def state(buffer: Buffer | None = None, step: int = 0) -> dict[str, Any]:
    """Like a daemon's, but small. A function of its arguments."""
    random = np.random.default_rng(step)
    learner: dict[str, Any] = {
        "model": {"0.weight": random.standard_normal((8, 4)).astype(np.float32), "0.bias": random.standard_normal(4)},
        "rng": {"state": 2**127 + step, "inc": -(2**64)},
        "classes": ["boot", "été", "靴"],
        "loss": 1 / (step + 3),
    }
    if buffer is not None:
        learner["buffer"] = {"inputs": buffer.freeze(), "labels": np.arange(len(buffer.keys)) + step}
    return {"step": step, "position": {"0": 10 * step}, "learner": learner}


def resolved(node: Any) -> Any:
    """With rows as the arrays they stand for."""
    if isinstance(node, dict):
        return {key: resolved(child) for key, child in node.items()}
    if isinstance(node, list):
        return [resolved(child) for child in node]
    if hasattr(node, "read"):
        content = node.read(np.arange(len(node.keys)))
        content[node.keys < 0] = 0
        return content
    return node


def assert_equal(left: Any, right: Any, path: str = "") -> None:
    """To the bit and to the type."""
    if isinstance(left, np.ndarray):
        assert isinstance(right, np.ndarray), path
        assert (left.dtype, left.shape) == (right.dtype, right.shape), path
        assert left.tobytes() == right.tobytes(), path
        return
    assert type(left) is type(right), path
    if isinstance(left, dict):
        assert left.keys() == right.keys(), path
        for key in left:
            assert_equal(left[key], right[key], f"{path}/{key}")
    elif isinstance(left, list):
        assert len(left) == len(right), path
        for index, pair in enumerate(zip(left, right, strict=True)):
            assert_equal(*pair, f"{path}/{index}")
    elif isinstance(left, float):
        assert left.hex() == right.hex(), path
    else:
        assert left == right, path


class FaultyDisk:
    """Records what is done to the disk; the n-th operation fails, and (`for_good`) all after it."""

    def __init__(self, fail_at: int | None = None, *, for_good: bool = False, error: int = errno.ENOSPC) -> None:
        self.fail_at, self.for_good, self.error = fail_at, for_good, error
        self.done: list[tuple[str, str]] = []

    def _do(self, operation: str, what: str) -> None:
        number = len(self.done)
        self.done.append((operation, what))
        if self.fail_at is not None and (number == self.fail_at or (self.for_good and number > self.fail_at)):
            raise OSError(self.error, f"{operation} failed on purpose")

    @contextmanager
    def __call__(self) -> Iterator[FaultyDisk]:
        write, fsync, rename, unlink, fsync_directory = (
            disk.write,
            disk.fsync,
            disk.rename,
            disk.unlink,
            disk.fsync_directory,
        )

        def faulty_write(descriptor: int, data: memoryview) -> int:
            try:
                self._do("write", "")
            except OSError:
                write(descriptor, data[: len(data) // 2])  # a disk fills up in the middle of a write
                raise
            return write(descriptor, data)

        def faulty_fsync(descriptor: int) -> None:
            self._do("fsync", "")
            fsync(descriptor)

        def faulty_rename(source: Any, target: Any) -> None:
            self._do("rename", target.name)
            rename(source, target)

        def faulty_unlink(path: Any) -> None:
            self._do("unlink", path.name)
            unlink(path)

        def faulty_fsync_directory(directory: Any) -> None:
            self._do("fsync_directory", directory.name)
            fsync_directory(directory)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(disk, "write", faulty_write)
            patch.setattr(disk, "fsync", faulty_fsync)
            patch.setattr(disk, "rename", faulty_rename)
            patch.setattr(disk, "unlink", faulty_unlink)
            patch.setattr(disk, "fsync_directory", faulty_fsync_directory)
            yield self
