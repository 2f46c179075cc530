"""Each format, loaded by the program it is for, answers as the learner does."""

from __future__ import annotations

import io
import json
import warnings
from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors import safe_open

from streamlearn import Learner, LearnerSettings
from streamlearn.errors import SettingsError, StateIncompatible, StreamlearnError
from streamlearn.export import Format, export_model, model
from streamlearn.learner.methods import METHODS
from streamlearn.learner.models import build_network
from streamlearn.records.record import Array
from streamlearn.version import VERSION

from .learners import LEARNERS, linear_running, mlp_with_bias


@cache
def learned(make):
    """(state, inputs, answers of the learner itself)"""
    learner, inputs = make()
    return learner.state_dict(), inputs, learner.predict(inputs)


def load_torchscript(content: bytes) -> tuple[torch.jit.ScriptModule, dict[str, str]]:
    extra = {"classes.json": "", "about.json": ""}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.", FutureWarning)
        return torch.jit.load(io.BytesIO(content), _extra_files=extra), extra


def assert_same(probabilities: Array, answers) -> None:
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities, answers.probabilities, rtol=1e-4, atol=1e-6)
    assert [answers.classes[best] for best in probabilities.argmax(axis=1)] == answers.labels


@pytest.mark.parametrize("make", LEARNERS)
def test_onnx(make):
    state, inputs, answers = learned(make)
    session = onnxruntime.InferenceSession(export_model(state, Format.ONNX), providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert tuple(json.loads(about["classes"])) == answers.classes
    (given,), (asked,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape) == ("inputs", ["batch", *inputs.shape[1:]])
    assert (asked.name, asked.shape) == ("probabilities", ["batch", len(answers.classes)])
    (probabilities,) = session.run(None, {"inputs": inputs})
    assert_same(probabilities, answers)
    for count in (0, 1, 7):
        (some,) = session.run(None, {"inputs": inputs[:count]})
        np.testing.assert_allclose(some, probabilities[:count], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", LEARNERS)
def test_torchscript(make):
    state, inputs, answers = learned(make)
    module, extra = load_torchscript(export_model(state, Format.TORCHSCRIPT))
    assert tuple(json.loads(extra["classes.json"])) == answers.classes
    assert json.loads(extra["about.json"])["examples_seen"] == state["examples_seen"]
    probabilities = module(torch.from_numpy(inputs.copy())).numpy()
    assert_same(probabilities, answers)
    for count in (0, 1, 7):
        some = module(torch.from_numpy(inputs[:count].copy())).numpy()
        np.testing.assert_allclose(some, probabilities[:count], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", LEARNERS)
def test_safetensors(make, tmp_path):
    """Nothing but the file is used: the metadata says how to answer with the weights."""
    state, inputs, answers = learned(make)
    (tmp_path / "model").write_bytes(export_model(state, Format.SAFETENSORS))
    with safe_open(tmp_path / "model", "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no dict
        about = {name: json.loads(text) for name, text in file.metadata().items()}
    assert about.keys() == {"version", "settings", "examples_seen", "classes", "outputs", "inputs", "bias"}
    assert about["version"] == VERSION
    assert tuple(about["classes"]) == answers.classes

    kind = about["inputs"]
    assert (kind["shape"], kind["dtype"]) == (list(inputs.shape[1:]), str(inputs.dtype))
    values = (torch.from_numpy(inputs / np.float32(kind["divide_by"])) - torch.tensor(kind["mean"])) / torch.tensor(
        kind["std"]
    )
    if inputs.ndim > 2:
        values = values.unsqueeze(1) if inputs.ndim == 3 else values.permute(0, 3, 1, 2)
    if about["settings"]["model"] == "mlp":  # by hand, as another program would
        for layer in sorted({name.rpartition(".")[0] for name in weights if name.startswith("body.")}):
            values = torch.relu(values.flatten(1) @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"])
        outputs = values @ weights["head.weight"].T + weights["head.bias"]
    else:
        network = build_network(LearnerSettings(**about["settings"]), tuple(kind["shape"]))
        network.load_arrays({name: tensor.numpy() for name, tensor in weights.items()}, "any")
        outputs = network.answering(values)
    scores = outputs[:, about["outputs"]] * torch.tensor(about["bias"]["scale"]) + torch.tensor(about["bias"]["shift"])
    assert_same(torch.softmax(scores, dim=1).numpy(), answers)


def test_the_correction_matters_in_these_tests():
    """Without it the answers are others, so that the comparisons above would notice."""
    state, inputs, answers = learned(mlp_with_bias)
    bare = state | {"bias": {"version": 0, "group": None, "alpha": 1.0, "betas": None, "scale": None, "shift": None}}
    module, _ = load_torchscript(export_model(bare, Format.TORCHSCRIPT))
    assert np.abs(module(torch.from_numpy(inputs)).numpy() - answers.probabilities).max() > 0.01


@pytest.mark.parametrize("file_format", Format)
def test_the_buffer_is_not_looked_at(file_format):
    state, _, _ = learned(mlp_with_bias)
    assert export_model(state | {"buffer": None, "rng": None, "method": None}, file_format)


def test_an_onnx_file_tells_nothing_of_the_machine_it_was_made_on():
    state, _, _ = learned(mlp_with_bias)
    content = export_model(state, Format.ONNX)
    assert __file__.encode() not in content
    assert b".py" not in content
    assert onnx.load_from_string(content).producer_name == "pytorch"


def test_before_the_first_example():
    learner = Learner(LearnerSettings(classes=["boot"]))
    with pytest.raises(SettingsError, match="nothing has been learned yet"):
        export_model(learner.state_dict(), Format.SAFETENSORS)


def test_states_of_another_streamlearn():
    state, _, _ = learned(mlp_with_bias)
    with pytest.raises(StateIncompatible, match="format 99"):
        export_model(state | {"format": 99}, Format.SAFETENSORS)
    with pytest.raises(StateIncompatible, match="does not know: telepathy"):
        export_model(state | {"settings": state["settings"] | {"telepathy": True}}, Format.SAFETENSORS)


def test_a_method_that_answers_by_more_than_its_network(monkeypatch):
    class Nearest(METHODS["er"]):
        def scores(self, inputs):
            raise NotImplementedError

    state, _, _ = learned(linear_running)
    monkeypatch.setitem(METHODS, "er", Nearest)
    with pytest.raises(SettingsError, match="method er answers by more than its network"):
        export_model(state, Format.SAFETENSORS)


class ShareOfTheBatch(torch.nn.Module):
    """Takes the size of its batch for a constant once it is traced."""

    def forward(self, inputs):
        return inputs / int(inputs.shape[0])


def test_torchscript_for_one_batch_size_only_is_refused(monkeypatch):
    state, _, _ = learned(linear_running)
    real = model.build_network

    def with_a_trap(*args):
        network = real(*args)
        network.replace(ShareOfTheBatch(), network.head)
        return network

    monkeypatch.setattr(model, "build_network", with_a_trap)
    with pytest.raises(StreamlearnError, match="one batch size only"):
        export_model(state, Format.TORCHSCRIPT)


def test_more_than_an_onnx_file_can_hold(monkeypatch):
    state, _, _ = learned(linear_running)
    monkeypatch.setattr("streamlearn.export.onnx_file.MOST_BYTES", 100)
    with pytest.raises(SettingsError, match="do not fit") as caught:
        export_model(state, Format.ONNX)
    assert caught.value.hint == "use torchscript"
