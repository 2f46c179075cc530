from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from streamlearn import disk
from streamlearn.checkpoint import CheckpointInfo, CheckpointStore, Retention, Skipped, folder
from streamlearn.checkpoint.retention import Retention as RetentionRule
from streamlearn.errors import SettingsError, StateCorrupt, StateError
from tests.checkpoint.saver import state_at
from tests.checkpoint.states import Buffer, FaultyDisk, assert_equal, resolved, state


def saved(state_dir: Path, count: int, retention: Retention | None = None) -> CheckpointStore:
    """A store with states 1 to count."""
    store = CheckpointStore(state_dir, retention)
    buffer = Buffer(20)
    for step in range(1, count + 1):
        buffer.change([step % 20, (3 * step) % 20])
        store.write(state(buffer, step), examples_seen=10 * step, position={"0": step})
    return store


def test_nothing_saved_is_none(tmp_path):
    assert CheckpointStore(tmp_path).load() is None
    assert CheckpointStore(tmp_path / "missing").load() is None
    assert CheckpointStore(tmp_path).list() == []


def test_save_and_load(tmp_path):
    buffer = Buffer(30)
    buffer.change(np.arange(25))
    tree = state(buffer, 7)
    before = time.time()
    info = CheckpointStore(tmp_path).write(tree, examples_seen=700, position={"0": 5})
    loaded = CheckpointStore(tmp_path).load()
    assert_equal(resolved(loaded.tree), resolved(tree))
    np.testing.assert_array_equal(loaded.tree["learner"]["buffer"]["inputs"].keys, buffer.keys)
    assert loaded.skipped == []
    assert loaded.info == info
    assert (info.number, info.examples_seen, info.position) == (1, 700, {"0": 5})
    assert before <= info.created_at <= time.time()
    assert info.path.is_file()
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "started"]
    assert info.bytes_total == info.bytes_written == sum(path.stat().st_size for path in files)


def test_rows_are_released_once_well_or_not(tmp_path):
    buffer = Buffer(5)
    buffer.change(np.arange(5))
    store = CheckpointStore(tmp_path)
    rows = buffer.freeze()
    store.write({"a": rows, "b": [rows]}, examples_seen=0)
    assert rows.released == 1
    for bad in ({"rows": buffer.freeze(), "x": object()}, {"rows": buffer.freeze(), "x": float("nan")}):
        with pytest.raises((TypeError, ValueError)):
            store.write(bad, examples_seen=0)
        assert bad["rows"].released == 1
    rows = buffer.freeze()
    with FaultyDisk(2)(), pytest.raises(OSError, match="on purpose"):
        store.write({"rows": rows}, examples_seen=0)
    assert rows.released == 1


def test_rows_that_break_their_promise_fail_the_save(tmp_path):
    buffer = Buffer(5)
    buffer.change(np.arange(5))
    rows = buffer.freeze()
    rows.row_shape = (17,)
    with pytest.raises(ValueError, match="promised"):
        CheckpointStore(tmp_path).write({"rows": rows}, examples_seen=0)
    assert CheckpointStore(tmp_path).load() is None


def test_what_could_not_be_read_back_fails_the_save(tmp_path):
    store = CheckpointStore(tmp_path)
    buffer = Buffer(2, (1,) * 9)
    buffer.change([0])
    with pytest.raises(ValueError, match="read back"):
        store.write({"rows": buffer.freeze()}, examples_seen=0)
    for position in ({0: 5}, (1, 2), {"0": np.arange(3)}, {"0": object()}):
        with pytest.raises(TypeError):
            store.write({"n": 1}, examples_seen=0, position=position)
    assert store.load() is None


