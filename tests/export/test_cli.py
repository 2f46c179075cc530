"""`streamlearn export` as a person or a script calls it."""

from __future__ import annotations

import json
import stat
import sys

import onnxruntime
import pytest
from safetensors import safe_open
from typer.testing import CliRunner

from streamlearn.checkpoint import CheckpointStore, Retention
from streamlearn.checkpoint.reader import Reader
from streamlearn.cli import export as command
from streamlearn.cli.app import app
from streamlearn.errors import SettingsError, StateCorrupt, StateError, StateIncompatible, StreamlearnError
from streamlearn.lock import DirectoryLock
from streamlearn.sample import NAMES
from tests.checkpoint.states import FaultyDisk, Frozen
from tests.cli.command import streamlearn

from .learners import mlp_with_bias


@pytest.fixture(scope="module")
def trees():
    """What a daemon saves, at two moments of its life."""
    learner, inputs = mlp_with_bias()
    found = []
    for _ in range(2):
        state = learner.state_dict()
        state["buffer"]["inputs"] = Frozen(state["buffer"]["inputs"], state["buffer"]["arrivals"])
        found.append({"format": 1, "learner": state, "position": {"0": learner.examples_seen}})
        learner.learn(inputs[:10], [NAMES[8]] * 10)
    return found


@pytest.fixture
def store(tmp_path, trees):
    store = CheckpointStore(tmp_path, Retention())
    for tree in trees:
        store.write(tree, examples_seen=tree["learner"]["examples_seen"], position=tree["position"])
    return store


def run(*args: object):
    return CliRunner().invoke(app, ["export", *map(str, args)], catch_exceptions=False)


def examples_in(path) -> int:
    with safe_open(path, "np") as file:
        return int(file.metadata()["examples_seen"])


@pytest.mark.parametrize("file_format", ["safetensors", "onnx", "torchscript"])
def test_the_command_while_a_daemon_holds_the_lock(store, tmp_path, file_format):
    with DirectoryLock(tmp_path):
        done = streamlearn("export", "--state-dir", tmp_path, "--format", file_format, "--output", tmp_path / "model")
    assert (done.returncode, done.stderr) == (0, "")
    size = (tmp_path / "model").stat().st_size
    assert done.stdout == f"{tmp_path / 'model'}: checkpoint 2, 350 examples, {size:,} bytes\n"
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.tmp"))


def test_the_newest_or_a_chosen_one(store, tmp_path):
    output = tmp_path / "model"
    run("--state-dir", tmp_path, "--format", "safetensors", "--output", output)
    assert examples_in(output) == 350
    run("--state-dir", tmp_path, "--format", "safetensors", "--output", output, "--checkpoint", 1)
    assert examples_in(output) == 340
    with pytest.raises(SettingsError, match="no checkpoint 7"):
        run("--state-dir", tmp_path, "--format", "safetensors", "--output", output, "--checkpoint", 7)


def test_the_onnx_file_needs_no_file_beside_it(store, tmp_path):
    (tmp_path / "out").mkdir()
    run("--state-dir", tmp_path, "--format", "onnx", "--output", tmp_path / "out" / "model.onnx")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    assert len(json.loads(session.get_modelmeta().custom_metadata_map["classes"])) == 10


def test_a_damaged_newest_is_left_out_with_a_warning(store, tmp_path):
    store.folder.arrays_path(2).write_bytes(b"?")
    result = run("--state-dir", tmp_path, "--format", "safetensors", "--output", tmp_path / "model")
    assert "checkpoint 2 is damaged and was left out" in result.stderr
    assert examples_in(tmp_path / "model") == 340
    with pytest.raises(StateCorrupt, match="checkpoint 2 is damaged"):
        run("--state-dir", tmp_path, "--format", "safetensors", "--output", tmp_path / "model", "--checkpoint", 2)
    store.folder.arrays_path(1).write_bytes(b"?")
    with pytest.raises(StateCorrupt, match="no checkpoint"):
        run("--state-dir", tmp_path, "--format", "safetensors", "--output", tmp_path / "model")


class Overtaken(CheckpointStore):
    """A daemon saves once more, and retires what was there, between a look at the folder and reading from it."""

    def __init__(self, state_dir, daemon: CheckpointStore, tree, times: int) -> None:
        super().__init__(state_dir)
        self.daemon, self.tree, self.times = daemon, tree, times

    def load(self):
        folder = self.folder
        seen = folder.numbers()
        if self.times:
            self.times -= 1
            self.daemon.write(self.tree, examples_seen=len(seen), position=None)
            folder.numbers = lambda: seen  # what this reader saw a moment ago
        try:
            return super().load()
        finally:
            folder.__dict__.pop("numbers", None)


@pytest.mark.parametrize(("kept", "times"), [(1, 1), (1, 3), (2, 3)])
def test_a_checkpoint_that_is_retired_while_it_is_read(tmp_path, trees, kept, times):
    daemon = CheckpointStore(tmp_path, Retention(kept))
    for _ in range(kept):
        daemon.write(trees[0], examples_seen=0)
    info, tree = command.newest(Overtaken(tmp_path, daemon, trees[1], times))
    assert info.number in daemon.numbers()
    assert "learner" in tree


def test_faults(store, tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    to = ("--format", "safetensors", "--output", tmp_path / "model")
    with pytest.raises(SettingsError, match="no checkpoints in"):
        run("--state-dir", empty, *to)
    with pytest.raises(SettingsError, match="nowhere is not a directory"):
        run("--state-dir", tmp_path / "nowhere", *to)
    with pytest.raises(SettingsError, match="nowhere is not a directory"):
        run("--state-dir", tmp_path, *to[:3], tmp_path / "nowhere" / "model")
    with pytest.raises(SettingsError, match="empty is a directory"):
        run("--state-dir", tmp_path, *to[:3], empty)
    with pytest.raises(StreamlearnError, match="cannot be written: File name too long"):
        run("--state-dir", tmp_path, *to[:3], tmp_path / ("x" * 300))
    assert not list(tmp_path.glob("*.tmp"))
    with FaultyDisk(1)(), pytest.raises(StreamlearnError, match="cannot be written: fsync failed on purpose"):
        run("--state-dir", tmp_path, *to)
    assert not (tmp_path / "model").exists()
    assert not list(tmp_path.glob("*.tmp"))
    monkeypatch.setattr(Reader, "read", refuse)
    with pytest.raises(StateError, match="on purpose"):
        run("--state-dir", tmp_path, *to, "--checkpoint", 1)


def refuse(*_: object) -> None:
    raise PermissionError("on purpose")


def test_a_checkpoint_of_something_else(tmp_path):
    CheckpointStore(tmp_path).write({"format": 1}, examples_seen=0)
    with pytest.raises(StateIncompatible, match="holds no learner"):
        run("--state-dir", tmp_path, "--format", "safetensors", "--output", tmp_path / "model")


def test_a_missing_extra_is_named(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setattr("streamlearn.export.find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(SettingsError, match="needs onnxscript") as caught:
        run("--state-dir", tmp_path, "--format", "onnx", "--output", tmp_path / "model")
    assert caught.value.hint == "pip install 'streamlearn[export]'"
    assert not (tmp_path / "model").exists()


def test_what_is_wrong_is_said_without_waiting_for_torch(tmp_path):
    done = streamlearn("export", "--state-dir", tmp_path, "--format", "pickle", "--output", tmp_path / "x")
    assert done.returncode == 2
    assert "safetensors" in done.stderr
    done = streamlearn("export", "--state-dir", tmp_path, "--format", "onnx", "--output", tmp_path / "x")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no checkpoints in")
