"""The loop, on a stream in memory: what a real one cannot be made to do at a chosen moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamlearn import disk
from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.daemon import learning as loop
from streamlearn.daemon.learning import POLL_RECORDS, Learning
from streamlearn.errors import LearnerError, PositionLost, StateLocked, StreamAway, StreamError
from streamlearn.lock import DirectoryLock
from streamlearn.records.record import Record
from streamlearn.settings.daemon import Settings
from tests.daemon.streams import ListStream
from tests.records.mixed import examples, mixed


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here."""
    sleep = loop.time.sleep
    monkeypatch.setattr(loop.time, "sleep", lambda seconds: sleep(min(seconds, 0.001)))
    monkeypatch.setattr(loop, "LONGEST_WAIT", 0.01)


def new_learning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stream: ListStream,
    stop: Callable[[Learning], bool] = lambda learning: learning.caught_up,
    **checkpoint: Any,
) -> Learning:
    monkeypatch.setattr(loop, "open_stream", lambda url, settings: stream)
    learner = {"buffer_size": 30, "batch_size": 5, "replay_batch": 5}
    settings = Settings.model_validate({"state_dir": tmp_path, "learner": learner, "checkpoint": checkpoint})
    learning = Learning(settings, lambda: stop(learning), lambda learning: None)
    return learning


def saved(tmp_path: Path) -> tuple[int, str]:
    info, _ = CheckpointStore(tmp_path).show()
    return info.examples_seen, info.sha256


def test_until_everything_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ListStream(mixed(1200))
    learning = new_learning(tmp_path, monkeypatch, stream)
    learning.run()
    assert learning.core.counters.records_consumed == len(stream.records)
    assert saved(tmp_path)[0] == learning.core.counters.examples_learned
    assert len(stream.letters) == learning.core.counters.records_rejected > 0
    assert stream.closed
    with DirectoryLock(tmp_path):  # is free again
        pass


def test_told_to_stop_it_does_not_finish_what_one_poll_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ListStream(examples(400))
    learning = new_learning(tmp_path, monkeypatch, stream, lambda one: one.core.counters.examples_learned >= 50)
    learning.run()
    assert saved(tmp_path)[0] == 50
    new_learning(tmp_path, monkeypatch, ListStream(examples(400))).run()
    assert saved(tmp_path)[0] == 400


@pytest.mark.parametrize("call", ["open", "poll", "ends", "send_dead_letter", "passed"])
def test_a_stream_that_is_away_for_a_while_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    records = mixed(300)
    new_learning(tmp_path / "whole", monkeypatch, ListStream(records)).run()
    calls: Counter[str] = Counter()

    def before(name: str) -> None:
        calls[name] += 1
        if name == call and calls[name] in (1, 2, 4):
            raise StreamAway("gone fishing")

    stream = ListStream(records, before)
    reasons = set()

    def stop(learning: Learning) -> bool:
        reasons.add(learning.reason)
        return learning.caught_up

    new_learning(tmp_path / "state", monkeypatch, stream, stop).run()
    assert calls[call] >= (1 if call == "passed" else 2)
    assert saved(tmp_path / "state") == saved(tmp_path / "whole")
    assert len({record.offset for record, _ in stream.letters}) == len(stream.letters)
    if call in ("open", "poll", "send_dead_letter"):
        assert "gone fishing" in reasons


@pytest.mark.parametrize("call", ["open", "poll", "send_dead_letter"])
def test_told_to_stop_while_the_stream_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def before(name: str) -> None:
        if name == call:
            raise StreamAway("gone fishing")

    stream = ListStream([*examples(50), Record(b"?"), *examples(50)], before)
    learning = new_learning(tmp_path, monkeypatch, stream, lambda one: one.reason is not None)
    learning.run()
    assert stream.closed
    if call == "send_dead_letter":
        assert learning.core.position is not None
        assert learning.core.position.offsets == {0: 50}
        assert saved(tmp_path)[0] == 50
    elif call == "open":
        assert CheckpointStore(tmp_path).numbers() == []  # nothing was known, so nothing is kept


@pytest.mark.parametrize("error", [StreamError("refused"), PositionLost("gone")])
def test_the_end_of_a_stream_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    calls: Counter[str] = Counter()

    def before(name: str) -> None:
        calls[name] += 1
        if name == "poll" and calls[name] == 2:
            raise error

    learning = new_learning(tmp_path, monkeypatch, ListStream(examples(700), before))
    with pytest.raises(type(error)):
        learning.run()
    assert learning.stopped
    assert learning.reason == error.args[0]
    assert saved(tmp_path)[0] == POLL_RECORDS


def test_an_error_in_the_middle_of_a_batch_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is neither waiting nor learned then: a checkpoint of that would lose it."""
    stream = ListStream(examples(100))
    learning = new_learning(tmp_path, monkeypatch, stream, every_examples=20)
    learning.startup()
    learn = learning.core.learner.learn

    def failing(*arguments: Any, **options: Any) -> Any:
        if learning.core.counters.examples_learned == 50:
            raise LearnerError("cannot")
        return learn(*arguments, **options)

    monkeypatch.setattr(learning.core.learner, "learn", failing)
    monkeypatch.setattr(learning, "startup", lambda: None)
    with pytest.raises(LearnerError):
        learning.run()
    assert saved(tmp_path)[0] <= 50
    new_learning(tmp_path, monkeypatch, ListStream(examples(100))).run()
    assert saved(tmp_path)[0] == 100


def test_saves_that_fail_pause_learning_and_it_goes_on_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = mixed(2000)
    new_learning(tmp_path / "whole", monkeypatch, ListStream(records)).run()
    monkeypatch.setattr("streamlearn.daemon.saving.RETRY_SECONDS", 0.01)
    write = disk.write
    failing = True

    def full(descriptor: int, data: memoryview) -> int:
        if failing:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(disk, "write", full)
    paused_at: list[int] = []

    def stop(learning: Learning) -> bool:
        nonlocal failing
        if learning.reason is not None:
            assert learning.reason == "checkpoints cannot be written: No space left on device"
            paused_at.append(learning.core.counters.records_consumed)
        if len(paused_at) > 20:
            failing = False
        return learning.caught_up

    learning = new_learning(
        tmp_path / "state", monkeypatch, ListStream(records), stop, every_examples=10, max_failures=4
    )
    learning.run()
    assert len(set(paused_at[:20])) == 1, "it went on learning while it should pause"
    assert 0 < paused_at[0] < len(records)
    assert learning.saver.failed >= 4
    assert saved(tmp_path / "state") == saved(tmp_path / "whole")


def test_a_stop_while_saves_fail_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(disk, "write", full)
    stream = ListStream(examples(2000))
    learning = new_learning(
        tmp_path, monkeypatch, stream, lambda one: one.reason is not None, every_examples=10, max_failures=2
    )
    learning.run()
    assert stream.closed
    assert CheckpointStore(tmp_path).numbers() == []


def test_the_directory_of_another_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ListStream(examples(10))
    with DirectoryLock(tmp_path), pytest.raises(StateLocked):
        new_learning(tmp_path, monkeypatch, stream).run()
    assert not (tmp_path / "checkpoints").exists()


def test_after_a_restart_the_checkpoint_it_came_from_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_learning(tmp_path, monkeypatch, ListStream(examples(50))).run()
    learning = new_learning(tmp_path, monkeypatch, ListStream(examples(50)))
    learning.run()
    assert learning.saver.last is not None
    assert learning.saver.last.examples_seen == 50
    assert CheckpointStore(tmp_path).numbers() == [learning.saver.last.number]
