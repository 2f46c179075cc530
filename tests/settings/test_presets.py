"""The presets hold the values of the paper's benchmarks, and stand below everything that is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlearn.errors import SettingsError
from streamlearn.settings.given import Given
from streamlearn.settings.learner import METHOD_DEFAULTS, LearnerSettings
from streamlearn.settings.presets import PRESETS
from streamlearn.settings.sources import Loaded, load_settings


def load(preset: str, **learner: object) -> Loaded:
    flags = [Given(f"learner.{name}", value, "--set") for name, value in learner.items()]
    return load_settings(None, {"STREAMLEARN_PRESET": preset}, flags)


@pytest.mark.parametrize("method", list(METHOD_DEFAULTS))
@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_fits_every_method(preset: str, method: str) -> None:
    assert load(preset, method=method).settings.learner.method == method


def test_fashion_mnist() -> None:
    loaded = load("split-fashion-mnist", buffer_size=200)
    assert loaded.settings.learner == LearnerSettings.model_validate(
        {
            "method": "er+t",
            "model": "mlp",
            "batch_size": 10,
            "replay_batch": 32,
            "buffer_size": 200,
            "learning_rate": 0.03,
            "decay": 0.99997,
            "decay_min_ratio": 0,
            "classes": [
                "T-shirt/top",
                "Trouser",
                "Pullover",
                "Dress",
                "Coat",
                "Sandal",
                "Shirt",
                "Sneaker",
                "Bag",
                "Ankle boot",
            ],
        }
    )
    assert loaded.origins["learner.decay"] == "preset split-fashion-mnist"
    assert loaded.origins["learner.eviction"] == "method er+t"


@pytest.mark.parametrize(
    ("preset", "method", "size", "rate", "replay"),
    [
        ("split-fashion-mnist", "er+t", 500, 0.1, 32),
        ("split-fashion-mnist", "er+t", 5000, 0.1, 32),
        ("split-fashion-mnist", "er", 200, 0.03, 32),
        ("split-fashion-mnist", "er", 1000, 0.1, 128),
        ("split-cifar10", "er+t", 10, 0.1, 32),
        ("split-cifar10", "er", 1000, 0.03, 32),
        ("split-cifar100", "er", 1000, 0.1, 32),
        ("split-core50", "er+t", 1000, 0.03, 32),
    ],
)
def test_values_by_method_and_buffer(preset: str, method: str, size: int, rate: float, replay: int) -> None:
    learner = load(preset, method=method, buffer_size=size).settings.learner
    assert (learner.learning_rate, learner.replay_batch) == (rate, replay)
    assert (learner.decay is None) == (method == "er")


def test_without_replay() -> None:
    assert load("split-fashion-mnist", method="sgd").settings.learner.learning_rate == 0.2
    assert load("split-cifar10", method="joint").settings.learner.learning_rate == 0.1


def test_pictures_are_augmented_and_normalised() -> None:
    learner = load("split-cifar10").settings.learner
    assert (learner.model, learner.augment, learner.batch_size, learner.classes[-1]) == (
        "resnet18",
        "crop-flip",
        32,
        "truck",
    )
    assert learner.normalise.mean == [0.4914, 0.4822, 0.4465]  # type: ignore[union-attr]


def test_anything_set_wins(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('preset = "split-cifar10"\n[learner]\nlearning_rate = 0.5\ndecay_horizon = 7\nmodel = "linear"')
    learner = load_settings(file, {"HOME": "/"}).settings.learner
    assert (learner.learning_rate, learner.decay, learner.decay_horizon, learner.model) == (0.5, None, 7, "linear")
    assert learner.batch_size == 32


def test_an_unknown_preset_and_a_size_that_is_none() -> None:
    with pytest.raises(SettingsError, match="there is no preset 'split-mnist'; there are split-fashion-mnist"):
        load("split-mnist")
    with pytest.raises(SettingsError, match=r"learner\.buffer_size: .*integer"):
        load("split-cifar10", buffer_size="big")
