"""What every method must be able to do, written once."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from streamlearn import Learner, LearnerSettings
from streamlearn.learner.methods import METHODS
from tests.learner.states import state_of
from tests.learner.streams import blobs, pictures

VARIANTS = {
    "sgd": {"method": "sgd"},
    "sgd+cbic": {"method": "sgd", "buffer_size": 40, "bias": "cbic"},
    "joint": {"method": "joint", "buffer_size": 4000},
    "er": {"method": "er", "buffer_size": 40},
    "er+brs": {"method": "er", "buffer_size": 40, "eviction": "brs"},
    "er+t": {"method": "er+t", "buffer_size": 40},
    "er+t, declared": {"method": "er+t", "buffer_size": 40, "classes": ["b", "a", "z", "c"]},
    "er+t, running": {"method": "er+t", "buffer_size": 40, "normalise": "running"},
    "er+t, linear": {"method": "er+t", "buffer_size": 40, "model": "linear"},
}


def test_every_method_has_a_variant() -> None:
    assert {variant["method"] for variant in VARIANTS.values()} == METHODS.keys()


@pytest.fixture(params=list(VARIANTS))
def settings(request: pytest.FixtureRequest) -> LearnerSettings:
    return LearnerSettings(**VARIANTS[request.param], group_span=30, bias_refit_every=35, seed=3)


STREAM = blobs(["a", "b"], 40), blobs(["c", "d", "e"], 30), blobs(["a", "f"], 40)


def learned(settings: LearnerSettings) -> Learner:
    learner = Learner(settings)
    for part in STREAM:
        learner.learn(part.inputs, part.labels)
    return learner


def test_predict_is_pure(settings: LearnerSettings) -> None:
    learner = learned(settings)
    before = state_of(learner)
    first, second = learner.predict(STREAM[0].inputs), learner.predict(STREAM[0].inputs)
    assert state_of(learner) == before
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    asked, silent = learned(settings), Learner(settings)
    for part in STREAM:
        silent.learn(part.inputs, part.labels)
    asked.predict(STREAM[0].inputs)
    more = blobs(["a", "g"], 20)
    asked.learn(more.inputs, more.labels)
    silent.learn(more.inputs, more.labels)
    assert state_of(asked) == state_of(silent)


def test_same_seed_same_bits(settings: LearnerSettings) -> None:
    assert state_of(learned(settings)) == state_of(learned(settings))
    other = settings.model_copy(update={"seed": 4})
    assert state_of(learned(settings)) != state_of(learned(other))


def test_many_at_once_or_a_few_at_a_time(settings: LearnerSettings) -> None:
    few = Learner(settings)
    for part in STREAM:
        for start in range(0, len(part), 10):
            few.learn(part.inputs[start : start + 10], part.labels[start : start + 10])
    assert state_of(few) == state_of(learned(settings))


def test_save_load_continue_equals_continue(settings: LearnerSettings) -> None:
    learner = Learner(settings)
    copies = []
    for part in STREAM:
        state = learner.state_dict()
        saved = state_of(learner)
        other = Learner(settings)
        other.load_state_dict(state)
        assert state_of(other) == saved == state_of(learner)
        copies.append(other)
        for follower in (learner, *copies):
            follower.learn(part.inputs, part.labels)
            follower.end_group()
        assert {state_of(follower) for follower in copies} == {state_of(learner)}


def test_saving_changes_nothing_and_is_not_changed(settings: LearnerSettings) -> None:
    saving, plain = Learner(settings), Learner(settings)
    for part in STREAM:
        saving.state_dict()
        for learner in (saving, plain):
            learner.learn(part.inputs, part.labels)
    assert state_of(saving) == state_of(plain)
    state = saving.state_dict()
    saving.learn(STREAM[1].inputs, STREAM[1].labels)
    other = Learner(settings)
    other.load_state_dict(state)
    assert state_of(other) == state_of(plain)


def test_before_any_learning_it_knows_no_class(settings: LearnerSettings) -> None:
    learner = Learner(settings)
    answers = learner.predict(STREAM[0].inputs[:3])
    assert answers.classes == ()
    assert answers.labels == [None, None, None]
    assert answers.probabilities.shape == (3, 0)
    assert learner.end_group().refits == []
    assert learner.learn(STREAM[0].inputs[:0], []).examples == 0
    other = Learner(settings)
    other.load_state_dict(learner.state_dict())
    assert state_of(other) == state_of(learner)


def test_classes_in_any_order(settings: LearnerSettings) -> None:
    stream = blobs(["zebra", "Ärger", "0", "a b"], 30, mixed=False)
    learner = Learner(settings)
    learner.learn(stream.inputs, stream.labels)
    answers = learner.predict(stream.inputs)
    assert set(answers.classes) == set(stream.labels)
    assert answers.probabilities.shape == (len(stream), 4)
    np.testing.assert_allclose(answers.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert answers.labels == [answers.classes[k] for k in answers.probabilities.argmax(axis=1)]


def test_one_class_only(settings: LearnerSettings) -> None:
    stream = blobs(["only"], 60)
    learner = Learner(settings)
    learner.learn(stream.inputs, stream.labels)
    learner.end_group()
    assert set(learner.predict(stream.inputs).labels) == {"only"}


def test_300_classes(settings: LearnerSettings) -> None:
    stream = blobs([f"class {k}" for k in range(300)], 2)
    learner = Learner(settings)
    learner.learn(stream.inputs, stream.labels)
    learner.end_group()
    assert len(learner.predict(stream.inputs[:1]).classes) == 300
    other = Learner(settings)
    other.load_state_dict(learner.state_dict())
    assert state_of(other) == state_of(learner)


def test_batch_of_one(settings: LearnerSettings) -> None:
    learner = Learner(settings.model_copy(update={"batch_size": 1}))
    for part in STREAM:
        report = learner.learn(part.inputs[:20], part.labels[:20])
        assert report.steps == report.examples == 20
    assert len(learner.predict(STREAM[0].inputs[:1]).labels) == 1


def test_answers_before_learning_are_those_of_predict(settings: LearnerSettings) -> None:
    learner = Learner(settings.model_copy(update={"bias_refit_every": 0, "normalise": "none"}))
    agreed = total = 0
    for part in STREAM:
        for start in range(0, len(part), 10):
            piece = part[start : start + 10]
            expected = learner.predict(piece.inputs).labels
            report = learner.learn(piece.inputs, piece.labels, predict_first=True)
            assert report.predicted is not None
            if not report.new_groups:  # a batch cut in two is answered in two
                agreed += sum(a == b for a, b in zip(expected, report.predicted, strict=True))
                total += len(piece)
    assert agreed == total > 150


def test_learns_and_remembers() -> None:
    """Replay keeps the first group known, plain descent does not."""
    known = {}
    for name in ("sgd", "er", "er+t", "joint"):
        settings = LearnerSettings(**VARIANTS[name], group_span=30, learning_rate=0.05)
        learner = Learner(settings)
        for group in (["a", "b"], ["c", "d"], ["e", "f"]):
            part = blobs(group, 100, seed=1)
            learner.learn(part.inputs, part.labels)
            learner.end_group()
        test = blobs(["a", "b"], 50, seed=2)
        answers = learner.predict(test.inputs).labels
        known[name] = np.mean([a == b for a, b in zip(answers, test.labels, strict=True)])
    assert known["sgd"] < 0.2
    assert min(known["er"], known["er+t"], known["joint"]) > 0.9


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "joint"])
def test_memory_is_bounded(name: str) -> None:
    """The state, and what Python allocates, stop growing once the buffer is full (joint is bounded by its buffer)."""
    learner = Learner(LearnerSettings(**VARIANTS[name]))
    stream = blobs(["a", "b", "c"], 400)
    learner.learn(stream.inputs, stream.labels)
    tracemalloc.start()
    try:
        learner.learn(stream.inputs, stream.labels)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            learner.learn(stream.inputs, stream.labels)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000  # of 6,000 more examples


def test_works_on_pictures(settings: LearnerSettings) -> None:
    if settings.normalise == "running":
        settings = settings.model_copy(update={"normalise": "none"})
    stream = pictures(["left", "right"], 60)
    learner = Learner(settings.model_copy(update={"learning_rate": 0.1}))
    learner.learn(stream.inputs, stream.labels)
    answers = learner.predict(stream.inputs).labels
    assert np.mean([a == b for a, b in zip(answers, stream.labels, strict=True)]) > 0.9
