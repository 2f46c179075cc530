"""Random crops and flips of whole batches of raw pictures, drawn for each picture on its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def crop_flip(pictures: NDArray[np.uint8], padding: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Each picture, (H, W) or (H, W, C), is moved by up to `padding` pixels and mirrored half of the time."""
    count, height, width = pictures.shape[:3]
    padded = np.zeros((count, height + 2 * padding, width + 2 * padding, *pictures.shape[3:]), np.uint8)
    padded[:, padding : padding + height, padding : padding + width] = pictures
    moves = rng.integers(0, 2 * padding + 1, size=(2, count, 1))
    mirrored = rng.random((count, 1)) < 0.5
    rows = moves[0] + np.arange(height)
    columns = moves[1] + np.where(mirrored, np.arange(width)[::-1], np.arange(width))
    varied: NDArray[np.uint8] = padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return varied
