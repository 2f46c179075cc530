"""Cost follows what changed, and the digest does not depend on how the rows came to be where they are."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from streamlearn.checkpoint import CheckpointStore, Retention, index
from streamlearn.checkpoint.index import RowIndex, to_move
from streamlearn.checkpoint.shards import RowKind, Shard
from tests.checkpoint.states import Buffer, assert_equal, resolved, state
from tests.checkpoint.test_store import every_failure


@pytest.fixture
def small_shards(monkeypatch):
    """16 rows of 16 bytes fill a shard, so that a small buffer goes through what a large one does."""
    monkeypatch.setattr(index, "SHARD_BYTES", 256)
    monkeypatch.setattr(index, "SMALL_BYTES", 64)


def stored_bytes(store: CheckpointStore) -> int:
    return sum(path.stat().st_size for path in store.folder.shards.iterdir())


def test_bytes_follow_what_changed(tmp_path):
    slots = 100_000
    buffer = Buffer(slots, (32, 32, 3))
    for start in range(0, slots, 10_000):
        buffer.change(np.arange(start, start + 10_000))
    store = CheckpointStore(tmp_path)
    whole = store.write({"rows": buffer.freeze(copy=False)}, examples_seen=slots)
    assert 1 <= whole.bytes_written / buffer.content.nbytes < 1.02
    buffer.change(np.random.default_rng(1).choice(slots, 1000, replace=False))
    rows = buffer.freeze(copy=False)
    info = CheckpointStore(tmp_path)
    info.load()
    part = info.write({"rows": rows}, examples_seen=slots + 1000)
    assert rows.rows_read == 1000
    assert part.bytes_written < 0.02 * whole.bytes_written
    nothing = info.write({"rows": buffer.freeze(copy=False)}, examples_seen=slots + 1000)
    assert nothing.bytes_written < 0.01 * whole.bytes_written
    assert nothing.sha256 == part.sha256 != whole.sha256


def test_a_history_of_saves_equals_a_fresh_one(tmp_path, small_shards):
    random = np.random.default_rng(0)
    buffer = Buffer(300)
    store = CheckpointStore(tmp_path / "history")
    for step in range(80):
        buffer.change(random.choice(300, 12, replace=False))
        if step % 7 == 0:
            buffer.empty(random.choice(300, 5, replace=False))
        if step % 20 == 19:
            store = CheckpointStore(tmp_path / "history")
            store.load()
        info = store.write(state(buffer, step), examples_seen=step)
    fresh = CheckpointStore(tmp_path / "fresh").write(state(buffer, 79), examples_seen=79)
    assert info.sha256 == fresh.sha256
    assert_equal(resolved(CheckpointStore(tmp_path / "history").load().tree), resolved(state(buffer, 79)))
    assert all(not check.problem for checks in store.verify().values() for check in checks)


def test_garbage_is_bounded_and_so_is_each_save(tmp_path, small_shards):
    random = np.random.default_rng(0)
    slots, changed = 800, 16
    buffer = Buffer(slots)
    buffer.change(np.arange(slots))
    store = CheckpointStore(tmp_path, Retention(keep=1, keep_long=0))
    whole = store.write({"rows": buffer.freeze()}, examples_seen=0)
    rows_read = []
    for step in range(160):
        buffer.change(random.choice(slots, changed, replace=False))
        rows = buffer.freeze()
        store.write({"rows": rows}, examples_seen=step)
        rows_read.append(rows.rows_read)
        assert stored_bytes(store) < 2.4 * whole.bytes_total
    assert max(rows_read) <= 2 * changed
    assert min(rows_read) == changed
    assert sum(rows_read[-50:]) > 50 * changed  # some were moved


def test_many_tiny_saves_do_not_leave_as_many_shards(tmp_path, small_shards):
    buffer = Buffer(1000)
    buffer.change(np.arange(1000))
    store = CheckpointStore(tmp_path, Retention(keep=1, keep_long=0))
    for step in range(300):
        buffer.change([step])
        store.write({"rows": buffer.freeze()}, examples_seen=step)
    assert len(list(store.folder.shards.iterdir())) < 64 + 2 * 63 + 10


def test_what_is_moved_comes_from_the_worst_shards():
    def moved(rows: list[int], live: list[int], changed: int) -> list[int]:
        shard = np.repeat(np.arange(len(live)), live)
        slots = len(shard)
        zeros = np.zeros(slots, np.int64)
        shards = [Shard(str(number), size) for number, size in enumerate(rows)]
        before = RowIndex(RowKind("uint8", (1 << 20,)), shards, zeros, shard, zeros, np.zeros((slots, 32), np.uint8))
        out = to_move(before, np.ones(slots, bool), changed)
        return np.bincount(shard[out], minlength=len(live)).tolist()

    assert moved([100, 100, 100], [90, 10, 50], 1000) == [0, 0, 0]
    assert moved([100, 100, 100], [80, 10, 50], 1000) == [0, 10, 0]
    assert moved([100, 100, 100], [80, 10, 50], 4) == [0, 4, 0]
    assert moved([100, 100, 100], [20, 0, 30], 1000) == [20, 0, 30]
    assert moved([100, 100, 100], [20, 0, 90], 1000) == [0, 0, 0]
    assert moved([100, 100, 100], [9, 0, 90], 1000) == [9, 0, 0]
    assert moved([1] * 200, [1] * 200, 50) == [1] * 50 + [0] * 150  # none is garbage, but they are too many


def test_any_operation_of_a_save_that_moves_rows_may_fail(tmp_path, small_shards):
    random = np.random.default_rng(3)
    buffer = Buffer(60)
    buffer.change(np.arange(60))
    store = CheckpointStore(tmp_path / "prepared", Retention(keep=2, keep_long=0))
    step, old, moves = 0, {}, False
    while not moves:
        step += 1
        shutil.rmtree(tmp_path / "before", ignore_errors=True)
        if step > 1:
            shutil.copytree(tmp_path / "prepared", tmp_path / "before")
        old = resolved(state(buffer, step - 1))
        buffer.change(random.choice(60, 6, replace=False))
        tree = state(buffer, step)
        store.write(tree, examples_seen=step)
        moves = step > 1 and tree["learner"]["buffer"]["inputs"].rows_read > 6
    new = resolved(state(buffer, step))
    count = every_failure(
        tmp_path / "before", lambda store: store.write(state(buffer, step), examples_seen=step), tmp_path, [old, new]
    )
    assert count >= 10


def test_a_buffer_of_another_shape_or_size(tmp_path, small_shards):
    store = CheckpointStore(tmp_path)
    for slots, shape, dtype in (
        (50, (16,), "uint8"),
        (80, (16,), "uint8"),
        (30, (16,), "uint8"),
        (30, (4,), "float32"),
    ):
        buffer = Buffer(slots, shape, dtype)
        buffer.change(np.arange(slots))
        store.write(state(buffer, slots), examples_seen=0)
        assert_equal(resolved(store.load().tree), resolved(state(buffer, slots)))
    for shape in ((), (0,), (2, 0)):
        buffer = Buffer(5, shape)
        buffer.change([0, 3])
        store.write({"rows": buffer.freeze()}, examples_seen=0)
        assert_equal(resolved(CheckpointStore(tmp_path).load().tree)["rows"], buffer.content)
    for slots in (0, 4):
        store.write({"rows": Buffer(slots).freeze()}, examples_seen=0)
        assert resolved(store.load().tree)["rows"].shape == (slots, 16)


def test_after_falling_back_rows_are_compared_with_what_was_loaded(tmp_path, small_shards):
    """The numbers of the lost checkpoint are given out again, for other rows."""
    buffer = Buffer(60)
    buffer.change(np.arange(60))
    store = CheckpointStore(tmp_path)
    store.write(state(buffer, 1), examples_seen=1)
    changes = buffer.changes
    buffer.change(np.arange(10))
    store.write(state(buffer, 2), examples_seen=2)
    store.folder.arrays_path(2).write_bytes(b"")
    store = CheckpointStore(tmp_path)
    assert store.load().info.number == 1
    again = Buffer(60)
    again.change(np.arange(60))
    assert again.changes == changes
    again.random = np.random.default_rng(77)
    again.change(np.arange(10))
    store.write(state(again, 2), examples_seen=2)
    assert_equal(resolved(CheckpointStore(tmp_path).load().tree), resolved(state(again, 2)))
