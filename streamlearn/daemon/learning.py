"""The learner's whole life: startup, main loop, shutdown."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from streamlearn import disk
from streamlearn.checkpoint.folder import CheckpointInfo
from streamlearn.checkpoint.retention import Retention
from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.daemon.control import Control
from streamlearn.daemon.core import Core
from streamlearn.daemon.events import Events
from streamlearn.daemon.happenings import tell
from streamlearn.daemon.learner_metrics import LearnerMetrics
from streamlearn.daemon.operations import Operations
from streamlearn.daemon.publishing import Publisher
from streamlearn.daemon.restoring import restore
from streamlearn.daemon.saving import Saver
from streamlearn.daemon.status import status
from streamlearn.daemon.timing import TimedLearner
from streamlearn.errors import BadRecord, PositionLost, StreamAway, StreamError
from streamlearn.lock import DirectoryLock
from streamlearn.logs import event_logger
from streamlearn.metrics.catalogue import buckets_of
from streamlearn.metrics.histogram import Histogram
from streamlearn.records.record import Position, Record
from streamlearn.run_folder import RunFolder, write_json
from streamlearn.settings.daemon import Settings
from streamlearn.stream.url import open_stream
from streamlearn.weights import read_weights

log = event_logger("learner")

POLL_RECORDS = 200
POLL_SECONDS = 0.05  # also how long a request on the control socket may have to wait
LOOK_SECONDS = 1.0  # between two looks at the lag
ACCURACY_SECONDS = 5.0  # between two events that tell it
LONGEST_WAIT = 5.0  # between two tries to reach a stream that is away


class Stopping(Exception):
    """Somebody asked to stop while we waited for something."""


class Learning:
    """Follows the stream until `stop` says so. `tick` is called about ten times a second, whatever happens.

    `lock` is the state directory's, if the caller holds it already. `controlled`: others may ask things of it.
    """

    def __init__(
        self,
        settings: Settings,
        stop: Callable[[], bool],
        tick: Callable[[Learning], None],
        lock: DirectoryLock | None = None,
        *,
        controlled: bool = False,
    ) -> None:
        self.settings = settings
        self.reason: str | None = None  # why nothing is learned right now, if it should be
        self.started_at = time.time()
        self.idle = True
        self.stopped = False
        self.stream_url = settings.stream_url
        self.lag: int | None = None
        self.lags: dict[int, int] = {}  # of each partition, as far as known
        self.letters_sent = self.letters_failed = 0
        self.save_seconds = Histogram(buckets_of("checkpoint_duration_seconds"))
        self.fallbacks = 0  # damaged checkpoints passed over at the start
        self.following = False  # the start went well
        self.paused = False
        self.events = Events()
        self._stop, self._tick = stop, tick
        self._lock = lock
        self._run_folder = RunFolder(settings.state_dir)
        self._control = Control(self._run_folder.control, self.events) if controlled else None
        self._operations = Operations(self, self._control) if self._control else None
        self._told_reason: str | None = None
        self._accuracy_told = (0.0, 0)  # when, and after how many answers
        keep = settings.checkpoint
        self._store = CheckpointStore(settings.state_dir, Retention(keep.keep, keep.keep_every, keep.keep_long))
        self._stream = open_stream(settings.stream_url, settings.stream)
        self._looked_at = self._ticked_at = 0.0
        self._passed: Any = None

    @property
    def caught_up(self) -> bool:
        """Nothing is left on the stream to learn."""
        return self.idle and self.lag == 0 and self.reason is None

    def run(self) -> None:
        try:
            self.startup()
            self.main_loop()
        except Stopping:
            pass
        except (StreamError, PositionLost) as error:
            self.reason = error.message
            self.shutdown()
            raise
        except BaseException:
            self._let_go()  # in the middle of something, perhaps: what the last checkpoint says stands
            raise
        self.shutdown()

    # ------------------------------------------------------------------ startup

    def startup(self) -> None:
        """Lock, load, open: in this order, so that nothing is touched that another daemon owns."""
        if self._lock is None:
            self._lock = DirectoryLock(self.settings.state_dir)
            self._lock.acquire()
        self._run_folder.make()
        self.paused = self._run_folder.paused.exists()
        torch.set_num_threads(self.settings.threads)
        learner = self.settings.learner
        self.learner = TimedLearner(learner, weights=read_weights(learner.weights) if learner.weights else None)
        self.core = Core(self.settings, self.learner, self._send_dead_letter)
        loaded = restore(self._store, self.core)
        self.fallbacks = len(loaded.skipped) if loaded else 0
        self.metrics = LearnerMetrics(self)
        every = self.settings.checkpoint
        self.saver = Saver(
            self._store,
            self.core,
            every.every_examples,
            every.every_seconds,
            last=loaded.info if loaded else None,
            tell=self._saved,
        )
        self.publisher = Publisher(
            self.settings.state_dir, self.core, self.settings.snapshot.every_seconds, lambda: status(self), self.events
        )
        if self._control:
            self._control.start()
        self.publisher.look()
        position = self.core.position
        allow_gap = self.settings.stream.from_earliest
        self.core.position = self._patiently(lambda: self._stream.open(position, allow_gap=allow_gap))
        self.following = True
        log.info(
            "following the stream",
            url=self._stream.url,
            offsets=dict(self.core.position.offsets) if self.core.position else {},
            examples=self.core.counters.examples_learned,
        )

    # ------------------------------------------------------------------ main loop

    def main_loop(self) -> None:
        while not self._stop():
            self._look()
            self._attend()
            if self.saver.failures_in_a_row >= self.settings.checkpoint.max_failures:
                log.error("learning pauses until a checkpoint can be written", error=self.saver.last_failure)
                self._blocked("checkpoints cannot be written: " + self.saver.last_failure)
                continue
            try:
                records = self._stream.poll(POLL_RECORDS, POLL_SECONDS)
            except StreamAway as error:
                self._wait_for_stream(error, 0.5)
                continue
            self.reason = None
            self.idle = not records
            for record in records:
                if not self.core.take(record):
                    continue
                if self.core.happenings:
                    self.tell_happenings()
                if self.saver.due_by_examples():
                    self.saver.save()
                self._look()
                self._attend()
                if self._stop():
                    return

    def _look(self) -> None:
        """Now and then: is it time to save, how far behind are we, and let others have a look at us."""
        now = time.monotonic()
        if now - self._ticked_at < 0.1:
            return
        self._ticked_at = now
        if self.saver.due_by_time():
            self.saver.save()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._measure_lag()
            self._pass_on()
            self._tell_accuracy(now)
        self._tick(self)

    def _tell_accuracy(self, now: float) -> None:
        counters = self.core.counters
        answered = counters.examples_learned + counters.examples_evaluated
        if now - self._accuracy_told[0] >= ACCURACY_SECONDS and answered != self._accuracy_told[1]:
            self._accuracy_told = (now, answered)
            groups = {group["name"]: group["accuracy"] for group in status(self)["groups"]}
            self.events.add("accuracy", {"groups": groups, "examples": counters.examples_learned})

    def _measure_lag(self) -> None:
        position = self.core.position
        if position is None:
            return
        try:
            ends = self._stream.ends()
        except StreamAway:
            self.lag, self.lags = None, {}
            return
        self.lags = {part: max(0, end - position.offsets.get(part, 0)) for part, end in ends.items()}
        self.lag = sum(self.lags.values())

    def _pass_on(self) -> None:
        """Tell the stream, after a save, what no checkpoint needs any more."""
        last = self.saver.last
        if last is None or last.number == self._passed:
            return
        self._passed = last.number
        oldest = next((position for position in self._store.positions() if position is not None), None)
        if oldest is not None and last.position is not None:
            with suppress(StreamAway):  # told again after the next save
                self._stream.passed(Position.from_plain(last.position), Position.from_plain(oldest))

    def tell_happenings(self) -> None:
        happened, self.core.happenings = self.core.happenings, []
        for happening in happened:
            tell(happening)
            self.events.add(happening.kind, happening.fields)
            if happening.kind == "flush":
                self.saver.save()
            elif happening.kind in ("new-class", "bias-refit"):
                self.publisher.hurry()

    # ------------------------------------------------------------------ what others want, between two records

    def _attend(self) -> None:
        self._answer_and_publish()
        while self.paused:
            self._blocked(None)

    def _answer_and_publish(self) -> None:
        if self._operations:
            self._operations.attend()
        self.publisher.look()
        if self.reason != self._told_reason:
            self._write_status()

    def pause(self, paused: bool) -> None:
        """Until it is resumed, over restarts too."""
        if paused and not self.paused:
            disk.write_file(self._run_folder.paused, [b""])
        elif not paused:
            disk.remove([self._run_folder.paused])
        if paused != self.paused:
            self.paused = paused
            self.events.add("paused" if paused else "resumed", {"examples": self.core.counters.examples_learned})

    def _saved(self, info: CheckpointInfo) -> None:
        """In the saver's thread."""
        self.save_seconds.observe(info.seconds)
        self.events.add("checkpoint", {"id": info.number, "examples_seen": info.examples_seen})

    def _write_status(self) -> None:
        """For when nobody can ask us any more."""
        self._told_reason = self.reason
        with suppress(OSError):  # a full disk: the servers have the last one
            write_json(self._run_folder.status, status(self))

    # ------------------------------------------------------------------ waiting for others

    def _send_dead_letter(self, record: Record, error: BadRecord) -> None:
        """The position does not move past a bad record before its dead letter is durable."""

        def send() -> None:
            try:
                self.letters_sent += self._stream.send_dead_letter(record, error.reason, error.message)
            except StreamError:
                self.letters_failed += 1
                raise

        self._patiently(send)

    def _patiently(self, action: Callable[[], Any]) -> Any:
        wait = 0.5
        while True:
            try:
                result = action()
            except StreamAway as error:
                self._wait_for_stream(error, wait)
                wait = min(2 * wait, LONGEST_WAIT)
            else:
                self.reason = None
                return result

    def _wait_for_stream(self, error: StreamAway, seconds: float) -> None:
        log.warning("the stream does not answer; trying again", error=str(error))
        self.lag, self.lags = None, {}
        self._blocked(error.message, seconds)

    def _blocked(self, reason: str | None, seconds: float = 0.2) -> None:
        self.reason, self.idle = reason, True
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._stop():
                raise Stopping
            self._tick(self)
            self._answer_and_publish()
            if reason is None and not self.paused:
                return
            time.sleep(0.02)

    # ------------------------------------------------------------------ shutdown

    def shutdown(self) -> None:
        """The state is whole here: it is what the records taken so far make of it."""
        self.stopped = True
        self.tell_happenings()
        self.saver.save(wait=True)
        self.publisher.finish()
        self._write_status()
        self._pass_on()
        self._tick(self)
        self._let_go()
        log.info(
            "stopped", examples=self.core.counters.examples_learned, checkpoint=getattr(self.saver.last, "number", None)
        )

    def _let_go(self) -> None:
        if self._control:
            self._control.stop()
        if hasattr(self, "saver"):
            self.saver.finish()  # nobody else may own the directory while something is being written
        self._stream.close()
        if self._lock is not None:
            self._lock.release()
