"""Which row of which shard each slot of a large array is in, and what a save has to write."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.checkpoint.damage import Damaged
from streamlearn.checkpoint.shards import (
    DIGEST,
    SHARD_BYTES,
    Digests,
    RowKind,
    Shard,
    digest_rows,
    read_rows,
    write_shard,
)
from streamlearn.checkpoint.tree import AnyArray, Rows, raw
from streamlearn.errors import StateCorrupt

SMALL_BYTES = 1 << 20  # up to here all rows are written every time: a checkpoint that shares nothing costs next to
# nothing then, and damage to one never reaches the one before; above, a save may move that much to keep shards tidy
_MANY_SHARDS = 64

Slots = NDArray[np.int64]


@dataclass
class RowIndex:
    """The arrays have one entry per slot; where keys is -1, the slot is empty and the others mean nothing."""

    kind: RowKind
    shards: list[Shard]
    keys: Slots
    shard: NDArray[np.int64]
    row: NDArray[np.int64]
    digests: Digests

    def arrays(self, name: str) -> dict[str, AnyArray]:
        """What goes into the checkpoint's own file, in as few bytes as the numbers allow."""
        return {f"{part}:{name}": _narrow(getattr(self, part)) for part in ("keys", "shard", "row")}

    def digest(self) -> tuple[list[Any], str]:
        kind = [self.kind.dtype, list(self.kind.shape), len(self.keys)]
        return kind, hashlib.sha256(raw(self.digests)).hexdigest()


def _narrow(numbers: NDArray[np.int64]) -> AnyArray:
    if not len(numbers):
        return numbers
    return numbers.astype(np.result_type(np.min_scalar_type(numbers.min()), np.min_scalar_type(numbers.max())))


def save_rows(directory: Path, rows: Rows, before: RowIndex | None) -> tuple[RowIndex, int]:
    """Writes what `before` does not have, and returns the new index and the number of bytes written."""
    kind = RowKind(rows.dtype.name, tuple(rows.row_shape))
    keys = np.array(rows.keys, np.int64)
    filled = keys >= 0
    kept = np.zeros(len(keys), bool)
    nowhere = np.zeros(len(keys), np.int64)
    index = RowIndex(kind, [], keys, nowhere, nowhere.copy(), np.zeros((len(keys), DIGEST), np.uint8))
    if before is not None and before.kind == kind and filled.sum() * kind.bytes > SMALL_BYTES:
        common = min(len(keys), len(before.keys))
        kept[:common] = filled[:common] & (keys[:common] == before.keys[:common])
        kept[to_move(before, kept, int((filled & ~kept).sum()))] = False
        used, shard = np.unique(before.shard[:common][kept[:common]], return_inverse=True)
        index.shards = [before.shards[number] for number in used]
        index.shard[kept] = shard
        index.row[kept] = before.row[:common][kept[:common]]
        index.digests[kept] = before.digests[:common][kept[:common]]
    written = 0
    slots = np.flatnonzero(filled & ~kept)
    step = kind.fitting(SHARD_BYTES)
    for start in range(0, len(slots), step):
        part = slots[start : start + step]
        new, digests, size = write_shard(directory, kind, rows, part)
        index.shard[part] = len(index.shards)
        index.row[part] = np.arange(len(part))
        index.digests[part] = digests
        index.shards.append(new)
        written += size
    return index, written


