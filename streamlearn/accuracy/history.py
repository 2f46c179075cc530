"""How it came to be what it is: a line of points over the whole life, never longer than a page can draw.

Points are set by the number of examples learned, not by a clock, so that they are part of the state like all else.
When there are too many, every second one goes, and from then on they are set half as often.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.accuracy.accuracy import Accuracy

MOST_POINTS = 400  # even
FIRST_INTERVAL = 200  # examples
MOST_REFITS = 200

_COMMON = ("examples", "at", "learning_rate", "loss_stream", "loss_replay")
_GROUP = ("prequential", "eval", "forgetting", "predicted", "seen")  # the last two count from the beginning

Floats = NDArray[np.float64]


class History:
    def __init__(self) -> None:
        self.interval = FIRST_INTERVAL
        self.due = 0  # the number of examples from which on the next point is due
        self._points = 0
        self._common = np.full((MOST_POINTS, len(_COMMON)), np.nan)
        self._groups: dict[str, Floats] = {}
        self._new_classes: list[dict[str, Any]] = []
        self._refits: deque[dict[str, Any]] = deque(maxlen=MOST_REFITS)

    def add(self, groups: Iterable[str], accuracy: Accuracy, *common: float | None) -> None:
        """One point: what `_COMMON` names, and how well each group is known."""
        here = self._points
        self._points += 1
        self._common[here] = _numbers(common)
        for group in groups:
            if group not in self._groups:
                self._groups[group] = np.full((MOST_POINTS, len(_GROUP)), np.nan)
            self._groups[group][here] = _of_group(group, accuracy)
        seen = int(self._common[here, 0])
        if self._points == MOST_POINTS:
            self._thin_out()
        self.due = seen + self.interval

    def _thin_out(self) -> None:
        """Keeps the last one, from which the next counts."""
        self.interval *= 2
        self._points //= 2
        for points in (self._common, *self._groups.values()):
            points[: self._points] = points[1::2].copy()
            points[self._points :] = np.nan

    def new_class(self, examples: int, label: str) -> None:
        if not self._new_classes or self._new_classes[-1]["examples"] != examples:
            self._new_classes.append({"examples": examples, "kind": "new-class", "labels": []})
        self._new_classes[-1]["labels"].append(label)

    def refit(self, examples: int, cause: str, group: str) -> None:
        self._refits.append({"examples": examples, "kind": "bias-refit", "cause": cause, "group": group})

    def plain(self, accuracy: Accuracy, *common: float | None) -> dict[str, Any]:
        """All of it, and as its end the present, as plain values."""
        line = np.vstack([self._common[: self._points], _numbers(common)])
        columns = {name: _plain(line[:, place]) for place, name in enumerate(_COMMON)}
        return {
            "examples": [int(count or 0) for count in columns["examples"]],
            "at": columns["at"],
            "learning_rate": columns["learning_rate"],
            "loss": {"stream": columns["loss_stream"], "replay": columns["loss_replay"]},
            "groups": {
                group: _plain_group(np.vstack([points[: self._points], _of_group(group, accuracy)]))
                for group, points in self._groups.items()
            },
            "marks": sorted([*self._new_classes, *self._refits], key=lambda mark: mark["examples"]),
        }

    def state_dict(self) -> dict[str, Any]:
        """Copies: what is saved beside learning must not change."""
        return {
            "interval": self.interval,
            "due": self.due,
            "common": self._common[: self._points].copy(),
            "groups": {name: points[: self._points].copy() for name, points in self._groups.items()},
            "new_classes": [mark | {"labels": list(mark["labels"])} for mark in self._new_classes],
            "refits": list(self._refits),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.interval, self.due, self._points = state["interval"], state["due"], len(state["common"])
        self._common[: self._points] = state["common"]
        for name, points in state["groups"].items():
            self._groups[name] = np.full((MOST_POINTS, len(_GROUP)), np.nan)
            self._groups[name][: self._points] = points
        self._new_classes = list(state["new_classes"])
        self._refits.extend(state["refits"])


def _of_group(group: str, accuracy: Accuracy) -> Floats:
    return _numbers(
        (
            accuracy.now("prequential", group),
            accuracy.now("eval", group),
            accuracy.forgetting(group),
            accuracy.predicted[group],
            accuracy.seen(group),
        )
    )


def _plain_group(points: Floats) -> dict[str, Any]:
    """From the first point that has the group; counts as the growth since the point before."""
    first = int(np.argmax(~np.isnan(points[:, -1])))
    points = points[first:]
    columns: dict[str, Any] = {name: _plain(points[:, place]) for place, name in enumerate(_GROUP)}
    for place in (_GROUP.index("predicted"), _GROUP.index("seen")):
        columns[_GROUP[place]] = np.diff(points[:, place], prepend=0.0).astype(int).tolist()
    return {"from": first, **columns}


def _numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _plain(column: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in column]
