"""Which class was taken for which: how often each answer was given to each class."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from streamlearn.learner import texts

Pair = tuple[str, str | None]  # the true class and the answer; None: no class was known


class RecentConfusion:
    """Of the last `window` answers."""

    def __init__(self, window: int) -> None:
        self._pairs: deque[Pair] = deque(maxlen=window)

    def add(self, pairs: Iterable[Pair]) -> None:
        self._pairs.extend(pairs)

    def counts(self) -> Counter[Pair]:
        return Counter(self._pairs)

    def state_dict(self) -> dict[str, Any]:
        return {"pairs": texts.pack(chain.from_iterable(self._pairs))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        flat: list[Any] = texts.unpack(state["pairs"])
        self._pairs.extend(zip(flat[::2], flat[1::2], strict=True))


class RoundConfusion:
    """Of all answers of a round, which are the answers of one model; each group begins its rounds when it likes."""

    def __init__(self) -> None:
        self._rows: dict[str, Counter[Pair]] = {}  # by the group of the true class

    def add(self, group: str, pair: Pair) -> None:
        self._rows.setdefault(group, Counter())[pair] += 1

    def start_round(self, group: str) -> None:
        self._rows.pop(group, None)

    def counts(self) -> Counter[Pair]:
        return sum(self._rows.values(), Counter())

    def state_dict(self) -> dict[str, Any]:
        return {
            group: {
                "pairs": texts.pack(chain.from_iterable(row)),
                "counts": np.fromiter(row.values(), np.int64, len(row)),
            }
            for group, row in self._rows.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows = {}
        for group, row in state.items():
            flat: list[Any] = texts.unpack(row["pairs"])
            self._rows[group] = Counter(
                dict(zip(zip(flat[::2], flat[1::2], strict=True), row["counts"].tolist(), strict=True))
            )
