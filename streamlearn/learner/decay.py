"""ELRD: a learning rate that falls with every example of the learner's whole life and never resets."""

from __future__ import annotations

import math

from streamlearn.settings.learner import LearnerSettings


class Decay:
    def __init__(self, settings: LearnerSettings) -> None:
        self.start = settings.learning_rate
        self.floor = settings.learning_rate * settings.decay_min_ratio
        if settings.decay_horizon is not None:
            self.gamma = math.pow(1 / 6, 1 / settings.decay_horizon)
        else:
            self.gamma = 1.0 if settings.decay is None else settings.decay

    def rate(self, seen: int) -> float:
        return max(self.start * math.pow(self.gamma, seen), self.floor)
