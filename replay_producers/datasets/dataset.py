"""What every data set looks like from the outside."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pictures = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """Training or test pictures. `read` gives those at the asked places: all may not fit into memory at once."""

    labels: Places  # of every picture: its class as a place in `DataSet.classes`
    read: Callable[[Places], Pictures]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    classes: tuple[str, ...]
    train: Part
    test: Part
    tasks: tuple[int, ...]  # how many classes each task of the paper has
    source: str  # where it was read from, for people

    def digest(self) -> str:
        """Names what is in it, without looking at every picture."""
        found = hashlib.sha256("\0".join((self.name, *self.classes)).encode())
        for part in (self.train, self.test):
            found.update(part.labels.tobytes())
            if len(part):
                found.update(part.read(np.array([0, len(part) - 1])).tobytes())
        return found.hexdigest()


def part_of(pictures: Pictures, labels: NDArray[np.generic]) -> Part:
    """A part that is in memory as a whole."""
    return Part(labels.astype(np.int64), lambda places: pictures[places])
