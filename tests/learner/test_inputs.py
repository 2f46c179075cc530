"""Raw arrays to tensors: normalisation, running standardisation, augmentation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from streamlearn import Learner, LearnerSettings
from streamlearn.learner.augment import crop_flip
from streamlearn.learner.inputs import Inputs
from tests.learner.streams import blobs, pictures


def test_pictures_become_channels_first_between_0_and_1() -> None:
    raw = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    tensor = Inputs(LearnerSettings(), (4, 5, 3), raw.dtype).tensor(raw)
    assert tensor.shape == (2, 3, 4, 5)
    torch.testing.assert_close(tensor, torch.from_numpy(raw).permute(0, 3, 1, 2) / 255)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    grey = Inputs(LearnerSettings(), (4, 5), raw.dtype).tensor(raw[..., 0].copy())
    assert grey.shape == (2, 1, 4, 5)


def test_given_mean_and_std_per_channel() -> None:
    raw = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
    normalise = {"mean": [0.1, 0.2, 0.3], "std": [0.5, 0.25, 2.0]}
    tensor = Inputs(LearnerSettings(normalise=normalise), (4, 5, 3), raw.dtype).tensor(raw)
    expected = (raw / 255 - normalise["mean"]) / normalise["std"]
    np.testing.assert_allclose(tensor.permute(0, 2, 3, 1).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_running_standardisation_knows_the_mean_so_far() -> None:
    features = np.random.default_rng(0).normal(5, [0.1, 30, 0], (500, 3)).astype(np.float32)
    inputs = Inputs(LearnerSettings(normalise="running"), (3,), features.dtype)
    for start in range(0, 500, 7):
        inputs.observe(features[start : start + 7])
    np.testing.assert_allclose(inputs.mean, features.mean(axis=0), rtol=1e-5)
    standard = inputs.tensor(features).numpy()
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(standard.std(axis=0), [1, 1, 0], rtol=1e-3)


def test_running_standardisation_lets_badly_scaled_features_be_learned() -> None:
    scales = np.array([1e4, 1e-4, 1] * 4, np.float32)
    stream = blobs(["a", "b", "c"], 100)
    known = {}
    for normalise in ("none", "running"):
        learner = Learner(LearnerSettings(normalise=normalise, buffer_size=50))
        report = learner.learn(stream.inputs * scales, stream.labels)
        answers = learner.predict(stream.inputs * scales).labels
        known[normalise] = np.mean([a == b for a, b in zip(answers, stream.labels, strict=True)])
        assert (len(report.discarded) > 0) == (normalise == "none")
    assert known["running"] > 0.95 > known["none"]


@pytest.mark.parametrize("channels", [None, 3])
def test_crop_flip_moves_each_picture_on_its_own(channels: int | None) -> None:
    shape = (9, 7) if channels is None else (9, 7, channels)
    picture = np.arange(1, np.prod(shape) + 1, dtype=np.uint8).reshape(shape)
    batch = np.stack([picture] * 400)
    varied = crop_flip(batch, 2, np.random.default_rng(0))
    assert varied.shape == batch.shape
    padded = np.pad(picture, ((2, 2), (2, 2), *[(0, 0)] * (picture.ndim - 2)))
    seen = set()
    for one in varied:
        places = [
            (y, x, mirrored)
            for y in range(5)
            for x in range(5)
            for mirrored in (False, True)
            if np.array_equal(one, padded[y : y + 9, x : x + 7][:, :: -1 if mirrored else 1])
        ]
        assert len(places) == 1
        seen.add(places[0])
    assert len(seen) == 50  # every move and mirror turns up


def test_the_buffer_remembers_what_came_and_varies_it_anew() -> None:
    stream = pictures(["a", "b"], 20)
    for independent in (True, False):
        settings = LearnerSettings(augment="crop-flip", buffer_augment=independent, buffer_size=40)
        learner = Learner(settings)
        learner.learn(stream.inputs, stream.labels)
        buffer = learner.buffer
        assert buffer is not None
        as_it_came = all(
            np.array_equal(buffer.inputs[slot], stream.inputs[buffer.arrivals[slot]]) for slot in range(40)
        )
        assert as_it_came is independent
