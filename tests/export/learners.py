"""Learners that have learned something real, each with another thing that an export must not forget."""

from __future__ import annotations

import numpy as np
from torchvision.models import get_model

from streamlearn import Learner, LearnerSettings
from streamlearn.records.record import Array
from streamlearn.sample import NAMES, load_sample

SAMPLE = load_sample()


def pictures(classes: range, each: int, size: int = 28) -> tuple[Array, list[str]]:
    """The first pictures of each class, cut to their middle and mixed."""
    edge = (28 - size) // 2
    chosen = np.concatenate([np.flatnonzero(SAMPLE.train_labels == output)[:each] for output in classes])
    chosen = np.random.default_rng(0).permutation(chosen)
    cut = SAMPLE.train[chosen, edge : edge + size, edge : edge + size]
    return cut, [NAMES[output] for output in SAMPLE.train_labels[chosen]]


def unseen_pictures(size: int = 28) -> Array:
    edge = (28 - size) // 2
    return SAMPLE.test[:64, edge : edge + size, edge : edge + size]


def in_colour(grey: Array) -> Array:
    return np.stack([grey, 255 - grey, grey // 2], axis=-1)


def as_features(grey: Array) -> Array:
    """Every fourth pixel. Those at the edges never change, which the running normalisation has a rule for."""
    return np.ascontiguousarray(grey[:, ::4, ::4].reshape(len(grey), -1).astype(np.float32)) * 3 + 100


def mlp_with_bias() -> tuple[Learner, Array]:
    """Two groups, and two classes that turned up after the correction was fitted."""
    learner = Learner(LearnerSettings(method="er+t", model="mlp", buffer_size=200))
    for classes in (range(4), range(4, 8)):
        learner.learn(*pictures(classes, 40))
        learner.end_group()
    learner.learn(*pictures(range(8, 10), 10))
    assert learner.bias.scale is not None
    assert len(learner.bias.scale) == 8
    return learner, unseen_pictures()


def mlp_with_declared_classes() -> tuple[Learner, Array]:
    """Declared in another order than they come; three never come."""
    declared = ["nothing", *reversed(NAMES)]
    learner = Learner(LearnerSettings(method="er", model="mlp", classes=declared, bias="cbic", group_span=0))
    learner.learn(*pictures(range(1, 4), 30), groups=["early"] * 90)
    learner.learn(*pictures(range(5, 8), 30), groups=["late"] * 90)
    learner.end_group()
    assert learner.bias.shift is not None
    assert len(learner.classes.known) == 6
    return learner, unseen_pictures()


def linear_running() -> tuple[Learner, Array]:
    learner = Learner(LearnerSettings(method="er", model="linear", normalise="running", learning_rate=0.01))
    inputs, labels = pictures(range(5), 40)
    learner.learn(as_features(inputs), labels)
    return learner, as_features(unseen_pictures())


def resnet18() -> tuple[Learner, Array]:
    normalise = {"mean": [0.3, 0.7, 0.15], "std": [0.3, 0.31, 0.16]}
    settings = LearnerSettings(method="er", model="resnet18", batch_size=8, replay_batch=8, normalise=normalise)
    learner = Learner(settings)
    inputs, labels = pictures(range(3), 8, size=8)
    learner.learn(in_colour(inputs), labels)
    return learner, in_colour(unseen_pictures(size=8))


def frozen_backbone() -> tuple[Learner, Array]:
    """Its weights came from a file that is no longer there."""
    name = "resnet18"
    settings = LearnerSettings(method="er", model=f"torchvision:{name}", weights="/gone.safetensors", freeze=True)
    learner = Learner(settings, weights=get_model(name).state_dict())
    inputs, labels = pictures(range(3), 8)
    learner.learn(inputs, labels)
    return learner, unseen_pictures()


LEARNERS = (mlp_with_bias, mlp_with_declared_classes, linear_running, resnet18, frozen_backbone)
