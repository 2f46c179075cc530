"""All that `Learner.predict` does, as one torch module: normalise, network, bias correction, known classes, softmax."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from streamlearn.errors import SettingsError, StateIncompatible
from streamlearn.learner.bias import BiasCorrection
from streamlearn.learner.classes import ClassTable
from streamlearn.learner.learner import FORMAT
from streamlearn.learner.methods import METHODS, Method
from streamlearn.learner.models import build_network
from streamlearn.settings.learner import LearnerSettings, Normalisation
from streamlearn.version import VERSION


class AnsweringModel(nn.Module):
    """Takes raw batches as the daemon gets them: uint8 (N, H, W[, C]) or float32 (N, L)."""

    mean: Tensor
    std: Tensor
    known: Tensor
    scale: Tensor
    shift: Tensor

    def __init__(self, state: Mapping[str, Any]) -> None:
        super().__init__()
        self.settings = _settings(state)
        table = ClassTable(self.settings.classes, self.settings.group_span)
        table.load_state_dict(state["classes"])
        if state["network"] is None or not table.known:
            raise SettingsError(["nothing has been learned yet, so there is no model to export"])
        self.shape = tuple(state["inputs"]["shape"])
        self.dtype = np.dtype(state["inputs"]["dtype"])
        self.pictures = self.dtype == np.uint8
        self.classes = [table.names[output] for output in table.known]
        self.bias = BiasCorrection(**state["bias"])
        self.examples_seen = int(state["examples_seen"])

        # The weights are all in the state: a file that the settings name for the start is not needed again.
        self.network = build_network(self.settings, self.shape)
        self.network.load_arrays(state["network"], self.settings.model)
        mean, std = _normalisation(self.settings, state["inputs"])
        scale, shift = np.ones(self.network.outputs, np.float32), np.zeros(self.network.outputs, np.float32)
        if self.bias.scale is not None and self.bias.shift is not None:
            fitted = len(self.bias.scale)  # classes that turned up after the fit stay as they are
            scale[:fitted], shift[:fitted] = self.bias.scale, self.bias.shift
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("std", torch.from_numpy(std))
        self.register_buffer("known", torch.tensor(table.known))
        self.register_buffer("scale", torch.from_numpy(scale[table.known]))
        self.register_buffer("shift", torch.from_numpy(shift[table.known]))
        self.requires_grad_(False)
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        values = inputs.to(torch.float32) / 255 if self.pictures else inputs
        values = (values - self.mean) / self.std
        if self.pictures:
            values = values.unsqueeze(1) if len(self.shape) == 2 else values.permute(0, 3, 1, 2)
        scores = self.network(values)[:, self.known]
        return torch.softmax(scores * self.scale + self.shift, dim=1)

    def example(self, count: int = 2) -> Tensor:
        """A batch to follow through the network. Not of one: exporters take that for a constant."""
        values = torch.arange(count * prod(self.shape)).remainder(251)  # prime: no two rows alike
        return values.reshape(count, *self.shape).to(torch.uint8 if self.pictures else torch.float32)

    def about(self) -> dict[str, str]:
        """What a file says about itself, each entry as JSON; enough to answer with the bare weights."""
        facts = {
            "version": VERSION,
            "settings": self.settings.model_dump(mode="json"),
            "examples_seen": self.examples_seen,
            "classes": self.classes,  # of each column of the probabilities
            "outputs": self.known.tolist(),  # of the network, one for each of the classes
            "inputs": {
                "shape": list(self.shape),
                "dtype": str(self.dtype),
                "divide_by": 255 if self.pictures else 1,
                "mean": self.mean.tolist(),
                "std": self.std.tolist(),
            },
            "bias": {
                "version": self.bias.version,
                "group": self.bias.group,
                "alpha": self.bias.alpha,
                "betas": self.bias.betas,
                "scale": self.scale.tolist(),  # of each of the classes
                "shift": self.shift.tolist(),
            },
        }
        return {name: json.dumps(fact, ensure_ascii=False) for name, fact in facts.items()}


def _settings(state: Mapping[str, Any]) -> LearnerSettings:
    if state["format"] > FORMAT:
        raise StateIncompatible(f"the state has format {state['format']}, this version reads up to {FORMAT}")
    try:
        settings = LearnerSettings(**state["settings"])
    except ValidationError as error:
        names = ", ".join(".".join(map(str, fault["loc"])) or fault["msg"] for fault in error.errors())
        raise StateIncompatible(f"the state was made with settings that this version does not know: {names}") from error
    if METHODS[settings.method].scores is not Method.scores:
        raise SettingsError([f"method {settings.method} answers by more than its network, which cannot be exported"])
    return settings


def _normalisation(settings: LearnerSettings, inputs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Mean and standard deviation, one for all values or for each channel or feature."""
    if isinstance(settings.normalise, Normalisation):
        return np.array(settings.normalise.mean, np.float32), np.array(settings.normalise.std, np.float32)
    if settings.normalise == "none":
        return np.zeros(1, np.float32), np.ones(1, np.float32)
    std = np.sqrt(inputs["squares"] / max(inputs["count"], 1))
    std[std < 1e-8] = 1.0  # as the learner does: a feature that never changed says nothing
    return inputs["mean"].astype(np.float32), std.astype(np.float32)
