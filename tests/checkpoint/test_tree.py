from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load

from streamlearn.checkpoint import CheckpointStore, arrays
from streamlearn.checkpoint.damage import Damaged
from streamlearn.checkpoint.tree import DTYPES, flatten, plain_json, unflatten
from tests.checkpoint.states import Buffer, assert_equal, resolved, state

keys = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["$array", "$int", "$$", "a/b", "a~1b", ""]),
)
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers().map(lambda number: number << 20_000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
some_arrays = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
trees = st.dictionaries(
    keys,
    st.recursive(
        st.one_of(plain, some_arrays),
        lambda node: st.one_of(st.lists(node), st.dictionaries(keys, node)),
        max_leaves=12,
    ),
)


@given(trees)
@settings(max_examples=200, deadline=None)
def test_a_tree_survives_being_taken_apart(tree):
    flat = flatten(tree)
    content = b"".join(bytes(piece) for piece in arrays.pieces(flat.arrays))
    assert_equal(unflatten(flat.values, arrays.parse(content), {}), tree)
    plain_json(flat.values)


@given(tree=trees)
@settings(max_examples=40, deadline=None)
def test_a_tree_survives_the_disk(tmp_path_factory, tree):
    store = CheckpointStore(tmp_path_factory.mktemp("state"))
    info = store.write(tree, examples_seen=1)
    loaded = store.load()
    assert_equal(loaded.tree, tree)
    assert loaded.info == info


def test_the_files_are_what_the_safetensors_library_reads():
    content = b"".join(map(bytes, arrays.pieces({"/a": np.arange(6).reshape(2, 3), "/b": np.ones((), np.float32)})))
    assert load(content)["/a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert load(content)["/b"].shape == ()


def test_other_memory_orders_are_the_same_array(tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    digests = {
        CheckpointStore(tmp_path / name).write({"a": form}, examples_seen=0).sha256
        for name, form in {"c": array, "f": np.asfortranarray(array), "big": array.astype(">f4")}.items()
    }
    assert len(digests) == 1
    assert_equal(CheckpointStore(tmp_path / "big").load().tree["a"], array)


@pytest.mark.parametrize(
    ("leaf", "error"),
    [
        (math.nan, ValueError),
        (math.inf, ValueError),
        (object(), TypeError),
        (b"bytes", TypeError),
        ((1, 2), TypeError),
        (np.array(["text"]), TypeError),
        (np.array([None]), TypeError),
        (np.array([1j]), TypeError),
        ({1: 2}, TypeError),
        ({"\ud800": 2}, UnicodeEncodeError),
    ],
)
def test_what_would_come_back_different_is_refused(leaf, error):
    with pytest.raises(error):
        flatten({"a": {"b": leaf}})


def test_numpy_scalars_come_back_as_numbers():
    assert_equal(
        flatten({"a": np.float64(0.1), "b": np.int64(3), "c": np.bool_(True)}).values, {"a": 0.1, "b": 3, "c": True}
    )


@pytest.mark.parametrize(
    "values", [{"$array": "/x"}, {"$rows": ["/x"]}, {"$int": "zz"}, {"$int": 5}, {"$pickle": "x"}, {"a": {"$": 1}}]
)
def test_values_that_make_no_sense_are_damage(values):
    with pytest.raises(Damaged):
        unflatten(values, {}, {})


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.update(step=5),
        lambda tree: tree.update(step=True),
        lambda tree: tree.update(step=1.0),
        lambda tree: tree["learner"]["model"].update({"0.bias": np.zeros(4)}),
        lambda tree: tree["learner"]["model"].update({"0.bias": tree["learner"]["model"]["0.bias"].reshape(2, 2)}),
        lambda tree: tree["learner"]["buffer"]["inputs"].content.__setitem__((2, 0), 77),
        lambda tree: tree["learner"]["buffer"]["inputs"].keys.__setitem__(2, -1),
        lambda tree: tree["learner"].update(more={}),
    ],
)
def test_another_state_has_another_digest(tmp_path, change):
    buffer = Buffer(8)
    buffer.change(np.arange(6))
    tree, other = state(buffer, 1), state(buffer, 1)
    change(other)
    first = CheckpointStore(tmp_path / "a").write(tree, examples_seen=1)
    assert CheckpointStore(tmp_path / "b").write(other, examples_seen=1).sha256 != first.sha256
    assert CheckpointStore(tmp_path / "c").write(state(buffer, 1), examples_seen=9).sha256 == first.sha256


def test_the_digest_can_be_computed_by_hand(tmp_path):
    buffer = Buffer(3, (2,))
    buffer.change([0, 2])
    info = CheckpointStore(tmp_path).write(
        {"n": 2**70, "x": np.ones(2, np.float32), "r": buffer.freeze()}, examples_seen=0
    )
    sha = hashlib.sha256
    rows = sha(buffer.content[0].tobytes()).digest() + bytes(32) + sha(buffer.content[2].tobytes()).digest()
    described = {
        "arrays": {"/x": ["float32", [2], sha(np.ones(2, np.float32).tobytes()).hexdigest()]},
        "rows": {"/r": ["uint8", [2], 3, sha(rows).hexdigest()]},
        "values": {"n": {"$int": f"{2**70:x}"}, "r": {"$rows": "/r"}, "x": {"$array": "/x"}},
    }
    assert info.sha256 == sha(json.dumps(described, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_resolved_rows_are_what_the_buffer_held(tmp_path):
    buffer = Buffer(50, (3, 3), "float32")
    buffer.change(np.arange(0, 50, 3))
    store = CheckpointStore(tmp_path)
    store.write(state(buffer), examples_seen=0)
    rows = store.load().tree["learner"]["buffer"]["inputs"]
    assert_equal(rows.read(np.array([48, 3, 1, 3])), buffer.content[[48, 3, 1, 3]])
    assert_equal(resolved(rows), buffer.content)
    assert rows.read(np.array([], np.int64)).shape == (0, 3, 3)
