"""The learner's own chance: two generators from one seed, saved with the state and put back when a step is undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

_BLOCK = 1024

Mark: TypeAlias = tuple[dict[str, Any], list[float], int]


class Randomness:
    """Single numbers come from blocks drawn in advance: a step takes about fifty, and taking one, or remembering where
    one was, costs next to nothing. `arrays` is for whole arrays at a time.
    """

    def __init__(self, seed: int) -> None:
        singles, arrays = np.random.SeedSequence(seed).spawn(2)
        self._singles = np.random.default_rng(singles)
        self._arrays = np.random.default_rng(arrays)
        self._arrays_mark: dict[str, Any] | None = None
        self._draw_block()

    def _draw_block(self) -> None:
        self._before: dict[str, Any] = dict(self._singles.bit_generator.state)
        self._block: list[float] = self._singles.random(_BLOCK).tolist()
        self._next = 0

    def uniform(self) -> float:
        """At least 0 and below 1."""
        if self._next == _BLOCK:
            self._draw_block()
        self._next += 1
        return self._block[self._next - 1]

    def below(self, limit: int) -> int:
        """One of 0..limit-1."""
        return int(self.uniform() * limit)

    def uniforms(self, count: int) -> list[float]:
        start, self._next = self._next, self._next + count
        if self._next <= _BLOCK:
            return self._block[start : self._next]
        self._next = start
        return [self.uniform() for _ in range(count)]

    def subset(self, size: int, count: int) -> list[int]:
        """`count` different ones of 0..size-1, every such set as likely as any other (Floyd's way)."""
        taken: set[int] = set()
        for last, chance in enumerate(self.uniforms(count), size - count):
            one = int(chance * (last + 1))
            taken.add(last if one in taken else one)
        return list(taken)

    @property
    def arrays(self) -> np.random.Generator:
        if self._arrays_mark is None:
            self._arrays_mark = dict(self._arrays.bit_generator.state)
        return self._arrays

    def mark(self) -> Mark:
        self._arrays_mark = None
        return self._before, self._block, self._next

    def restore(self, mark: Mark) -> None:
        if self._block is not mark[1]:  # it went on to another block: put the generator behind the old one again
            self._singles.bit_generator.state = mark[0]
            self._singles.random(_BLOCK)
        self._before, self._block, self._next = mark
        if self._arrays_mark is not None:
            self._arrays.bit_generator.state = self._arrays_mark

    def state_dict(self) -> dict[str, Any]:
        return {"singles": self._before, "taken": self._next, "arrays": dict(self._arrays.bit_generator.state)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._singles.bit_generator.state = state["singles"]
        self._draw_block()
        self._next = state["taken"]
        self._arrays.bit_generator.state = state["arrays"]
