"""Bit flips, truncations and hostile files: all found before anything is used, and nothing is executed."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from streamlearn.checkpoint import CheckpointStore, index
from streamlearn.errors import StateCorrupt, StateIncompatible
from tests.checkpoint.states import Buffer, assert_equal, resolved, state


def files_of(store: CheckpointStore, number: int) -> list[Path]:
    return [check.path for check in store.verify(number)[number]]


def damages(paths: list[Path], count: int):
    """(path, undo) for `count` damages, spread evenly over all bytes of the files; every fourth is a truncation."""
    sizes = [path.stat().st_size for path in paths]
    for number, place in enumerate(np.linspace(0, sum(sizes) - 1, count).astype(int)):
        which = int(np.searchsorted(np.cumsum(sizes), place, side="right"))
        path, offset = paths[which], int(place - sum(sizes[:which]))
        whole = path.read_bytes()
        if number % 4 == 3:
            path.write_bytes(whole[:offset])
        else:
            changed = bytearray(whole)
            changed[offset] ^= 1 << (number % 8)
            path.write_bytes(changed)
        yield path
        path.write_bytes(whole)


COUNTS = [200, pytest.param(2000, marks=pytest.mark.long)]


@pytest.mark.parametrize("count", COUNTS)
def test_damage_to_the_newest_leads_to_the_one_before(tmp_path, count):
    store, buffer, before = CheckpointStore(tmp_path), Buffer(40), None
    for step in (1, 2):
        before, buffer = buffer, Buffer(40, seed=step)
        buffer.change(np.arange(40))
        store.write(state(buffer, step), examples_seen=step)
    expected = resolved(state(before, 1))
    for path in damages(files_of(store, 2), count):
        loaded = CheckpointStore(tmp_path).load()
        assert [skip.number for skip in loaded.skipped] == [2]
        assert loaded.skipped[0].reason
        assert_equal(resolved(loaded.tree), expected)
        if path.stat().st_size % 7 == 0:
            bad = [check.path for check in store.verify(2)[2] if check.problem]
            assert bad == [path]
    assert CheckpointStore(tmp_path).load().info.number == 2


@pytest.mark.parametrize("count", COUNTS)
def test_damage_to_a_shared_shard_is_never_used(tmp_path, count, monkeypatch):
    monkeypatch.setattr(index, "SMALL_BYTES", 100)
    store, buffer = CheckpointStore(tmp_path), Buffer(40)
    buffer.change(np.arange(40))
    store.write(state(buffer, 1), examples_seen=1)
    old = resolved(state(buffer, 1))
    buffer.change(np.arange(5))
    store.write(state(buffer, 2), examples_seen=2)
    shared = set(files_of(store, 1)) & set(files_of(store, 2))
    assert len(shared) == 1
    for path in damages(files_of(store, 2), count):
        if path in shared:
            with pytest.raises(StateCorrupt):
                CheckpointStore(tmp_path).load()
        else:
            loaded = CheckpointStore(tmp_path).load()
            assert [skip.number for skip in loaded.skipped] == [2]
            assert_equal(resolved(loaded.tree), old)


def test_a_damaged_shard_is_healed_by_writing_its_rows_again(tmp_path):
    """After falling back, a learner that reads the stream again comes to the very same rows."""
    buffer = Buffer(40)
    buffer.change(np.arange(40))
    store = CheckpointStore(tmp_path)
    store.write(state(step=1), examples_seen=1)
    store.write(state(buffer, 2), examples_seen=2)
    (shard,) = store.folder.shards.iterdir()
    shard.write_bytes(b"x" * shard.stat().st_size)
    store = CheckpointStore(tmp_path)
    assert store.load().info.number == 1
    store.write(state(buffer, 2), examples_seen=2)
    assert CheckpointStore(tmp_path).load().skipped == []


def test_rows_that_change_after_the_check_are_not_used(tmp_path):
    buffer = Buffer(40)
    buffer.change(np.arange(40))
    store = CheckpointStore(tmp_path)
    store.write(state(buffer, 1), examples_seen=1)
    rows = store.load().tree["learner"]["buffer"]["inputs"]
    (shard,) = store.folder.shards.iterdir()
    content = shard.read_bytes()
    start = content.index(buffer.content[3].tobytes())
    shard.write_bytes(content[:start] + b"?" + content[start + 1 :])
    assert_equal(rows.read(np.array([4])), buffer.content[[4]])
    with pytest.raises(StateCorrupt, match="changed"):
        rows.read(np.array([3]))
    shard.unlink()
    with pytest.raises(StateCorrupt, match="went away"):
        rows.read(np.array([4]))


# --- files made by somebody else, with digests that fit


@pytest.fixture
def store(tmp_path):
    store, buffer = CheckpointStore(tmp_path), Buffer(20)
    buffer.change(np.arange(15))
    store.write({"x": np.arange(4), "rows": buffer.freeze(), "n": 1}, examples_seen=1)
    return store


def forge(store: CheckpointStore, change, number: int = 1) -> None:
    path = store.folder.manifest_path(number)
    manifest = json.loads(path.read_bytes())["manifest"]
    changed = change(manifest)
    body = changed if isinstance(changed, bytes) else json.dumps(manifest).encode()
    path.write_bytes(b'{"manifest":' + body + b',"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n')


def forge_arrays(store: CheckpointStore, content: bytes) -> None:
    store.folder.arrays_path(1).write_bytes(content)
    digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    forge(store, lambda manifest: manifest.update(arrays=digest))


def refused(store: CheckpointStore, reason: str = "no checkpoint") -> None:
    """In little memory: with the address space limited to a little more than is in use."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), limits[1]))
    try:
        with pytest.raises(StateCorrupt, match=reason):
            store.load()
        assert any(check.problem for check in store.verify()[1])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