def test_only_the_owner_can_read_the_files(tmp_path):
    saved(tmp_path / "state", 2).rollback(1)
    for path in (tmp_path / "state").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_order_on_disk(tmp_path):
    store = CheckpointStore(tmp_path)
    buffer = Buffer(20)
    buffer.change(np.arange(20))
    with FaultyDisk()() as watched:
        store.write(state(buffer, 1), examples_seen=1)
    done = watched.done
    renamed = [number for number, (operation, _) in enumerate(done) if operation == "rename"]
    for number in renamed:
        assert done[number - 1][0] == "fsync"
        assert done[number - 2][0] == "write"
        assert done[number + 1][0] == "fsync_directory"
    names = [done[number][1] for number in renamed]
    assert names[-3:] == ["00000001.safetensors", "00000001.json", "started"]
    assert all(len(name) == 64 + len(".safetensors") for name in names[:-3])
    with FaultyDisk()() as watched:
        store.write(state(buffer, 2), examples_seen=1)
    kinds = [operation for operation, _ in watched.done]
    assert "unlink" not in kinds[: max(number for number, kind in enumerate(kinds) if kind == "rename")]


# --- the n-th operation fails


def every_failure(prepared: Path, act, tmp_path: Path, loads: list[dict]) -> int:
    """Does `act(store)` on copies of a directory, each with another operation failing; returns how many there are."""
    with FaultyDisk()() as watched:
        work = shutil.copytree(prepared, tmp_path / "watched")
        store = CheckpointStore(work)
        store.load()
        act(store)
    count = len(watched.done)
    for number in range(count):
        for for_good in (False, True):
            work = shutil.copytree(prepared, tmp_path / f"{number}-{for_good}")
            store = CheckpointStore(work)
            store.load()
            with FaultyDisk(number, for_good=for_good)(), contextlib.suppress(OSError):
                act(store)
            loaded = CheckpointStore(work).load()
            assert loaded.skipped == []
            found = resolved(loaded.tree)
            expected = next(one for one in loads if one["step"] == found["step"])
            assert_equal(found, expected)
            # The store that failed goes on, and so does one that starts anew; nothing is left of the failure.
            buffer = Buffer(20)
            buffer.change(np.arange(20))
            for again in (store, CheckpointStore(work)):
                again.write(state(buffer, 99), examples_seen=99)
                after = CheckpointStore(work).load()
                assert after.skipped == []
                assert_equal(resolved(after.tree), resolved(state(buffer, 99)))
            assert not list(work.rglob("*.tmp"))
            known = {shard.name for one in again.folder.manifests().values() for shard in one.shards()}
            assert {path.name for path in again.folder.shards.iterdir()} == known
            shutil.rmtree(work)
    return count


def test_any_operation_of_a_save_may_fail(tmp_path):
    saved(tmp_path / "prepared", 4)
    buffer = Buffer(20, seed=5)
    buffer.change(np.arange(18))
    old = resolved(CheckpointStore(tmp_path / "prepared").load().tree)
    new = state(buffer, 5)
    count = every_failure(
        tmp_path / "prepared",
        lambda store: store.write(state(buffer, 5), examples_seen=50),
        tmp_path,
        [old, resolved(new)],
    )
    assert count >= 15


def test_any_operation_of_a_rollback_may_fail(tmp_path):
    store = saved(tmp_path / "prepared", 3)
    newest = resolved(store.load().tree)
    shutil.copytree(tmp_path / "prepared", tmp_path / "rolled")
    rolled = CheckpointStore(tmp_path / "rolled")
    rolled.rollback(1)
    target = resolved(rolled.load().tree)
    count = every_failure(tmp_path / "prepared", lambda store: store.rollback(1), tmp_path, [newest, target])
    assert count >= 6


def test_any_operation_of_the_first_save_may_fail(tmp_path):
    buffer = Buffer(20)
    buffer.change(np.arange(20))
    with FaultyDisk()() as watched:
        CheckpointStore(tmp_path / "watched").write(state(buffer, 1), examples_seen=1)
    for number in range(len(watched.done)):
        store = CheckpointStore(tmp_path / str(number))
        with FaultyDisk(number, for_good=True)(), contextlib.suppress(OSError):
            store.write(state(buffer, 1), examples_seen=1)
        loaded = CheckpointStore(tmp_path / str(number)).load()
        assert loaded is None or loaded.tree["step"] == 1
        store.write(state(buffer, 2), examples_seen=1)
        assert CheckpointStore(tmp_path / str(number)).load().tree["step"] == 2


