"""The replay buffer: raw examples in arrays that are allocated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.learner import texts
from streamlearn.learner.eviction import Eviction
from streamlearn.learner.randomness import Randomness
from streamlearn.records.record import Array

EMPTY = -1
_LOADED_AT_ONCE = 1024  # `inputs` may be read from elsewhere as it is asked for


class FrozenInputs:
    """The inputs of the first slots as they were at one moment. What is written over meanwhile is kept aside first, so
    freezing costs nothing at once and little later. `keys` are the arrival numbers: same key, same content.
    """

    def __init__(self, buffer: Buffer, count: int) -> None:
        self.keys: NDArray[np.int64] = buffer.arrivals[:count].copy()
        self.dtype, self.row_shape = buffer.inputs.dtype, buffer.inputs.shape[1:]
        self._buffer = buffer
        self._aside: dict[int, Array] = {}
        self._lock = Lock()

    def write_over(self, slots: list[int] | NDArray[np.int64], inputs: Array) -> None:
        with self._lock:
            for slot in map(int, slots):
                if slot not in self._aside:
                    self._aside[slot] = self._buffer.inputs[slot].copy()
            self._buffer.inputs[slots] = inputs

    def read(self, rows: NDArray[np.int64]) -> Array:
        with self._lock:
            inputs: Array = self._buffer.inputs[rows]
            for place, row in enumerate(rows.tolist() if self._aside else ()):
                if row in self._aside:
                    inputs[place] = self._aside[row]
        return inputs

    def release(self) -> None:
        with self._lock:
            self._aside.clear()
        self._buffer.thaw()


class Buffer:
    """Slots 0..capacity-1. A slot's arrival number (the count of examples before it in the stream) names its content:
    as long as it stays the same, so does the example. Memory is taken from the system as slots are first written.

    Slots are filled in order; one that was erased is a hole until the next example fills it.
    """

    def __init__(self, capacity: int, shape: tuple[int, ...], dtype: np.dtype[Any], eviction: Eviction) -> None:
        self.capacity = capacity
        self.inputs: Array = np.zeros((capacity, *shape), dtype)
        self.classes = np.full(capacity, EMPTY, np.int32)
        self.losses = np.zeros(capacity, np.float32)
        self.arrivals = np.full(capacity, EMPTY, np.int64)
        self.ids = np.full(capacity, None, object)
        self.counts: list[int] = []  # slots of each class
        self.loss_sum = 0.0
        self.size = 0  # filled slots
        self._eviction = eviction
        self._holes: list[int] = []  # erased slots, the next one to fill last
        self._filled: NDArray[np.int64] | None = None  # the filled slots while there are holes
        self._frozen: FrozenInputs | None = None

    def __len__(self) -> int:
        return self.size

    def know_classes(self, count: int) -> None:
        """Make room for the counts of this many classes."""
        if count > len(self.counts):
            self.counts += [0] * (count - len(self.counts))
            self._eviction.know_classes(count)

    def filled(self) -> NDArray[np.int64]:
        """The slots that hold an example."""
        if not self._holes:
            return np.arange(self.size)
        if self._filled is None:
            self._filled = np.flatnonzero(self.classes != EMPTY)
        return self._filled

    def draw(self, count: int, chance: Randomness) -> NDArray[np.int64]:
        """Up to `count` different filled slots, each as likely as any other."""
        slots = np.array(chance.subset(self.size, min(count, self.size)), np.int64)
        return self.filled()[slots] if self._holes else slots

    def refresh(self, slots: NDArray[np.int64], outputs: list[int], losses: list[float]) -> None:
        """These slots, of these classes, were replayed, and this is their loss now."""
        self.loss_sum += sum(losses) - sum(self.losses[slots].tolist())
        self.losses[slots] = losses
        self._eviction.refreshed(slots.tolist(), outputs, losses)

    def offer(
        self,
        inputs: Array,
        outputs: list[int],
        losses: list[float],
        ids: Sequence[str | None] | None,
        seen: int,
        chance: Randomness,
    ) -> dict[int, int]:
        """Reservoir sampling, example by example in stream order. `seen` examples came before the first of these.

        Returns which of them are in which slot now: {slot: place in the batch}.
        """
        taken: dict[int, int] = {}
        for place, share in enumerate(chance.uniforms(len(outputs))):
            if self.size < self.capacity:
                slot = self._holes.pop() if self._holes else self.size
            else:
                drawn = int(share * (seen + place + 1))
                if drawn >= self.capacity:
                    continue
                slot = self._eviction.victim(self, drawn, chance)
                self._vacate(slot)
            self._occupy(slot, outputs[place], losses[place], seen + place, None if ids is None else ids[place])
            taken[slot] = place
        if taken:
            self._write(list(taken), inputs[list(taken.values())])
        return taken

    def erase(self, slots: NDArray[np.int64]) -> int:
        """Forget these slots: wiped, never drawn again, and filled by the next examples."""
        slots = np.unique(slots)
        slots = slots[self.classes[slots] != EMPTY]
        for slot in map(int, slots):
            self._vacate(slot)
            self.classes[slot], self.arrivals[slot], self.losses[slot] = EMPTY, EMPTY, 0
            self.ids[slot] = None
        self._write(slots, np.zeros((len(slots), *self.inputs.shape[1:]), self.inputs.dtype))
        self._find_holes()
        return len(slots)

    def _write(self, slots: list[int] | NDArray[np.int64], inputs: Array) -> None:
        """The only place where an example's content changes."""
        frozen = self._frozen  # once: the thread that reads it may let go of it now
        if frozen is None:
            self.inputs[slots] = inputs
        else:
            frozen.write_over(slots, inputs)

    def _occupy(self, slot: int, output: int, loss: float, arrival: int, id: str | None) -> None:
        self.classes[slot], self.losses[slot], self.arrivals[slot], self.ids[slot] = output, loss, arrival, id
        self.counts[output] += 1
        self.loss_sum += loss
        self.size += 1
        self._filled = None
        self._eviction.filled(slot, output, loss, self.counts[output])

    def _vacate(self, slot: int) -> None:
        output = int(self.classes[slot])
        self.counts[output] -= 1
        self.loss_sum -= float(self.losses[slot])
        self.size -= 1
        self._eviction.left(slot, output, self.counts[output])

    def _find_holes(self) -> None:
        filled = np.flatnonzero(self.classes != EMPTY)
        end = int(filled[-1]) + 1 if len(filled) else 0
        self._holes = np.flatnonzero(self.classes[:end] == EMPTY)[::-1].tolist()
        self._filled = None

    def freeze(self) -> FrozenInputs:
        """The inputs as they are now, for another thread to read while learning goes on. One at a time."""
        if self._frozen is not None:
            raise RuntimeError("the buffer is frozen already")
        self._frozen = FrozenInputs(self, self.size + len(self._holes))
        return self._frozen

    def thaw(self) -> None:
        self._frozen = None

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """All of it, up to the last filled slot. Without `copy`, arrays that the next step may change, and the ids not
        packed: that takes a while.
        """
        end = self.size + len(self._holes)
        arrays = {name: getattr(self, name)[:end] for name in ("inputs", "classes", "losses", "arrivals")}
        return {name: array.copy() if copy else array for name, array in arrays.items()} | {
            "ids": texts.pack(self.ids[:end]) if copy else self.ids[:end],
            "loss_sum": self.loss_sum,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        end = len(state["classes"])
        self.classes[end:], self.arrivals[end:], self.losses[end:], self.ids[end:] = EMPTY, EMPTY, 0, None
        for start in range(0, end, _LOADED_AT_ONCE):
            slots = np.arange(start, min(end, start + _LOADED_AT_ONCE))
            self._write(slots, state["inputs"][slots])
        for name in ("classes", "losses", "arrivals"):
            getattr(self, name)[:end] = state[name]
        self.ids[:end] = texts.unpack(state["ids"])
        self.counts = np.bincount(self.classes[self.classes != EMPTY], minlength=len(self.counts)).tolist()
        self.loss_sum = float(state["loss_sum"])
        self._find_holes()
        self.size = end - len(self._holes)
        self._eviction.loaded(self)
