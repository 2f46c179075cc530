"""The learner itself: groups, steps that go wrong, erasure, state that does not fit, bad calls."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError

from streamlearn import Learner, LearnerSettings
from streamlearn.errors import BadInput, LearnerError, SettingsError, StateIncompatible, TooManyClasses
from tests.learner.states import state_of
from tests.learner.streams import blobs, pictures


def learner_with(**settings: object) -> Learner:
    return Learner(LearnerSettings(**({"buffer_size": 40, "group_span": 30} | settings)))


# --- class groups


def groups_of(learner: Learner) -> dict[str, list[str]]:
    table = learner.classes
    return {group.name: [table.names[output] for output in group.classes] for group in table.groups}


def test_groups_form_by_first_appearance() -> None:
    learner = learner_with(batch_size=7)
    vectors = np.zeros((100, 3), np.float32)
    labels = ["a"] * 10 + ["b"] * 25 + ["c"] * 60 + ["d"] * 5  # c appears 35 examples after a, d 60 after c
    report = learner.learn(vectors, labels)
    assert groups_of(learner) == {"group-1": ["a", "b"], "group-2": ["c"], "group-3": ["d"]}
    assert (report.new_classes, report.new_groups) == (list("abcd"), ["group-1", "group-2", "group-3"])
    # Batches of 7 lie on a grid and are cut where a group begins: at 35 (on the grid) and 95 (in a batch of 91..97).
    assert report.steps == 15 + 1


def test_groups_named_by_the_caller() -> None:
    learner = learner_with()
    vectors = np.zeros((6, 3), np.float32)
    report = learner.learn(vectors, list("abcabd"), groups=["x", "x", "y", "y", "x", "x"])
    assert groups_of(learner) == {"x": ["a", "b", "d"], "y": ["c"]}
    assert report.new_groups == ["x", "y", "x"]  # a new class of x, after y had opened


def test_end_group_closes_whatever_the_span() -> None:
    learner = learner_with()
    vectors = np.zeros((4, 3), np.float32)
    learner.learn(vectors, ["a"] * 4)
    learner.end_group()
    learner.learn(vectors, ["a", "b", "c", "b"])
    assert groups_of(learner) == {"group-1": ["a"], "group-2": ["b", "c"]}


def test_declared_classes_have_an_output_but_are_not_known() -> None:
    learner = learner_with(classes=["a", "b", "c"])
    learner.learn(np.zeros((4, 3), np.float32), ["c", "a", "new", "c"])
    assert learner.method is not None
    assert learner.method.network.outputs == 4
    assert learner.predict(np.zeros((1, 3), np.float32)).classes == ("a", "c", "new")


# --- steps that go wrong


def test_a_step_that_is_not_finite_is_undone_whole() -> None:
    for settings in ({}, {"method": "joint", "buffer_size": 500}, {"method": "sgd"}):
        learner = learner_with(**({"learning_rate": 0.5} | settings))
        good = blobs(["a", "b"], 30)
        learner.learn(good.inputs, good.labels)
        before = state_of(learner)
        huge = np.full((10, 12), 3e38, np.float32)
        report = learner.learn(huge, ["a"] * 5 + ["stranger"] * 5)  # a new class comes with it
        assert report.discarded, settings
        assert (report.examples, report.steps, report.discarded_examples) == (0, 0, 10)
        assert report.new_classes == []
        assert state_of(learner) == before
        assert learner.learn(good.inputs, good.labels).examples == 60


def test_batch_statistics_are_undone_too() -> None:
    learner = learner_with(model="resnet18", batch_size=4, replay_batch=4, learning_rate=1e30)
    stream = pictures(["a", "b"], 2, side=6, channels=3)
    assert learner.learn(stream.inputs, stream.labels).examples == 4  # leaves weights that nothing good comes of
    before = state_of(learner)
    assert len(learner.learn(stream.inputs, stream.labels).discarded) == 1
    assert state_of(learner) == before


def test_running_statistics_are_undone_too() -> None:
    learner = learner_with(normalise="running", learning_rate=1e30)
    part = blobs(["a", "b"], 5)
    assert learner.learn(part.inputs, part.labels).examples == 10
    before = state_of(learner)
    assert len(learner.learn(part.inputs, part.labels).discarded) == 1
    assert state_of(learner) == before


def test_only_the_bad_step_of_a_call_is_undone() -> None:
    learner = learner_with()
    good = blobs(["a", "b"], 30)
    mixed = good.inputs.copy()
    mixed[20:30] = 3e38
    report = learner.learn(mixed, good.labels, predict_first=True)
    assert (report.steps, len(report.discarded), report.examples) == (5, 1, 50)
    assert report.predicted is not None
    assert len(report.predicted) == 60
    assert learner.examples_seen == 50


# --- the learning rate


def test_decay_follows_the_examples_of_the_whole_life() -> None:
    learner = learner_with(learning_rate=0.1, decay=0.999, decay_min_ratio=0)
    part = blobs(["a", "b"], 50)
    assert learner.learn(part.inputs, part.labels).learning_rate == pytest.approx(0.1 * 0.999**90)
    learner.end_group()
    other = learner_with(learning_rate=0.1, decay=0.999, decay_min_ratio=0)
    other.load_state_dict(learner.state_dict())
    new = blobs(["c"], 10)
    assert other.learn(new.inputs, new.labels).learning_rate == pytest.approx(0.1 * 0.999**100)


def test_decay_by_horizon_and_floor() -> None:
    part = blobs(["a", "b"], 50)
    learner = learner_with(learning_rate=0.6, decay_horizon=90, decay_min_ratio=0)
    assert learner.learn(part.inputs, part.labels).learning_rate == pytest.approx(0.1)
    learner = learner_with(learning_rate=0.6, decay_horizon=90, decay_min_ratio=0.5)
    assert learner.learn(part.inputs, part.labels).learning_rate == pytest.approx(0.3)


# --- what is remembered


def test_erase_by_id_and_by_class() -> None:
    learner = learner_with(buffer_size=60)
    part = blobs(["a", "b"], 30)
    learner.learn(part.inputs, part.labels, ids=[f"n{k}" for k in range(60)])
    assert learner.erase(id="n7") == 1
    assert learner.erase(id="n7") == 0
    assert learner.erase(label="a") in (29, 30)
    assert learner.erase(label="unheard of") == 0
    buffer = learner.buffer
    assert buffer is not None
    assert set(buffer.classes[buffer.filled()].tolist()) == {learner.classes.index["b"]}
    assert not (buffer.ids == "n7").any()
    other = learner_with(buffer_size=60)
    other.load_state_dict(learner.state_dict())
    assert state_of(other) == state_of(learner)
    for follower in (learner, other):
        follower.learn(part.inputs, part.labels)
    assert state_of(other) == state_of(learner)


def test_joint_says_when_it_can_keep_no_more() -> None:
    learner = learner_with(method="joint", buffer_size=50)
    part = blobs(["a", "b"], 30)
    with pytest.raises(LearnerError, match="its buffer of 50 is full"):
        learner.learn(part.inputs, part.labels)


# --- state that does not fit


def test_another_architecture_is_refused_by_name() -> None:
    learner = learner_with()
    part = blobs(["a", "b"], 10)
    learner.learn(part.inputs, part.labels)
    state = learner.state_dict()
    with pytest.raises(StateIncompatible, match="model was 'mlp' and is 'linear', buffer_size was 40 and is 41"):
        learner_with(model="linear", buffer_size=41).load_state_dict(state)
    with pytest.raises(StateIncompatible, match="format 99"):
        learner_with().load_state_dict(state | {"format": 99})
    learner_with(learning_rate=0.5, group_span=7).load_state_dict(state)  # these may change


# --- bad calls

VECTORS = np.zeros((2, 3), np.float32)
BAD_CALLS = [
    ([[0.0]], ["a"], "must be a numpy array, not list"),
    (np.zeros((2, 3)), ["a", "b"], "float64"),
    (np.zeros((2, 3), np.uint8), ["a", "b"], r"uint8 inputs have shape \(2, 3\)"),
    (np.zeros((2, 3, 3), np.float32), ["a", "b"], r"float32 inputs have shape"),
    (np.zeros((2, 0), np.float32), ["a", "b"], "nothing in them"),
    (np.zeros((2, 4), np.float32), ["a", "b"], r"shape \(4,\), but this learner knows float32 of shape \(3,\)"),
    (np.zeros((2, 3, 3), np.uint8), ["a", "b"], "but this learner knows float32"),
    (np.full((2, 3), np.nan, np.float32), ["a", "b"], "not finite"),
    (VECTORS, ["a"], "2 inputs but 1 labels"),
    (VECTORS, "ab", "one string"),
    (VECTORS, ["a", ""], "a label is empty"),
    (VECTORS, ["a", 3], "label 3 is not a string"),
]


@pytest.mark.parametrize(("inputs", "labels", "message"), BAD_CALLS)
def test_bad_calls_get_clear_errors_and_change_nothing(inputs: object, labels: object, message: str) -> None:
    learner = learner_with()
    learner.learn(np.ones((1, 3), np.float32), ["known"])
    before = state_of(learner)
    with pytest.raises(BadInput, match=message):
        learner.learn(inputs, labels)
    assert state_of(learner) == before


def test_counts_of_ids_and_groups() -> None:
    learner = learner_with()
    with pytest.raises(BadInput, match="2 inputs but 3 ids"):
        learner.learn(VECTORS, ["a", "b"], ids=["x", "y", "z"])
    with pytest.raises(BadInput, match="2 inputs but 1 groups"):
        learner.learn(VECTORS, ["a", "b"], groups=["x"])


def test_one_class_too_many_is_refused_whole() -> None:
    learner = learner_with(max_classes=2)
    with pytest.raises(TooManyClasses, match="3 new classes would make 3, more than max_classes 2"):
        learner.learn(np.zeros((3, 3), np.float32), ["a", "b", "c"])
    assert learner.examples_seen == 0


def test_settings_that_make_no_sense_together_are_all_named() -> None:
    with pytest.raises(ValidationError) as caught:
        LearnerSettings(
            method="er", buffer_size=0, replay_batch=0, decay=0.9, decay_horizon=5, bias="bic", freeze=True, model="nml"
        )
    for part in (
        "buffer_size is 0",
        "replay_batch is 0",
        "decay and decay_horizon",
        "bias bic",
        "freeze",
        "model 'nml'",
    ):
        assert part in str(caught.value)
    with pytest.raises(ValidationError, match="names twice: a"):
        LearnerSettings(classes=["a", "b", "a"])
    with pytest.raises(ValidationError, match="mean has 1 values and std 2"):
        LearnerSettings(normalise={"mean": [0.1], "std": [1, 2]})


def test_inputs_that_do_not_go_with_the_settings() -> None:
    part = blobs(["a"], 4)
    with pytest.raises(SettingsError, match="resnet18 looks at pictures"):
        learner_with(model="resnet18").learn(part.inputs, part.labels)
    with pytest.raises(BadInput, match="augment is crop-flip"):
        learner_with(augment="crop-flip").learn(part.inputs, part.labels)
    with pytest.raises(BadInput, match="running, which is for features"):
        learner_with(normalise="running").learn(np.zeros((4, 5, 5), np.uint8), part.labels)
    with pytest.raises(BadInput, match="normalise has 2 values"):
        learner_with(normalise={"mean": [0, 0], "std": [1, 1]}).learn(np.zeros((4, 5, 5, 3), np.uint8), part.labels)


def test_the_six_settings_of_the_papers_increments() -> None:
    """ER, +IBA, +BiC, +ELRD, +BRS, +LARS: one setting more each time, and the last is er+t."""
    steps = [
        {},
        {"buffer_augment": True},
        {"bias": "bic"},
        {"decay_horizon": 100_000},
        {"eviction": "brs"},
        {"eviction": "lars+brs"},
    ]
    common = {"buffer_size": 40, "augment": "crop-flip", "bias_refit_every": 30, "group_span": 30}
    given: dict[str, object] = {"method": "er"}
    states = []
    stream = pictures(["a", "b", "c"], 40)
    for step in steps:
        given |= step
        learner = Learner(LearnerSettings(**given, **common))
        learner.learn(stream.inputs, stream.labels)
        learner.learn(*_more())
        states.append(learner.state_dict())
    tricks = Learner(LearnerSettings(method="er+t", **common))
    tricks.learn(stream.inputs, stream.labels)
    tricks.learn(*_more())
    assert all(one["network"].keys() == other["network"].keys() for one, other in pairwise(states))
    last, full = states[-1], tricks.state_dict()
    for name in last["network"]:
        np.testing.assert_array_equal(last["network"][name], full["network"][name])
    np.testing.assert_array_equal(last["buffer"]["arrivals"], full["buffer"]["arrivals"])


def _more() -> tuple[np.ndarray, list[str]]:
    more = pictures(["d", "e"], 30, seed=5)
    return more.inputs, more.labels