OTHER = "0" * 64


@pytest.mark.parametrize(
    "change",
    {
        "traversal": lambda m: m["rows"]["/rows"].update(shards=[["../../../../etc/passwd", 15]]),
        "absolute": lambda m: m["rows"]["/rows"].update(shards=[["/etc/passwd", 15]]),
        "missing shard": lambda m: m["rows"]["/rows"].update(shards=[[OTHER, 15]]),
        "huge shard": lambda m: m["rows"]["/rows"]["shards"][0].__setitem__(1, 2**60),
        "negative shard": lambda m: m["rows"]["/rows"]["shards"][0].__setitem__(1, -1),
        "empty shard": lambda m: m["rows"]["/rows"]["shards"][0].__setitem__(1, 0),
        "shard of text": lambda m: m["rows"]["/rows"]["shards"][0].__setitem__(1, "15"),
        "huge rows": lambda m: m["rows"]["/rows"].update(row_shape=[2**40, 2**40]),
        "large rows": lambda m: m["rows"]["/rows"].update(row_shape=[2**29], shards=[]),
        "negative rows": lambda m: m["rows"]["/rows"].update(row_shape=[-16]),
        "many dimensions": lambda m: m["rows"]["/rows"].update(row_shape=[1] * 100),
        "object rows": lambda m: m["rows"]["/rows"].update(dtype="object"),
        "other rows": lambda m: m["rows"]["/rows"].update(dtype="int8"),
        "huge slots": lambda m: m["rows"]["/rows"].update(slots=2**50),
        "negative slots": lambda m: m["rows"]["/rows"].update(slots=-1),
        "rows are a list": lambda m: m.update(rows=[]),
        "no rows": lambda m: m.update(rows={}),
        "other rows' name": lambda m: m["rows"].update({"/more": m["rows"]["/rows"]}),
        "arrays' size": lambda m: m["arrays"].update(bytes=2**50),
        "arrays' digest": lambda m: m["arrays"].update(sha256=OTHER),
        "another number": lambda m: m.update(number=2),
        "a number of text": lambda m: m.update(number="../1"),
        "format zero": lambda m: m.update(format=0),
        "format true": lambda m: m.update(format=True),
        "no format": lambda m: m.pop("format"),
        "other values": lambda m: m["values"].update(n=2),
        "values are a list": lambda m: m.update(values=[]),
        "an array that is not there": lambda m: m["values"].update(x={"$array": "/y"}),
        "the keys as an array": lambda m: m["values"].update(x={"$array": "keys:/rows"}),
        "an unknown tag": lambda m: m["values"].update(x={"$import": "os"}),
        "not JSON": lambda m: b"pickle",
        "not a dict": lambda m: b"[]",
        "deep": lambda m: b"[" * 100_000 + b"]" * 100_000,
        "deep values": lambda m: json.dumps(m).replace('"n": 1', '"n": ' + "[" * 900 + "]" * 900).encode(),
        "endless int": lambda m: json.dumps(m).replace('"n": 1', '"n": ' + "9" * 5000).encode(),
        "NaN": lambda m: json.dumps(m).replace('"n": 1', '"n": NaN').encode(),
        "not UTF-8": lambda m: json.dumps(m).replace('"n": 1', '"n": "\0"').encode().replace(b"\\u0000", b"\xff"),
    }.items(),
    ids=lambda pair: pair[0],
)
def test_forged_manifests_are_refused(store, change):
    forge(store, change[1])
    refused(store)