def to_move(before: RowIndex, kept: NDArray[np.bool_], changed: int) -> Slots:
    """Slots that did not change but are written again, so that the shards they are in can go.

    Rows are moved when more than half of what the shards hold is garbage, from the emptiest shards first, and when
    there are too many shards, from the smallest. Never more than changed (or 1 MiB): that is enough to keep up, since
    the emptiest shard is then at most half alive, and to move one row out of it frees at least one row of garbage. A
    shard whose rows cannot all be moved now loses the others in later saves. They are read from memory and written
    like any change, so a crash in between costs nothing.
    """
    slots = np.flatnonzero(kept)
    shard = before.shard[slots]
    sizes = np.array([part.rows for part in before.shards], np.int64)
    live = np.bincount(shard, minlength=len(sizes))
    alive = np.flatnonzero(live)
    stored, wanted = int(sizes[alive].sum()), len(slots)
    count, limit = len(alive), _MANY_SHARDS + 2 * -(-wanted // before.kind.fitting(SHARD_BYTES))
    budget = max(changed, before.kind.fitting(SMALL_BYTES))
    worst = alive[np.argsort(live[alive] / sizes[alive] if stored > 2 * wanted else live[alive], kind="stable")]
    moved: list[Slots] = []
    for number in worst:
        if budget <= 0 or not (stored > 2 * wanted or count > limit):
            break
        out = slots[shard == number][:budget]
        moved.append(out)
        budget -= len(out)
        if len(out) == live[number]:
            stored, count = stored - int(sizes[number]) + len(out), count - 1
    return np.concatenate(moved) if moved else np.empty(0, np.int64)


def load_index(
    kind: RowKind, slots: int, shards: list[Shard], name: str, arrays: Mapping[str, AnyArray], digests: list[Digests]
) -> RowIndex:
    """From the checkpoint's own file, with every number checked; `digests` has those of each shard."""
    numbers: dict[str, NDArray[np.int64]] = {}
    for part in ("keys", "shard", "row"):
        array = arrays.get(f"{part}:{name}")
        if array is None or array.shape != (slots,) or array.dtype.kind not in "iu":
            raise Damaged(f"{name} has no {part} for its {slots} slots")
        numbers[part] = array.astype(np.int64)
    keys, shard, row = numbers["keys"], numbers["shard"], numbers["row"]
    filled = keys >= 0
    sizes = np.array([part.rows for part in shards], np.int64)
    if (keys < -1).any() or (shard < 0).any() or (row < 0).any():
        raise Damaged(f"{name} has negative numbers")
    if (shard[filled] >= len(shards)).any() or (row[filled] >= sizes[shard[filled]]).any():
        raise Damaged(f"{name} points outside its shards")
    per_slot = np.zeros((slots, DIGEST), np.uint8)
    if filled.any():
        first = np.cumsum(sizes) - sizes  # where each shard's digests start when all stand in one array
        per_slot[filled] = np.concatenate(digests)[first[shard[filled]] + row[filled]]
    return RowIndex(kind, shards, keys, shard, row, per_slot)


class StoredRows:
    """Rows of a checkpoint, read when asked for, each checked against its digest.

    To be read before the next save: a save may remove the shards they are in. Empty rows read as zeros.
    """

    def __init__(self, directory: Path, index: RowIndex) -> None:
        self._directory = directory
        self._index = index
        self.keys: Slots = index.keys.copy()
        self.dtype: np.dtype[Any] = np.dtype(index.kind.dtype)
        self.row_shape = index.kind.shape

    def read(self, rows: NDArray[np.int64]) -> AnyArray:
        index = self._index
        content = np.zeros((len(rows), *self.row_shape), self.dtype)
        filled = np.flatnonzero(index.keys[rows] >= 0)
        shard, row = index.shard[rows], index.row[rows]
        order = filled[np.lexsort((row[filled], shard[filled]))]
        try:
            for part in np.split(order, np.flatnonzero(np.diff(shard[order])) + 1):
                if len(part):
                    content[part] = read_rows(self._directory, index.kind, index.shards[shard[part[0]]], row[part])
        except Damaged as error:
            raise StateCorrupt(f"rows of a checkpoint went away while they were read: {error}") from error
        if not np.array_equal(digest_rows(content[filled]), index.digests[rows[filled]]):
            raise StateCorrupt("rows of a checkpoint changed between the check and the reading")
        return content

    def release(self) -> None:
        """Nothing is held."""
