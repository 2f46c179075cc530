"""Saving beside learning."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from streamlearn import disk
from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.daemon import saving
from streamlearn.daemon.core import Core
from streamlearn.daemon.saving import Saver
from tests.daemon.test_core import feed, new_core
from tests.records.mixed import examples


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(saving.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def core() -> Core:
    core = new_core()
    feed(core, examples(20))
    return core


def test_by_examples_at_the_same_places_of_a_stream(core: Core, tmp_path: Path) -> None:
    saver = Saver(CheckpointStore(tmp_path), core, 50, 0)
    places = []
    for number, record in enumerate(examples(500, seed=1)):
        feed(core, [record], 20 + number)
        if saver.due_by_examples():
            places.append(core.counters.examples_learned)
            saver.save(wait=True)
    assert places == list(range(50, 501, 50))
    assert saver.saved == 10
    assert not saver.due_by_time()


def test_by_time_if_there_is_something_new(core: Core, tmp_path: Path, clock: Clock) -> None:
    saver = Saver(CheckpointStore(tmp_path), core, 0, 60)
    clock.now += 61
    assert not saver.due_by_time()  # nothing came since it started
    feed(core, examples(1), 20)
    assert saver.due_by_time()
    saver.save(wait=True)
    assert not saver.due_by_time()
    clock.now += 61
    assert not saver.due_by_time()
    feed(core, examples(1), 21)
    assert saver.due_by_time()


def test_waiting_with_nothing_new_writes_nothing(core: Core, tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    Saver(store, core, 0, 0).save(wait=True)
    assert store.numbers() == []
    feed(core, examples(1), 20)
    saver = Saver(store, core, 0, 0)
    saver.save()
    saver.save(wait=True)
    assert store.numbers() == [1]


def test_one_that_is_asked_for_during_another_follows_it(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, fsync = threading.Event(), disk.fsync

    def slow(descriptor: int) -> None:
        assert go_on.wait(30)
        fsync(descriptor)

    monkeypatch.setattr(disk, "fsync", slow)
    saver = Saver(CheckpointStore(tmp_path), core, 0, 0)
    saver.save()
    feed(core, examples(10, seed=1), 20)  # learning goes on meanwhile
    saver.save()
    assert saver.busy
    assert not saver.due_by_time()
    go_on.set()
    saver.finish()
    assert saver.last is not None
    assert saver.last.examples_seen == 20
    assert saver.due_by_time()
    saver.save(wait=True)
    assert saver.last.examples_seen == 30
    assert not saver.due_by_time()


def test_a_failure_is_counted_and_tried_again_soon(
    core: Core, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CheckpointStore(tmp_path)
    saver = Saver(store, core, 0, 60)
    feed(core, examples(1), 20)
    saver.save(wait=True)
    whole = store.show()[0].sha256
    with monkeypatch.context() as full:
        full.setattr(disk, "write", _no_space)
        feed(core, examples(10, seed=1), 21)
        for times in (1, 2, 3):
            clock.now += saving.RETRY_SECONDS
            assert times == 1 or saver.due_by_time()
            saver.save(wait=True)
            assert (saver.failed, saver.failures_in_a_row, saver.saved) == (times, times, 1)
        assert saver.last_failure == "No space left on device"
        assert store.show()[0].sha256 == whole
        assert not any(check.problem for checks in store.verify().values() for check in checks)
        clock.now += saving.RETRY_SECONDS - 1
        assert not saver.due_by_time()
    saver.save(wait=True)
    assert (saver.failures_in_a_row, saver.saved) == (0, 2)
    assert saver.last is not None
    assert saver.last.examples_seen == core.counters.examples_learned


def _no_space(descriptor: int, data: memoryview) -> int:
    raise OSError(28, "No space left on device")


def test_an_error_nobody_foresaw_reaches_the_caller(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    store = CheckpointStore(tmp_path)
    monkeypatch.setattr(store, "write", broken)
    feed(core, examples(1), 20)
    saver = Saver(store, core, 0, 0)
    saver.save()
    with pytest.raises(ZeroDivisionError):
        saver.save(wait=True)