def test_a_full_disk_raises_what_the_system_said(tmp_path):
    store = saved(tmp_path, 1)
    for error in (errno.ENOSPC, errno.EROFS, errno.EDQUOT):
        with FaultyDisk(0, for_good=True, error=error)(), pytest.raises(OSError, match="on purpose") as raised:
            store.write(state(step=2), examples_seen=2)
        assert raised.value.errno == error
    assert store.write(state(step=2), examples_seen=2).number == 2


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.long)])
def test_killed_while_saving(tmp_path, kills):
    random = np.random.default_rng(kills)
    acknowledged = -1
    for _ in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.checkpoint.saver", str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        first = child.stdout.readline()
        time.sleep(random.uniform(0, 0.3))
        child.kill()
        said = [first, *child.stdout.read().split("\n")]
        child.stdout.close()
        child.wait()
        acknowledged = max(acknowledged, *(int(line) for line in said if line.strip()))
        loaded = CheckpointStore(tmp_path).load()
        assert loaded.skipped == []
        assert loaded.tree["step"] in (acknowledged, acknowledged + 1)
        assert_equal(resolved(loaded.tree), resolved(state_at(loaded.tree["step"])))
        acknowledged = loaded.tree["step"]


# --- what stays


def test_retention(tmp_path):
    store = saved(tmp_path, 47, Retention(keep=3, keep_every=10, keep_long=2))
    assert store.numbers() == [30, 40, 45, 46, 47]
    assert [info.position for info in store.list()] == store.positions() == [{"0": n} for n in (30, 40, 45, 46, 47)]
    kept = {"started", "shards"}
    for number in store.numbers():
        kept |= {f"{number:08d}.json", f"{number:08d}.safetensors"}
    assert {path.name for path in store.folder.root.iterdir()} == kept
    assert all(not check.problem for checks in store.verify().values() for check in checks)


def test_a_damaged_one_takes_nobodys_place():
    rule = RetentionRule(keep=2, keep_every=5, keep_long=1)
    assert rule.stays([1, 2, 3, 5, 10, 11], [4, 12]) == {10, 11, 12}
    assert rule.stays([10, 13], [11, 12, 4]) == {10, 11, 12, 13}
    assert RetentionRule(keep_long=0).stays([10, 20, 21, 22, 23], []) == {21, 22, 23}
    for bad in ({"keep": 0}, {"keep_every": 0}, {"keep_long": -1}):
        with pytest.raises(ValueError, match="keep nothing"):
            RetentionRule(**bad)


def test_a_damaged_checkpoint_goes_in_time_and_its_number_is_not_used_again(tmp_path):
    store = saved(tmp_path, 3)
    path = store.folder.manifest_path(3)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    store = CheckpointStore(tmp_path)
    loaded = store.load()
    assert (loaded.info.number, [skip.number for skip in loaded.skipped]) == (2, [3])
    assert store.write(state(step=4), examples_seen=4).number == 4
    assert store.numbers() == [1, 2, 3, 4]
    for step in (5, 6, 7):
        store.write(state(step=step), examples_seen=step)
    assert store.numbers() == [5, 6, 7]


def test_files_of_others_stay(tmp_path):
    store = saved(tmp_path, 1)
    for place in (store.folder.root, store.folder.shards):
        (place / "notes.txt").write_text("mine")
    saved(tmp_path, 3)
    assert (store.folder.root / "notes.txt").exists()
    assert (store.folder.shards / "notes.txt").exists()


