"""A small balanced sample of Fashion-MNIST that ships with the project: for the demo, the benchmark and the tests."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from streamlearn.settings.presets import FASHION_MNIST_CLASSES

NAMES = FASHION_MNIST_CLASSES


@dataclass(frozen=True, slots=True)
class Sample:
    """300 training and 50 test pictures (28 x 28, grey) of each of the ten classes, in the data set's order."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


def load_sample() -> Sample:
    with (files(__name__) / "fashion_mnist.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Sample(arrays["train"], arrays["train_labels"], arrays["test"], arrays["test_labels"])
