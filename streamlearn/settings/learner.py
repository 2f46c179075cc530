"""The learner's settings: one line and one comment per knob, and what each method sets by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Method = Literal["sgd", "joint", "er", "er+t"]

# What a method brings when a setting is not given. Everything not named here starts from the fields' own defaults.
METHOD_DEFAULTS: dict[Method, dict[str, Any]] = {
    "sgd": {"buffer_size": 0, "replay_batch": 0},
    "joint": {"buffer_size": 100_000, "replay_batch": 0},
    "er": {},
    "er+t": {"eviction": "lars+brs", "bias": "bic", "decay_horizon": 100_000, "buffer_augment": True},
}

# A state made under one value of these does not fit a learner with another.
ARCHITECTURE = ("method", "model", "freeze", "buffer_size", "normalise", "classes")


class Normalisation(BaseModel):
    """Subtract the mean, divide by the standard deviation; one number for all, or one per channel or feature.

    For pictures both are on the 0..1 scale.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: list[float]
    std: list[Annotated[float, Field(gt=0)]]

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.mean) != len(self.std) or not self.mean:
            raise ValueError(f"mean has {len(self.mean)} values and std {len(self.std)}: give both the same number")
        return self


class LearnerSettings(BaseModel):
    """How to learn. A method brings its own defaults; what is set wins."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    method: Method = Field(
        default="er+t", description="sgd, joint (keeps everything), er, or er+t (er with the five tricks)"
    )
    model: str = Field(
        default="mlp",
        description="mlp, resnet18, resnet18:N (N filters instead of 64), linear, or torchvision:NAME "
        "(such as torchvision:resnet50)",
    )
    weights: Path | None = Field(
        default=None, description="local .safetensors or .pth file with a torchvision model's weights"
    )
    freeze: bool = Field(default=False, description="keep a torchvision backbone as it is and train only the head")

    batch_size: int = Field(default=10, ge=1, description="stream examples in one step")
    replay_batch: int = Field(default=32, ge=0, description="examples replayed from the buffer in one step")
    learning_rate: float = Field(default=0.03, gt=0, description="where the learning rate starts")
    decay: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="the learning rate is multiplied by this for every example seen, and never resets",
    )
    decay_horizon: int | None = Field(
        default=None,
        ge=1,
        description="instead of decay: the number of examples after which a sixth of the rate is left",
    )
    decay_min_ratio: float = Field(
        default=1 / 6, ge=0, le=1, description="the rate never falls below this share of its start"
    )

    buffer_size: int = Field(default=1000, ge=0, description="examples remembered for replay")
    eviction: Literal["reservoir", "brs", "lars+brs"] = Field(
        default="reservoir",
        description="who makes room: any example, the largest class, or low losses of large classes",
    )
    bias: Literal["none", "bic", "cbic"] = Field(
        default="none", description="correct predictions for the last class group (bic) or for every group (cbic)"
    )
    bias_refit_every: int = Field(
        default=5000,
        ge=0,
        description="examples between two refits of the bias inside a class group (0: at its end only)",
    )
    bias_examples: int = Field(default=5000, ge=1, description="buffer examples a bias refit looks at, at the most")

    augment: Literal["none", "crop-flip"] = Field(default="none", description="how pictures are varied while learning")
    crop_padding: int = Field(default=4, ge=1, description="pixels around a picture that a random crop may reach into")
    buffer_augment: bool = Field(
        default=False, description="remember pictures as they came and vary them anew at each replay"
    )
    normalise: Literal["none", "running"] | Normalisation = Field(
        default="none", description="none, {mean, std}, or running (standardise features by what was seen so far)"
    )

    classes: list[str] = Field(default=[], description="class names, when all are known beforehand")
    max_classes: int = Field(default=1000, ge=1, description="one class more than this is refused")
    group_span: int = Field(
        default=500,
        ge=0,
        description="a new class this many examples after its group opened still belongs to that group",
    )
    seed: int = Field(default=0, ge=0, description="same records and same seed, same bits")

    @property
    def resnet_filters(self) -> int | None:
        """How wide the first layers of resnet18 are; None for another model."""
        name, colon, filters = self.model.partition(":")
        if name != "resnet18" or (colon and not re.fullmatch("[1-9][0-9]{0,3}", filters)):
            return None
        return int(filters) if colon else 64

    @model_validator(mode="after")
    def _complete_and_check(self) -> Self:
        for name, value in METHOD_DEFAULTS[self.method].items():
            replaced = name == "decay_horizon" and self.decay is not None
            if name not in self.model_fields_set and not replaced:
                self.__dict__[name] = value
        if faults := list(self._faults()):
            raise ValueError("; ".join(faults))
        return self

    def _faults(self) -> list[str]:
        """Settings that make no sense together, all of them, each with the way out."""
        torchvision = self.model.startswith("torchvision:")
        replays = self.method in ("er", "er+t")
        doubled = sorted({name for name in self.classes if self.classes.count(name) > 1})
        rules = [
            (
                self.model not in ("mlp", "linear") and self.resnet_filters is None and not torchvision,
                f"model {self.model!r} is not known: use mlp, resnet18, resnet18:N, linear or torchvision:NAME",
            ),
            (
                self.decay is not None and self.decay_horizon is not None,
                "decay and decay_horizon say the same thing twice: give one of them",
            ),
            (
                replays and self.buffer_size == 0,
                f"method {self.method} replays from a buffer, but buffer_size is 0: use method sgd or give it a size",
            ),
            (
                replays and self.replay_batch == 0,
                f"method {self.method} replays, but replay_batch is 0: use method sgd or give it a number",
            ),
            (
                not replays and self.replay_batch > 0,
                f"method {self.method} does not replay, but replay_batch is {self.replay_batch}: leave it out",
            ),
            (
                self.method == "joint" and self.buffer_size == 0,
                "method joint keeps every example, but buffer_size is 0: say how many it may keep",
            ),
            (
                self.method == "joint" and self.eviction != "reservoir",
                f"method joint evicts nothing, but eviction is {self.eviction}: leave it out",
            ),
            (
                self.bias != "none" and self.buffer_size == 0,
                f"bias {self.bias} is fitted on the buffer, but buffer_size is 0: give it a size or set bias to none",
            ),
            (
                self.eviction != "reservoir" and self.buffer_size == 0,
                f"eviction {self.eviction} needs a buffer, but buffer_size is 0",
            ),
            (self.weights is not None and not torchvision, "weights are read for torchvision models only"),
            (self.freeze and not torchvision, "freeze is for torchvision models only"),
            (self.freeze and self.weights is None, "freeze without weights would keep a random backbone: give weights"),
            (any(not name for name in self.classes), "classes has an empty name"),
            (bool(doubled), f"classes names twice: {', '.join(doubled)}"),
            (
                len(self.classes) > self.max_classes,
                f"classes has {len(self.classes)} names, more than max_classes {self.max_classes}",
            ),
        ]
        return [message for broken, message in rules if broken]
