"""A snapshot answers as the learner did when it was taken, and is there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamlearn import disk, snapshot
from streamlearn.errors import LearnerError, StateIncompatible
from streamlearn.learner import Learner
from streamlearn.sample import load_sample
from streamlearn.serving.model import Served
from streamlearn.settings.learner import LearnerSettings
from tests.http.client import trained

PICTURES = load_sample().test[:50]


def taken(learner: Learner, version: int = 1) -> snapshot.Snapshot:
    return snapshot.Snapshot(version, learner.examples_seen, 5.0, {"0": 7}, learner.state_dict(buffer=False))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"method": "sgd"},
        {"method": "er", "model": "linear"},
        {"bias": "cbic"},
        {"normalise": {"mean": [0.3], "std": [0.2]}},
        {"classes": ["array:learner/x", "T-shirt/top"]},
    ],
    ids=str,
)
def test_it_answers_as_the_learner_did(tmp_path: Path, settings: dict[str, Any]) -> None:
    learner = trained(120, **settings)
    learner.end_group()
    snapshot.publish(tmp_path, taken(learner, 3))
    expected = learner.predict(PICTURES)
    learner.learn(PICTURES[:10], ["later"] * 10)  # what is learned afterwards is not in it
    found = snapshot.read(tmp_path)
    assert (found.version, found.published_at, found.position) == (3, 5.0, {"0": 7})
    served = Served(found)
    answers = served.predict(PICTURES)
    assert answers.labels == expected.labels
    assert (answers.probabilities == expected.probabilities).all()
    assert served.classes == expected.classes


def test_batch_normalisation_and_colours(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    learner = Learner(LearnerSettings(model="resnet18", batch_size=6, buffer_size=10))
    learner.learn(pictures, ["a", "b", "c"] * 4)
    snapshot.publish(tmp_path, taken(learner))
    answers = Served(snapshot.read(tmp_path)).predict(pictures)
    assert np.allclose(answers.probabilities, learner.predict(pictures).probabilities, atol=1e-6)


def test_before_anything_was_learned(tmp_path: Path) -> None:
    snapshot.publish(tmp_path, taken(Learner(LearnerSettings())))
    served = Served(snapshot.read(tmp_path))
    assert served.shape is None
    assert served.predict(PICTURES[:2]).labels == [None, None]


def test_it_holds_no_example(tmp_path: Path) -> None:
    learner = trained(100)
    snapshot.publish(tmp_path, taken(learner))
    assert learner.buffer is not None
    content = (tmp_path / snapshot.NAME).read_bytes()
    for slot in learner.buffer.filled()[:20]:
        assert learner.buffer.inputs[slot].tobytes() not in content
    assert (tmp_path / snapshot.NAME).stat().st_mode & 0o777 == 0o600


def test_what_answers_only_does_not_learn(tmp_path: Path) -> None:
    learner = trained(50)
    other = Learner(learner.settings)
    other.load_state_dict(learner.state_dict(buffer=False))
    with pytest.raises(LearnerError, match="without its buffer"):
        other.learn(PICTURES[:1], ["x"])
    other.load_state_dict(learner.state_dict())
    other.learn(PICTURES[:1], ["x"])


@pytest.mark.parametrize("failing", ["write", "fsync", "rename"])
def test_a_disk_that_refuses_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    learner = trained(50)
    snapshot.publish(tmp_path, taken(learner, 1))
    before = snapshot.identity(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, failing, refuse)
        with pytest.raises(OSError, match="No space"):
            snapshot.publish(tmp_path, taken(learner, 2))
    assert snapshot.identity(tmp_path) == before
    assert snapshot.newest_version(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == [snapshot.NAME]


def test_what_is_no_snapshot(tmp_path: Path) -> None:
    assert snapshot.identity(tmp_path) is None
    assert snapshot.newest_version(tmp_path) == 0
    snapshot.publish(tmp_path, taken(trained(20)))
    whole = (tmp_path / snapshot.NAME).read_bytes()
    for content in (b"", b"nonsense", whole[:100], whole[:-1]):
        (tmp_path / snapshot.NAME).write_bytes(content)
        with pytest.raises(snapshot.Unreadable):
            snapshot.read(tmp_path)
        with pytest.raises(snapshot.Unreadable):
            snapshot.newest_version(tmp_path)


def test_a_newer_format_is_refused_with_both_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "FORMAT", 9)
        snapshot.publish(tmp_path, taken(trained(20)))
    with pytest.raises(StateIncompatible, match="format 9, this version reads up to 1"):
        snapshot.read(tmp_path)
