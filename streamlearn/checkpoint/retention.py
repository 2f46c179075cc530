"""Which checkpoints stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Retention:
    """The last `keep`; and of those whose number is a multiple of `keep_every`, the last `keep_long`."""

    keep: int = 3
    keep_every: int = 10
    keep_long: int = 10

    def __post_init__(self) -> None:
        if self.keep < 1 or self.keep_every < 1 or self.keep_long < 0:
            raise ValueError(f"{self} would keep nothing")

    def stays(self, whole: Iterable[int], damaged: Iterable[int]) -> set[int]:
        """A damaged one takes nobody's place; it stays to be looked at for as long as a whole one would have."""
        numbers = sorted(whole)
        recent = numbers[-self.keep :]
        long = [number for number in numbers if number % self.keep_every == 0]
        long = long[max(0, len(long) - self.keep_long) :]
        oldest = recent[0] if recent else 0
        return {*recent, *long, *(number for number in damaged if number >= oldest)}
