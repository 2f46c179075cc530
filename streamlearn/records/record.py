"""The words of the stream: what comes off it (Record), what it means (Example, Event), and how far one has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.uint8] | NDArray[np.float32]
Headers: TypeAlias = tuple[tuple[str, bytes], ...]


class Record(NamedTuple):
    """Raw: nothing has been looked at yet. A tuple, because thousands are made every second."""

    value: bytes
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int = 0  # milliseconds since 1970, from the producer
    partition: int = 0
    offset: int = -1  # -1: not on a stream yet


class Example(NamedTuple):
    """Decoded: one input with its label."""

    input: Array
    label: str
    id: str | None = None
    group: str | None = None
    split: Literal["train", "eval"] = "train"


@dataclass(frozen=True, slots=True)
class Event:
    """A record that asks for something instead of teaching something."""

    kind: Literal["end-of-group", "flush"]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream has been read: for each partition, the offset of the next record.

    `stream_id` names the very stream these offsets belong to (a Kafka topic's id, the embedded log's own id), so that a
    topic that was deleted and created again under its old name is not mistaken for the one that was read.
    `turn` is the partition whose record comes next where partitions are interleaved in a fixed order.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    stream_id: str = ""
    turn: int = 0

    def to_plain(self) -> dict[str, Any]:
        """As a checkpoint has it: keys are texts there."""
        offsets = {str(partition): offset for partition, offset in self.offsets.items()}
        return {"offsets": offsets, "stream_id": self.stream_id, "turn": self.turn}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        offsets = {int(partition): offset for partition, offset in plain["offsets"].items()}
        return cls(offsets, plain["stream_id"], plain["turn"])
