"""Counters since this process started, of numbers that are older than it, with labels that may change.

The state's own counters are restored with a checkpoint: after a crash they are a little lower than what was exported
before. Prometheus would take the fall for a process that began at zero, and count the whole life once more. So what
is exported begins at zero in each learner process, which Prometheus understands: work that had to be done again after
a crash is counted again, because it was done again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Label = TypeVar("Label", bound=Hashable)


class Ledger(Generic[Key, Label]):
    """What was added to each number since `begin`, booked to the label that its key has when it is asked for.

    When a class group moves into `older`, its own series ends, and only what it counts from then on goes to `older`:
    no counter ever jumps by what another one had counted, and the sum of all rates is right.
    """

    def __init__(self) -> None:
        self._known: dict[Key, int] = {}
        self._booked: dict[Label, int] = {}

    def begin(self, numbers: Mapping[Key, int]) -> None:
        """How things stand when the process starts."""
        self._known = dict(numbers)

    def book(self, numbers: Mapping[Key, int], labels: Mapping[Key, Label]) -> dict[Label, int]:
        """What each label has had in this process. A number without a label is left out."""
        for key, number in numbers.items():
            if (label := labels.get(key)) is None:
                continue
            added = max(0, number - self._known.get(key, 0))
            self._booked[label] = self._booked.get(label, 0) + added
            self._known[key] = number
        return {label: self._booked[label] for label in dict.fromkeys(labels.values()) if label in self._booked}
