"""What learning and predicting hand back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from streamlearn.records.record import Array


@dataclass(slots=True)
class Batch:
    """Stream examples for one step: raw inputs and the outputs of their classes."""

    inputs: Array
    outputs: list[int]
    ids: Sequence[str | None] | None

    def __len__(self) -> int:
        return len(self.outputs)


@dataclass(slots=True)
class Step:
    """What one step of a method found."""

    loss_stream: float
    loss_replay: float | None  # None: nothing was replayed
    learning_rate: float
    outputs: Tensor  # of the network, from before the step; the stream examples come first


@dataclass(slots=True)
class Refit:
    cause: str  # new-class, end-of-group, interval, request
    group: str


@dataclass(slots=True)
class Report:
    """What one call of `learn` did. Losses are those of its last step."""

    examples: int = 0  # learned
    steps: int = 0
    loss_stream: float | None = None
    loss_replay: float | None = None
    learning_rate: float | None = None
    new_classes: list[str] = field(default_factory=list)
    new_groups: list[str] = field(default_factory=list)
    refits: list[Refit] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)  # steps undone because something was not finite, and what
    discarded_examples: int = 0
    predicted: list[str | None] | None = None  # with predict_first: the answer to each example before learning it

    def add_step(self, step: Step, examples: int) -> None:
        self.examples += examples
        self.steps += 1
        self.loss_stream, self.loss_replay, self.learning_rate = step.loss_stream, step.loss_replay, step.learning_rate

    def add_met(self, met: Report) -> None:
        self.new_classes += met.new_classes
        self.new_groups += met.new_groups
        self.refits += met.refits

    def add_discarded(self, examples: int, why: str) -> None:
        self.discarded.append(why)
        self.discarded_examples += examples


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions: a label for each input, and the probability of every known class (one column each)."""

    labels: list[str | None]  # None: no class is known yet
    probabilities: NDArray[np.float32]
    classes: tuple[str, ...]
