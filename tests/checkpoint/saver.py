"""Saves one state after the other until it is killed: what each is follows from its step, so that a reader can tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from streamlearn.checkpoint import CheckpointStore, index
from streamlearn.lock import DirectoryLock
from tests.checkpoint.states import Buffer, state

SLOTS, ROW = 600, 512


def state_at(step: int) -> dict[str, Any]:
    """As if one slot in ten had changed in every step."""
    buffer = Buffer(SLOTS, (ROW,))
    for slot in range(SLOTS):
        changed = step - (step - slot) % 10
        if changed >= 0:
            buffer.content[slot] = np.random.default_rng((changed, slot)).integers(0, 256, ROW)
            buffer.keys[slot] = changed * SLOTS + slot
    return state(buffer, step)


def main(state_dir: Path) -> None:
    index.SMALL_BYTES = 4 << 10  # so that shards are shared and moved although the buffer is small
    with DirectoryLock(state_dir):
        store = CheckpointStore(state_dir)
        loaded = store.load()
        step = loaded.tree["step"] + 1 if loaded else 0
        while True:
            store.write(state_at(step), examples_seen=step, position={"0": step})
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()
            step += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
