"""How well each class group is known: test-then-train on the stream, and on held-out records, now and over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np

Source = Literal["prequential", "eval"]
SOURCES: tuple[Source, ...] = get_args(Source)

_ENOUGH = 50  # outcomes in the window before its accuracy can be called the best so far


class Tally:
    """Outcomes of one class group from one source: all of them, the recent ones, and the best those ever were.

    Recent are the last `window`, or without a window all since `start_round`.
    """

    def __init__(self, window: int | None) -> None:
        self.evaluated = self.correct = 0
        self.best: float | None = None
        self._window: deque[bool] | None = None if window is None else deque(maxlen=window)
        self._recent = self._recent_correct = 0

    def add(self, hit: bool) -> None:
        if self._window is not None:
            if self._recent == self._window.maxlen:
                self._recent -= 1
                self._recent_correct -= self._window[0]
            self._window.append(hit)
        self._recent += 1
        self._recent_correct += hit
        self.evaluated += 1
        self.correct += hit

    @property
    def now(self) -> float | None:
        """Accuracy of the recent ones; None when there are none."""
        return self._recent_correct / self._recent if self._recent else None

    @property
    def recent(self) -> tuple[int, int]:
        """How many recent ones there are, and how many of them were right."""
        return self._recent, self._recent_correct

    @property
    def forgetting(self) -> float | None:
        """Best so far minus now."""
        return None if self.best is None or self.now is None else max(0.0, self.best - self.now)

    def settle(self) -> None:
        """The recent ones belong together: is this the best yet?"""
        enough = self._window is None or self._recent >= min(_ENOUGH, self._window.maxlen or _ENOUGH)
        if self.now is not None and enough and (self.best is None or self.now > self.best):
            self.best = self.now

    def start_round(self) -> None:
        self._recent = self._recent_correct = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "evaluated": self.evaluated,
            "correct": self.correct,
            "best": self.best,
            "recent": self._recent,
            "recent_correct": self._recent_correct,
            "window": None if self._window is None else np.fromiter(self._window, bool, len(self._window)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.evaluated, self.correct, self.best = state["evaluated"], state["correct"], state["best"]
        self._recent, self._recent_correct = state["recent"], state["recent_correct"]
        if self._window is not None:
            self._window.extend(state["window"].tolist())
            self._recent, self._recent_correct = len(self._window), sum(self._window)  # the window may be smaller now


class Accuracy:
    """A tally for each class group and source, and which group the answers went to.

    Held-out records come in rounds: those between two examples learned are answers of one and the same model, so the
    first one after learning starts its group's tally anew, and the accuracy of a round is exact, not a mixture.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self.tallies: dict[Source, dict[str, Tally]] = {source: {} for source in SOURCES}
        self.predicted: dict[str, int] = {}  # answers by the group of the class they named
        self._stale: set[str] = set()  # groups whose held-out outcomes are of an older model

    def add(self, source: Source, outcomes: Iterable[tuple[str, bool, str | None]]) -> None:
        """For each answer: the group of the true class, whether it was right, the group of the class it named."""
        tallies = self.tallies[source]
        touched = set()
        for group, hit, named in outcomes:
            tally = tallies.get(group)
            if tally is None:
                tally = tallies[group] = self._tally(source)
            if source == "eval" and group in self._stale:
                tally.start_round()
                self._stale.discard(group)
            tally.add(hit)
            touched.add(group)
            if named is not None:
                self.predicted[named] = self.predicted.get(named, 0) + 1
        if source == "prequential":
            for group in touched:
                tallies[group].settle()

    def _tally(self, source: Source) -> Tally:
        return Tally(self._window if source == "prequential" else None)

    def learned(self) -> None:
        """The model has changed: the round of held-out records, if there was one, is over."""
        held_out = self.tallies["eval"]
        if len(self._stale) < len(held_out):
            for group in held_out.keys() - self._stale:
                held_out[group].settle()
            self._stale = set(held_out)

    def forgetting(self, group: str) -> float | None:
        """From held-out records if there are any: they alone come for old groups, too."""
        tally = self.tallies["eval"].get(group) or self.tallies["prequential"].get(group)
        return None if tally is None else tally.forgetting

    def state_dict(self) -> dict[str, Any]:
        return {
            **{
                source: {name: t.state_dict() for name, t in tallies.items()}
                for source, tallies in self.tallies.items()
            },
            "predicted": dict(self.predicted),
            "stale": sorted(self._stale),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for source in SOURCES:
            self.tallies[source] = {}
            for name, tally in state[source].items():
                self.tallies[source][name] = self._tally(source)
                self.tallies[source][name].load_state_dict(tally)
        self.predicted = dict(state["predicted"])
        self._stale = set(state["stale"])
