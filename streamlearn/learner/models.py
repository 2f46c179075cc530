"""The networks: a body that makes features, and a head with one output for each class that grows as classes turn up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from streamlearn.errors import SettingsError, StateIncompatible
from streamlearn.learner.randomness import Randomness
from streamlearn.settings.learner import LearnerSettings

HIDDEN = 256


class NotFinite(Exception):
    """A loss or gradient was not finite. Nothing was changed yet."""


class Head(nn.Module):
    """A linear layer that may have no outputs yet."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, features: Tensor) -> Tensor:
        return nn.functional.linear(features, self.weight, self.bias)


class Network(nn.Module):
    """body -> features -> head -> one output per class."""

    def __init__(self, body: nn.Module, features: int, frozen: bool) -> None:
        super().__init__()
        self.body, self.frozen = body, frozen
        self.head = Head(torch.zeros(0, features), torch.zeros(0))
        self.trained: list[Tensor] = []
        self._statistics: list[Tensor] = []  # of batch normalisation: a forward pass changes them
        body.requires_grad_(not frozen)
        # Whether a forward pass gives the same outputs while training as when asked for a prediction.
        self.same_when_training = frozen or not any(
            isinstance(module, nn.modules.batchnorm._BatchNorm | nn.modules.dropout._DropoutNd)
            for module in body.modules()
        )
        self._collect()
        self.train()

    def _collect(self) -> None:
        self.trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        self._statistics = list(self.buffers())

    @property
    def outputs(self) -> int:
        return len(self.head.bias)

    def train(self, mode: bool = True) -> Network:
        super().train(mode)
        if self.frozen:
            self.body.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.body(inputs))
        return outputs

    def grow(self, outputs: int, chance: Randomness) -> None:
        """Give the head this many outputs; those there are stay as they are."""
        more = outputs - self.outputs
        if more <= 0:
            return
        weight, bias = self.head.weight.detach(), self.head.bias.detach()
        features = weight.shape[1]
        bound = math.sqrt(6 / (features + outputs))  # Xavier, for the head as it becomes
        fresh = torch.from_numpy(chance.arrays.uniform(-bound, bound, (more, features)).astype(np.float32))
        self.replace(self.body, Head(torch.cat([weight, fresh]), torch.cat([bias, torch.zeros(more)])))

    def replace(self, body: nn.Module, head: Head) -> None:
        self.body, self.head = body, head
        self._collect()

    def mark(self) -> Any:
        return self.body, self.head, [statistic.clone() for statistic in self._statistics]

    def restore(self, mark: Any) -> None:
        body, head, statistics = mark
        self.replace(body, head)
        for statistic, before in zip(self._statistics, statistics, strict=True):
            statistic.copy_(before)

    def learning(self, inputs: Tensor) -> Tensor:
        """A forward pass to learn from."""
        if not self.training:
            self.train()
        outputs: Tensor = self(inputs)
        return outputs

    def answering(self, inputs: Tensor) -> Tensor:
        """A forward pass to answer with; nothing changes by it."""
        if self.training:
            self.eval()
        with torch.inference_mode():
            outputs: Tensor = self(inputs)
        return outputs

    def descend(self, losses: Tensor, rate: float) -> list[float]:
        """One step of gradient descent on the mean of the losses, which are returned as numbers."""
        # The gradient of the sum, divided in the step: the mean would be one operation more, there and back.
        self.move(self.gradients(losses.sum()), rate / len(losses))
        found: list[float] = losses.tolist()
        return found

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        """Of one number, for each trained parameter. Raises NotFinite if it or one of them is not."""
        gradients = torch.autograd.grad(loss, self.trained)
        # A sum is finite only if every term is, and it is the cheapest way to look at all of them.
        total = sum([gradient.sum().item() for gradient in gradients])
        if not math.isfinite(total + loss.item()):
            raise NotFinite(f"loss {loss.item():g}, sum of gradients {total:g}")
        return gradients

    def move(self, gradients: tuple[Tensor, ...], rate: float) -> None:
        """Go down along the gradients."""
        with torch.no_grad():
            for parameter, gradient in zip(self.trained, gradients, strict=True):
                parameter.add_(gradient, alpha=-rate)  # one by one is faster than torch's foreach

    def arrays(self, *, copy: bool = True) -> dict[str, Any]:
        return {
            name: tensor.numpy(force=True).copy() if copy else tensor.numpy(force=True)
            for name, tensor in self.state_dict().items()
        }

    def load_arrays(self, arrays: Mapping[str, Any], model: str) -> None:
        self.replace(self.body, Head(torch.zeros(arrays["head.weight"].shape), torch.zeros(arrays["head.bias"].shape)))
        load_tensors(self, {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}, model)


