"""The paper's toy about balance: 1,020 items of six classes, mixed, offered to a buffer of twelve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlearn.learner.buffer import Buffer
from streamlearn.learner.eviction import EVICTIONS
from streamlearn.learner.randomness import Randomness

CLASSES, EACH, CAPACITY = 6, 170, 12
IDEAL = CAPACITY / CLASSES


@dataclass(frozen=True, slots=True)
class Balance:
    mean: list[float]  # items of each class that are kept
    deviation: list[float]
    error: float  # mean squared difference from two of each


def balance(eviction: str, repetitions: int) -> Balance:
    """With the learner's own buffer."""
    counts = np.zeros((repetitions, CLASSES))
    nothing = np.zeros((CLASSES * EACH, 1), np.uint8)
    for repetition in range(repetitions):
        items = np.repeat(np.arange(CLASSES), EACH)
        np.random.default_rng(repetition).shuffle(items)
        buffer = Buffer(CAPACITY, (1,), np.dtype(np.uint8), EVICTIONS[eviction]())
        buffer.know_classes(CLASSES)
        buffer.offer(nothing, items.tolist(), [1.0] * len(items), None, 0, Randomness(repetition))
        counts[repetition] = buffer.counts
    return Balance(counts.mean(0).tolist(), counts.std(0).tolist(), float(((counts - IDEAL) ** 2).mean()))
