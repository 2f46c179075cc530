"""Saving beside learning: the state is handed over at once, and written by a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from streamlearn.checkpoint.folder import CheckpointInfo
from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.daemon.core import Core, packed
from streamlearn.logs import event_logger
from streamlearn.records.record import Position

log = event_logger("checkpoint")

RETRY_SECONDS = 5.0


class Saver:
    """One save at a time. A save that fails leaves the older checkpoints whole and is tried again soon."""

    def __init__(
        self,
        store: CheckpointStore,
        core: Core,
        every_examples: int,
        every_seconds: float,
        *,
        last: CheckpointInfo | None = None,
        tell: Callable[[CheckpointInfo], None] = lambda info: None,
    ) -> None:
        self.last = last  # at first the one that was loaded, if there was one
        self.saved = self.failed = 0
        self.failures_in_a_row = 0
        self.last_failure = ""
        self.longest_pause = 0.0  # seconds that handing over a state ever took
        self._store, self._core, self._tell = store, core, tell
        self._every_examples, self._every_seconds = every_examples, every_seconds
        self._thread: threading.Thread | None = None
        self._next_at_examples = self._next_place()
        self._tried_at = time.monotonic()
        self._saved_at: tuple[int, Position | None] | None = self._place()  # where the last good save began
        self._again = False  # asked for while another was being written
        self._fault: BaseException | None = None  # of the thread, for the caller to raise

    def _next_place(self) -> int:
        every = self._every_examples
        return (self._core.counters.examples_learned // every + 1) * every if every else 0

    @property
    def unsaved_records(self) -> int:
        """Taken since the newest checkpoint."""
        return 0 if self._saved_at is None else self._core.counters.records_consumed - self._saved_at[0]

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def due_by_examples(self) -> bool:
        """Asked after every record, so that saves fall on the same places of a stream."""
        return self._every_examples > 0 and self._core.counters.examples_learned >= self._next_at_examples

    def due_by_time(self) -> bool:
        if self._again and not self.busy:
            return True
        waited = time.monotonic() - self._tried_at
        if self.failures_in_a_row:
            return waited >= min(RETRY_SECONDS, self._every_seconds or RETRY_SECONDS)
        return 0 < self._every_seconds <= waited and self._unsaved()

    def _unsaved(self) -> bool:
        return self._place() != self._saved_at

    def _place(self) -> tuple[int, Position | None]:
        return self._core.counters.records_consumed, self._core.position

    def save(self, *, wait: bool = False, changed: bool = False, purge: bool = False) -> None:
        """Begin a save, or see to it that one follows the one that is still being written.

        `changed`: by something else than a record. `purge`: what was erased must not be in older checkpoints either,
        so they go as soon as this one is there.
        """
        if changed:
            self._saved_at = None
        self._next_at_examples = self._next_place()
        if self.busy and not wait:
            self._again = True
            return
        self.finish()
        if wait and not self._unsaved() and not self.failures_in_a_row:
            return
        begun = self._tried_at = time.monotonic()
        self._again = False
        arguments = (self._core.state_dict(), self._core.counters.examples_learned, self._place(), purge)
        self._thread = threading.Thread(target=self._write, args=arguments, name="checkpoint")
        self._thread.start()
        self.longest_pause = max(self.longest_pause, time.monotonic() - begun)
        if wait:
            self.finish()

    def finish(self) -> None:
        """Wait for the save that is being written, if there is one."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._fault is not None:
            raise self._fault

    def _write(self, tree: dict[str, Any], seen: int, place: tuple[int, Position | None], purge: bool) -> None:
        try:
            info = self._store.write(packed(tree), examples_seen=seen, position=tree["position"])
            if purge:
                self._store.keep_only(info.number)
        except OSError as error:
            self.failed += 1
            self.failures_in_a_row += 1
            self.last_failure = f"{error.strerror or error}"
            log.error("a checkpoint could not be written; the older ones are whole", error=self.last_failure)
            return
        except BaseException as error:
            self._fault = error
            return
        if self.failures_in_a_row:
            log.info("checkpoints can be written again", failed=self.failures_in_a_row)
        self.failures_in_a_row = 0
        self.last, self._saved_at = info, place
        log.info(
            f"checkpoint {info.number} saved",
            examples=info.examples_seen,
            megabytes=round(info.bytes_written / 1e6, 2),
            seconds=round(info.seconds, 3),
        )
        self._tell(info)
        self.saved += 1  # last: whoever waits for this save finds everything else in place
