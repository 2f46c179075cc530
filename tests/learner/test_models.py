"""Networks: the paper's sizes, heads that grow, and torchvision backbones with weights from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torchvision import models

from streamlearn import Learner, LearnerSettings, read_weights
from streamlearn.errors import SettingsError, StateIncompatible
from streamlearn.learner.models import build_network
from streamlearn.learner.randomness import Randomness
from tests.learner.states import state_of
from tests.learner.streams import pictures


@pytest.mark.parametrize(
    ("model", "shape", "count"),
    [
        ("mlp", (28, 28), 269_322),
        ("resnet18", (32, 32, 3), 11_173_962),
        ("resnet18:64", (32, 32, 3), 11_173_962),
        ("resnet18:16", (32, 32, 3), 701_466),
        ("linear", (28, 28), 7850),
    ],
)
def test_parameter_counts(model: str, shape: tuple[int, ...], count: int) -> None:
    network = build_network(LearnerSettings(model=model), shape)
    network.grow(10, Randomness(0))
    assert sum(parameter.numel() for parameter in network.parameters()) == count


def test_a_head_that_grows_keeps_what_it_has() -> None:
    network = build_network(LearnerSettings(), (5,))
    rng = Randomness(0)
    network.grow(3, rng)
    inputs = torch.rand(4, 5)
    before = network.answering(inputs)
    network.grow(7, rng)
    after = network.answering(inputs)
    assert after.shape == (4, 7)
    torch.testing.assert_close(after[:, :3], before)


def test_building_leaves_torchs_own_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build_network(LearnerSettings(seed=1), (28, 28))
    torch.testing.assert_close(torch.rand(3), expected)


@pytest.mark.parametrize("model", ["resnet18:0", "resnet18:", "resnet18:wide", "resnet18:-3", "resnet34:16"])
def test_a_width_that_is_none(model: str) -> None:
    with pytest.raises(ValueError, match="is not known"):
        LearnerSettings(model=model)


@pytest.mark.parametrize("model", ["resnet18", "resnet18:8"])
def test_resnet18_learns_small_pictures(model: str) -> None:
    stream = pictures(["a", "b"], 32, side=8, channels=3)
    learner = Learner(
        LearnerSettings(model=model, batch_size=16, replay_batch=16, buffer_size=40, learning_rate=0.03, seed=2)
    )
    for _ in range(6):
        learner.learn(stream.inputs, stream.labels, predict_first=True)
    answers = learner.predict(stream.inputs).labels
    assert np.mean([a == b for a, b in zip(answers, stream.labels, strict=True)]) > 0.9


@pytest.fixture(scope="module")
def weight_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A real torchvision state dict in both kinds of file."""
    folder = tmp_path_factory.mktemp("weights")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        backbone = models.get_model("mobilenet_v3_small", weights=None)
    torch.save(backbone.state_dict(), folder / "weights.pth")
    save_file(backbone.state_dict(), folder / "weights.safetensors")
    return {"pth": folder / "weights.pth", "safetensors": folder / "weights.safetensors"}


@pytest.mark.parametrize("kind", ["pth", "safetensors"])
@pytest.mark.parametrize("freeze", [True, False])
def test_torchvision_backbones(weight_files: dict[str, Path], kind: str, freeze: bool) -> None:
    path = weight_files[kind]
    settings = LearnerSettings(
        model="torchvision:mobilenet_v3_small",
        weights=path,
        freeze=freeze,
        batch_size=8,
        replay_batch=8,
        buffer_size=20,
    )
    weights = read_weights(path)
    learner = Learner(settings, weights=weights)
    stream = pictures(["a", "b"], 12, side=32, channels=3)
    learner.learn(stream.inputs, stream.labels)
    arrays = learner.state_dict()["network"]
    first = "features.0.0.weight"
    same = np.array_equal(arrays[f"body.{first}"], weights[first].numpy())
    assert same is freeze
    if freeze:
        statistic = "features.0.1.running_mean"
        np.testing.assert_array_equal(arrays[f"body.{statistic}"], weights[statistic].numpy())
    other = Learner(settings, weights=weights)
    other.load_state_dict(learner.state_dict())
    assert state_of(other) == state_of(learner)


def test_grey_pictures_for_a_backbone_that_wants_colour() -> None:
    learner = Learner(LearnerSettings(model="torchvision:mobilenet_v3_small", batch_size=4, replay_batch=4))
    stream = pictures(["a", "b"], 4, side=32)
    assert learner.learn(stream.inputs, stream.labels).examples == 8


def test_what_cannot_be_a_backbone_is_said(weight_files: dict[str, Path], tmp_path: Path) -> None:
    stream = pictures(["a"], 4, side=32, channels=3)
    with pytest.raises(SettingsError, match=r"no classification model 'resnet51'.*did you mean resnet50"):
        Learner(LearnerSettings(model="torchvision:resnet51")).learn(stream.inputs, stream.labels)
    path = weight_files["pth"]
    with pytest.raises(SettingsError, match="its content was not given"):
        Learner(LearnerSettings(model="torchvision:resnet18", weights=path))
    with pytest.raises(StateIncompatible, match="not those of model torchvision:resnet18"):
        Learner(LearnerSettings(model="torchvision:resnet18", weights=path), weights=read_weights(path)).learn(
            stream.inputs, stream.labels
        )
    with pytest.raises(SettingsError, match="there is no file"):
        read_weights(tmp_path / "nowhere.pth")
    (tmp_path / "bad.pth").write_bytes(b"not weights")
    (tmp_path / "bad.safetensors").write_bytes(b"not weights")
    for name in ("bad.pth", "bad.safetensors"):
        with pytest.raises(SettingsError, match="cannot be read as weights"):
            read_weights(tmp_path / name)
