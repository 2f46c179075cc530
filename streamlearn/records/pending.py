"""Examples that wait for their batch to be full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamlearn.records.record import Array, Example


class Pending:
    """Examples of one shape in the order they came. They are part of the state: a batch depends on the records' order
    alone, so one that is half full when the daemon stops is half full when it starts again.
    """

    def __init__(self) -> None:
        self.examples: list[Example] = []

    def __len__(self) -> int:
        return len(self.examples)

    def add(self, example: Example) -> None:
        self.examples.append(example)

    def take(self) -> list[Example]:
        taken, self.examples = self.examples, []
        return taken

    def state_dict(self) -> dict[str, Any]:
        return {
            "inputs": stacked(self.examples) if self.examples else None,
            "labels": [example.label for example in self.examples],
            "ids": [example.id for example in self.examples],
            "groups": [example.group for example in self.examples],
            "split": self.examples[0].split if self.examples else "train",
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.examples = [
            Example(state["inputs"][place], label, state["ids"][place], state["groups"][place], state["split"])
            for place, label in enumerate(state["labels"])
        ]


def stacked(examples: list[Example]) -> Array:
    """The inputs of examples that have one shape."""
    return np.array([example.input for example in examples])
