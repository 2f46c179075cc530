"""From raw arrays to what the network sees: checks, normalisation, the shape torch wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamlearn.errors import BadInput
from streamlearn.records.record import Array
from streamlearn.settings.learner import LearnerSettings, Normalisation


class Inputs:
    """Turns raw batches into normalised tensors. With `normalise = "running"` it knows mean and variance so far."""

    def __init__(self, settings: LearnerSettings, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self.pictures = dtype == np.uint8
        self.running = settings.normalise == "running"
        self.count = 0
        self.mean: NDArray[np.float64] = np.zeros(shape if self.running else 0)
        self.squares: NDArray[np.float64] = np.zeros(shape if self.running else 0)  # summed squared deviations
        self._ready = np.empty((0, *shape), np.float32)
        self._shift: Tensor | None = None
        self._scale: Tensor | None = None
        if self.running and self.pictures:
            raise BadInput("normalise is running, which is for features", "for pictures give mean and std")
        if settings.augment != "none" and not self.pictures:
            raise BadInput(f"augment is {settings.augment}, but the inputs are features, not pictures")
        if isinstance(settings.normalise, Normalisation):
            self._fix(settings.normalise)

    def _fix(self, normalise: Normalisation) -> None:
        channels = self.shape[-1] if len(self.shape) != 2 else 1  # (H, W) has one channel, a vector one per feature
        if len(normalise.mean) not in (1, channels):
            raise BadInput(
                f"normalise has {len(normalise.mean)} values for inputs of shape {self.shape}: give {channels}"
            )
        self._shift = torch.tensor(normalise.mean, dtype=torch.float32)
        self._scale = 1 / torch.tensor(normalise.std, dtype=torch.float32)

    def observe(self, batch: Array) -> None:
        """Count this batch in the running mean and variance. New arrays, so that whoever kept the old can go back."""
        if not self.running:
            return
        fresh = batch.astype(np.float64)
        count, mean = len(fresh), fresh.mean(axis=0)
        total, step = self.count + count, mean - self.mean
        self.squares = self.squares + ((fresh - mean) ** 2).sum(axis=0) + step**2 * (self.count * count / total)
        self.mean = self.mean + step * (count / total)
        self.count = total

    def tensor(self, raw: Array, more: Array | None = None) -> Tensor:
        """(count, channels, height, width) for pictures, (count, length) for vectors; float32 and normalised.

        With `more`, both one after the other. The memory is used again by the next call.
        """
        split, count = len(raw), len(raw) + (0 if more is None else len(more))
        if len(self._ready) < count:
            self._ready = np.empty((count, *self.shape), np.float32)
        ready = self._ready[:count]
        ready[:split] = raw
        if more is not None:
            ready[split:] = more
        if self.pictures:
            np.multiply(ready, np.float32(1 / 255), out=ready)
        values = torch.from_numpy(ready)
        if self.running:
            std = np.sqrt(self.squares / max(self.count, 1))
            std[std < 1e-8] = 1.0  # a feature that never changed says nothing
            values = (values - torch.from_numpy(self.mean.astype(np.float32))) / torch.from_numpy(
                std.astype(np.float32)
            )
        elif self._shift is not None and self._scale is not None:
            values = (values - self._shift) * self._scale
        if self.pictures:
            # A permuted view of the picture as it is stored: torch calls this channels_last and is faster with it.
            values = values.unsqueeze(1) if len(self.shape) == 2 else values.permute(0, 3, 1, 2)
        return values

    def mark(self) -> Any:
        return self.count, self.mean, self.squares

    def restore(self, mark: Any) -> None:
        self.count, self.mean, self.squares = mark

    def state_dict(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "dtype": str(self.dtype),
            "count": self.count,
            "mean": self.mean.copy(),
            "squares": self.squares.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]
        self.mean, self.squares = np.array(state["mean"]), np.array(state["squares"])
