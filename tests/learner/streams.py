"""Small streams to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamlearn.records.record import Array


@dataclass(frozen=True)
class Examples:
    inputs: Array
    labels: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> Examples:
        return Examples(self.inputs[part], self.labels[part])


def blobs(classes: list[str], each: int, *, length: int = 12, seed: int = 0, mixed: bool = True) -> Examples:
    """Feature vectors: one cloud per class, well apart."""
    rng = np.random.default_rng(seed)
    centres = {name: np.random.default_rng([99, *name.encode()]).normal(0, 2, length) for name in classes}
    labels = [name for name in classes for _ in range(each)]
    order = rng.permutation(len(labels)) if mixed else np.arange(len(labels))
    labels = [labels[k] for k in order]
    inputs = np.stack([centres[name] + rng.normal(0, 0.5, length) for name in labels]).astype(np.float32)
    return Examples(inputs, labels)


def pictures(classes: list[str], each: int, *, side: int = 8, seed: int = 0, channels: int | None = None) -> Examples:
    """Pictures: one bright patch per class, in noise."""
    rng = np.random.default_rng(seed)
    labels = [classes[k] for k in rng.permutation(np.repeat(np.arange(len(classes)), each))]
    shape = (side, side) if channels is None else (side, side, channels)
    inputs: NDArray[np.uint8] = rng.integers(0, 60, (len(labels), *shape), dtype=np.uint8)
    for picture, label in zip(inputs, labels, strict=True):
        place = np.random.default_rng([7, *label.encode()]).integers(0, side - 2, 2)
        picture[place[0] : place[0] + 3, place[1] : place[1] + 3] = 230
    return Examples(inputs, labels)