def load_tensors(module: nn.Module, tensors: Mapping[str, Tensor], model: str) -> None:
    """Like load_state_dict, with an error that names what does not fit."""
    own = module.state_dict()
    missing, unknown = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    other = sorted(name for name in own.keys() & tensors.keys() if own[name].shape != tensors[name].shape)
    if missing or unknown or other:
        parts = {"missing": missing, "unknown": unknown, "of another shape": other}
        said = "; ".join(f"{what}: {', '.join(names[:3])}" for what, names in parts.items() if names)
        raise StateIncompatible(f"these weights are not those of model {model} ({said})")
    module.load_state_dict(dict(tensors))


def build_network(
    settings: LearnerSettings, shape: tuple[int, ...], weights: Mapping[str, Tensor] | None = None
) -> Network:
    """The network of the settings for inputs of this shape, with no outputs yet; its weights follow from the seed."""
    with _own_randomness(settings.seed):
        if settings.model == "mlp":
            body: nn.Module = _Mlp(math.prod(shape))
            features = HIDDEN
        elif settings.model == "linear":
            body, features = nn.Flatten(), math.prod(shape)
        else:
            if len(shape) == 1:
                raise SettingsError([f"model {settings.model} looks at pictures, but the inputs are feature vectors"])
            channels = shape[2] if len(shape) == 3 else 1
            if settings.resnet_filters is not None:
                body, features = _resnet18(channels, settings.resnet_filters)
            else:
                body, features = _torchvision(settings.model.removeprefix("torchvision:"), channels, weights)
        network = Network(body, features, settings.freeze)
    return network.to(memory_format=torch.channels_last) if len(shape) == 3 else network


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """torch's layers fill themselves from its global generator: seed it for us, and leave it as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class _Mlp(nn.Module):
    """The paper's: two hidden layers, Xavier-uniform weights."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.second(self.first(inputs.flatten(1)).relu_()).relu_()
        return features


def _resnet18(channels: int, filters: int) -> tuple[nn.Module, int]:
    """The paper's has 64 filters; and a stem for small pictures (3x3, stride 1, no pooling)."""
    from torchvision.models.resnet import BasicBlock, ResNet

    body = ResNet(BasicBlock, [2, 2, 2, 2])
    features = 8 * filters
    if filters != 64:  # torchvision's own is made for 64: put other layers in their places
        body.inplanes, body.bn1 = filters, nn.BatchNorm2d(filters)
        for number, stride in enumerate((1, 2, 2, 2)):
            layer = body._make_layer(BasicBlock, filters << number, 2, stride)
            setattr(body, f"layer{number + 1}", layer)
            for convolution in (module for module in layer.modules() if isinstance(module, nn.Conv2d)):
                nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    body.conv1 = nn.Conv2d(channels, filters, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(body.conv1.weight, mode="fan_out", nonlinearity="relu")
    body.maxpool, body.fc = nn.Identity(), nn.Identity()
    return body, features


class _AsColour(nn.Module):
    """Grey pictures for a backbone that expects three channels."""

    def forward(self, pictures: Tensor) -> Tensor:
        return pictures.expand(-1, 3, -1, -1)


def _torchvision(name: str, channels: int, weights: Mapping[str, Tensor] | None) -> tuple[nn.Module, int]:
    """Any classification model of torchvision, without its last layer."""
    from torchvision import models

    names = models.list_models(module=models)
    if name not in names:
        import difflib

        near = difflib.get_close_matches(name, names, 1)
        raise SettingsError(
            [f"torchvision has no classification model {name!r}"], f"did you mean {near[0]}?" if near else ""
        )
    if channels not in (1, 3):
        raise SettingsError(
            [f"torchvision models look at 3 channels (or 1, repeated), but the pictures have {channels}"]
        )
    body = models.get_model(
        name, weights=None, **({"init_weights": True} if name in ("googlenet", "inception_v3") else {})
    )
    if weights is not None:
        load_tensors(body, weights, f"torchvision:{name}")
    if hasattr(body, "aux_logits"):  # googlenet and inception answer three times over while training: once will do
        body.aux_logits, body.aux1, body.aux2, body.AuxLogits = False, None, None, None
    place, last = [(place, layer) for place, layer in body.named_modules() if isinstance(layer, nn.Linear)][-1]
    body.set_submodule(place, nn.Identity())
    return (nn.Sequential(_AsColour(), body) if channels == 1 else body), last.in_features