def test_a_manifest_that_cannot_be_read_now_protects_its_shards(tmp_path, monkeypatch):
    store = saved(tmp_path, 3)
    shards = set(store.folder.shards.iterdir())

    def broken(path, size=None):
        raise OSError(errno.EIO, "reading failed on purpose")

    monkeypatch.setattr(folder, "opened", broken)
    store.folder.sweep()
    store.folder.retire(Retention(keep=1), set())
    assert shards <= set(store.folder.shards.iterdir())


# --- never from zero


def test_checkpoints_that_went_away_are_not_a_fresh_start(tmp_path):
    store = saved(tmp_path, 2)
    for number in (1, 2):
        store.folder.manifest_path(number).unlink()
    with pytest.raises(StateCorrupt, match="none is left"):
        CheckpointStore(tmp_path).load()
    store.folder.started.unlink()
    with pytest.raises(StateCorrupt, match="none is left"):
        CheckpointStore(tmp_path).load()


def test_all_damaged_is_corrupt_and_says_why(tmp_path):
    store = saved(tmp_path, 2)
    for number in (1, 2):
        store.folder.arrays_path(number).write_bytes(b"")
    with pytest.raises(StateCorrupt, match=r"no checkpoint .* \(2: 00000002.safetensors has 0 bytes.*; 1: "):
        CheckpointStore(tmp_path).load()


def test_a_missing_permission_is_not_damage(tmp_path, monkeypatch):
    saved(tmp_path, 2)

    def refused(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StateError, match="cannot read checkpoint 2") as raised:
        CheckpointStore(tmp_path).load()
    assert not isinstance(raised.value, StateCorrupt)


# --- going back


def test_rollback(tmp_path):
    store = saved(tmp_path, 5)
    second = store.list()[0]
    assert second.number == 3
    store.folder.manifest_path(4).write_bytes(b"")
    gone = store.rollback(3)
    assert isinstance(gone[0], Skipped)
    assert isinstance(gone[1], CheckpointInfo)
    assert [one.number for one in gone] == [4, 5]
    loaded = CheckpointStore(tmp_path).load()
    assert (loaded.info, loaded.tree["step"], loaded.skipped) == (second, 3, [])
    assert store.write(state(step=6), examples_seen=6).number == 6
    assert store.numbers() == [3, 6]
    assert not list(store.folder.discarded.iterdir())
    assert store.rollback(6) == []


def test_rollback_refuses_what_is_damaged_or_not_there(tmp_path):
    store = saved(tmp_path, 3)
    with pytest.raises(SettingsError, match="no checkpoint 9"):
        store.rollback(9)
    store.folder.arrays_path(2).unlink()
    with pytest.raises(StateCorrupt, match="checkpoint 2 is damaged"):
        store.rollback(2)
    assert store.load().tree["step"] == 3
    with pytest.raises(SettingsError, match="no checkpoints in"):
        CheckpointStore(tmp_path / "empty").rollback(1)


# --- format 1


def test_format_1_stays_readable():
    fixture = Path(__file__).parent / "fixtures" / "format-1"
    store = CheckpointStore(fixture)
    loaded = store.load()
    buffer = Buffer(20)
    for step in (1, 2, 3):
        buffer.change([step % 20, (3 * step) % 20])
    assert_equal(resolved(loaded.tree), resolved(state(buffer, 3)))
    assert loaded.info.number == 3
    assert loaded.info.sha256 == "f795241067e056e6409304f62ef210081ad53e8c25e169b01c1dd99627b1b7c5"
    assert all(not check.problem for checks in store.verify().values() for check in checks)


def test_temporary_names_are_never_taken_for_checkpoints(tmp_path):
    store = saved(tmp_path, 1)
    (store.folder.root / f"00000009.json{disk.TEMPORARY}").write_bytes(b"")
    (store.folder.root / "7.json").write_bytes(b"")
    assert store.numbers() == [1]
    assert store.write(state(), examples_seen=0).number == 2
    assert not (store.folder.root / f"00000009.json{disk.TEMPORARY}").exists()
