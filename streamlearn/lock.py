"""One owner per state directory.

The lock is an flock: the kernel drops it when its owner dies, however it dies, so it never has to be broken by hand.
The file holds the owner's pid for whoever is refused; it is never unlinked, since a lock on a file that no longer has
its name keeps nobody out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from streamlearn import disk
from streamlearn.errors import StateError, StateLocked

NAME = "lock"
_TRIES, _PAUSE = 10, 0.05  # an owner that is just leaving (or just signing its name) gets half a second


class DirectoryLock:
    """Held from `acquire` to `release` (or within a `with` block).

    The descriptor is closed on exec; a child that is forked without exec would hold the lock as long as it lives.
    """

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._descriptor: int | None = None
        self._signed = True  # the name in the file is ours to take away

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    @property
    def descriptor(self) -> int:
        """For a child process that is to share the lock: it is held until all who have it are gone."""
        assert self._descriptor is not None
        return self._descriptor

    @classmethod
    def shared(cls, state_dir: Path, descriptor: int) -> DirectoryLock:
        """In the child: the lock that its parent holds. Released here, it is still held there."""
        lock = cls(state_dir)
        os.set_inheritable(descriptor, False)
        lock._descriptor, lock._signed = descriptor, False
        return lock

    def acquire(self) -> None:
        if self._descriptor is not None:
            raise RuntimeError("this lock is held already")
        try:
            disk.make_directory(self.state_dir)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.state_dir / NAME, flags, 0o600)
        except OSError as error:
            raise StateError(f"cannot lock {self.state_dir}: {error.strerror}") from error
        try:
            self._lock(descriptor)
            os.ftruncate(descriptor, 0)
            with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise StateError(f"cannot lock {self.state_dir}: {error.strerror}") from error
        except StateLocked:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _lock(self, descriptor: int) -> None:
        for _ in range(_TRIES):
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE)
        owner = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
        raise StateLocked(
            f"{self.state_dir} belongs to a running streamlearn, process {owner}",
            hint="stop that process, or use another state directory",
        )

    def release(self) -> None:
        if self._descriptor is None:
            return
        if self._signed:
            with contextlib.suppress(OSError):  # the name in it is for people; the lock itself goes with the descriptor
                os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> DirectoryLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