def test_a_newer_format_is_refused_with_both_numbers(store):
    store.write({"n": 2}, examples_seen=2)
    forge(store, lambda manifest: manifest.update(format=7), number=2)
    with pytest.raises(StateIncompatible, match=r"format 7.* format 1"):
        CheckpointStore(store.folder.root.parent).load()
    with pytest.raises(StateIncompatible):
        store.write({"n": 3}, examples_seen=3)
    assert store.folder.arrays_path(1).exists()


@pytest.mark.parametrize(
    "arrays",
    [
        {"keys:/rows": np.arange(20), "shard:/rows": np.zeros(20, np.int64), "row:/rows": np.arange(20)},
        {"keys:/rows": np.arange(20), "shard:/rows": np.ones(20, np.int64), "row:/rows": np.zeros(20, np.int64)},
        {"keys:/rows": np.arange(20), "shard:/rows": -np.ones(20, np.int64), "row:/rows": np.zeros(20, np.int64)},
        {"keys:/rows": np.arange(20), "shard:/rows": np.zeros(20, np.int64), "row:/rows": -np.ones(20, np.int64)},
        {"keys:/rows": np.arange(20) - 9, "shard:/rows": np.zeros(20, np.int64), "row:/rows": np.zeros(20, np.int64)},
        {"keys:/rows": np.arange(20.0), "shard:/rows": np.zeros(20, np.int64), "row:/rows": np.zeros(20, np.int64)},
        {"keys:/rows": np.arange(19), "shard:/rows": np.zeros(19, np.int64), "row:/rows": np.zeros(19, np.int64)},
        {
            "keys:/rows": np.full(20, 2**64 - 5, np.uint64),
            "shard:/rows": np.zeros(20, int),
            "row:/rows": np.zeros(20, int),
        },
        {"shard:/rows": np.zeros(20, np.int64), "row:/rows": np.zeros(20, np.int64)},
        {},
    ],
)
def test_places_outside_the_shards_are_refused(store, arrays):
    forge_arrays(store, save({"/x": np.arange(4), **arrays}))
    refused(store)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_nothing_in_a_checkpoint_is_executed(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    for content in (bomb, b"", b"\xff" * 8, (2**62).to_bytes(8, "little") + b"{}", save({"/x": np.arange(4)})[:-1]):
        forge_arrays(store, content)
        refused(store, "safetensors")
    header = b'{"/x":{"dtype":"I64","shape":[4611686018427387904],"data_offsets":[0,8]}}'
    forge_arrays(store, len(header).to_bytes(8, "little") + header + bytes(8))
    refused(store)
    (shard,) = store.folder.shards.iterdir()
    shard.write_bytes(bomb)
    store.folder.manifest_path(1).write_bytes(bomb)
    refused(store)
    assert not Path("executed").exists()


def test_things_that_are_not_files(store):
    for path in files_of(store, 1):
        content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        refused(store, "not a file")
        path.unlink()
        path.mkdir()
        refused(store)
        path.rmdir()
        path.write_bytes(content)
    assert store.load() is not None


def test_a_manifest_too_large_is_not_even_read(store):
    with store.folder.manifest_path(1).open("r+b") as file:
        file.truncate(1 << 40)
    refused(store, "has 1099511627776 bytes")


def test_a_checkpoint_copied_elsewhere_is_the_same(store, tmp_path):
    shutil.copytree(tmp_path / "checkpoints", tmp_path / "other" / "checkpoints")
    assert CheckpointStore(tmp_path / "other").load().info.sha256 == store.list()[0].sha256
