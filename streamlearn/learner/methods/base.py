"""What a method is.

A method says how to learn from one batch and how to score inputs. Everything else is the learner's: checks, classes and
groups, cutting batches, the bias correction, counting, undoing a step that went wrong, the state of shared parts.

The contract:
* `step` learns once from one batch of stream examples. It changes nothing of its own before `network.descend` (or
  `network.gradients`, for a method that bends them before `network.move`) has returned, so that a step that is not
  finite leaves the method as it was.
* `scores` gives one score per class for raw inputs, and changes nothing. Its default is the network.
* `end_group` is called when a class group has ended, before the bias is refitted.
* `grown` is called after the head got more outputs.
* `state_dict` holds what the method keeps beyond network and buffer, as arrays and plain values.

A method that makes no gradient step ignores the network and brings its own `scores`; one that stores more per example
keeps arrays beside the buffer, in step with the slots that `buffer.offer` returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.learner.augment import crop_flip
from streamlearn.learner.buffer import Buffer
from streamlearn.learner.decay import Decay
from streamlearn.learner.inputs import Inputs
from streamlearn.learner.models import Network
from streamlearn.learner.randomness import Randomness
from streamlearn.learner.report import Batch, Step
from streamlearn.records.record import Array
from streamlearn.settings.learner import LearnerSettings

SCORED_AT_ONCE = 1024  # bounds the memory of a large predict


@dataclass(slots=True)
class Parts:
    """What a method works with."""

    settings: LearnerSettings
    inputs: Inputs
    network: Network
    buffer: Buffer
    decay: Decay
    chance: Randomness
    new_network: Callable[[], Network]  # as it was before the first example


class Method(ABC):
    def __init__(self, parts: Parts) -> None:
        self.settings, self.inputs, self.network = parts.settings, parts.inputs, parts.network
        self.buffer, self.decay, self.chance = parts.buffer, parts.decay, parts.chance
        self.new_network = parts.new_network

    @abstractmethod
    def step(self, batch: Batch, seen: int) -> Step:
        """Learn from `batch`; `seen` stream examples came before it."""

    def scores(self, inputs: Array) -> NDArray[np.float32]:
        parts = [
            self.network.answering(self.inputs.tensor(inputs[start : start + SCORED_AT_ONCE])).numpy()
            for start in range(0, len(inputs), SCORED_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.network.outputs), np.float32)

    @property
    def answers_in_step(self) -> bool:
        """Whether the outputs that `step` learns from are also what `scores` would have answered."""
        return self.network.same_when_training and self.settings.augment == "none"

    def end_group(self, seen: int) -> None:
        """The classes so far are complete."""
        return

    def grown(self) -> None:
        """The head has more outputs now."""
        return

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        return

    def augmented(self, inputs: Array) -> Array:
        if self.settings.augment == "none" or inputs.dtype != np.uint8:
            return inputs
        return crop_flip(inputs.view(np.uint8), self.settings.crop_padding, self.chance.arrays)
