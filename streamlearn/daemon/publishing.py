"""Snapshots beside learning: a copy is taken between two records, a thread of its own writes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlearn import snapshot
from streamlearn.daemon.core import Core
from streamlearn.daemon.events import Events
from streamlearn.logs import event_logger
from streamlearn.run_folder import RunFolder, write_json

log = event_logger("snapshot")

# A large network takes long to write: publishing may take this share of the time, whatever every_seconds says.
LARGEST_SHARE = 0.1


class Publisher:
    """Publishes when something was learned and it is time; at once after a new class, a refit or a restore.

    Changes nothing in the learner: it only reads. What `status` says is written beside it, for when nobody can ask.
    """

    def __init__(
        self,
        state_dir: Path,
        core: Core,
        every_seconds: float,
        status: Callable[[], dict[str, Any]],
        events: Events,
    ) -> None:
        self.last: snapshot.Snapshot | None = None
        self.failed = 0
        self._folder, self._status_file = snapshot.folder_of(state_dir), RunFolder(state_dir).status
        self._core, self._every, self._status, self._events = core, every_seconds, status, events
        self._version = self._newest()
        self._thread: threading.Thread | None = None
        self._next_at = 0.0
        self._urgent = True  # whatever state the learner starts from, the servers should have it
        self._published: Any = None  # what the learner was like at the last one

    def _newest(self) -> int:
        try:
            return snapshot.newest_version(self._folder)
        except snapshot.Unreadable as error:
            log.warning("the last snapshot cannot be read", error=str(error))
            return int(time.time())  # more than can have been published at one a second

    def hurry(self) -> None:
        """What is served should change as soon as possible."""
        self._urgent = True

    def look(self) -> None:
        """Between two records: is one due?"""
        now = time.monotonic()
        if now < self._next_at and not self._urgent:
            return
        if self._thread is not None and self._thread.is_alive():
            return
        learner = self._core.learner
        like = (learner.examples_seen, learner.bias.version, len(learner.classes.index))
        if like == self._published and not self._urgent:
            self._next_at = now + min(self._every, 0.1)
            return
        self._urgent, self._published = False, like
        self._next_at = now + self._every
        self._version += 1
        position = self._core.position
        fresh = snapshot.Snapshot(
            self._version,
            self._core.counters.examples_learned,
            time.time(),
            None if position is None else position.to_plain(),
            learner.state_dict(buffer=False),
        )
        self._thread = threading.Thread(target=self._write, args=(fresh, self._status()), name="snapshot", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """What was learned last is published, too, and all of it is written."""
        if self._thread is not None:
            self._thread.join()
        self._next_at = 0.0
        self.look()
        if self._thread is not None:
            self._thread.join()

    def _write(self, fresh: snapshot.Snapshot, status: dict[str, Any]) -> None:
        begun = time.monotonic()
        facts = {
            "version": fresh.version,
            "published_at": fresh.published_at,
            "examples_seen": fresh.examples_seen,
        }
        try:
            snapshot.publish(self._folder, fresh)
            write_json(self._status_file, status | {"snapshot": facts})
        except OSError as error:
            self.failed += 1
            self._published = None  # it is still due
            log.warning("a snapshot could not be written; the one before is served", error=error.strerror or str(error))
            return
        self.last = fresh
        self._events.add("snapshot", facts)
        took = time.monotonic() - begun
        self._next_at = max(self._next_at, begun + took / LARGEST_SHARE)
