"""A stream as it comes in life: classes in groups, held-out records between, ends of groups, now and then rubbish."""

from __future__ import annotations

import random
import time

from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.record import Record
from tests.learner.streams import blobs

BEGAN = time.time_ns() // 1_000_000 - 3_600_000  # recent: a broker deletes records of long ago
GROUPS = (("ant", "bee"), ("cat", "dog", "elk"), ("fox", "gnu"))
RUBBISH = (b"", b"{", b'{"x": [1, 2]}', b'{"x": [1, 2], "label": "ant"}', b"\xff\xfe", b'{"x": "?", "label": "ant"}')


def examples(count: int, *, length: int = 6, classes: tuple[str, ...] = ("ant", "bee"), seed: int = 0) -> list[Record]:
    """Numbered feature vectors: the id is the place in the list."""
    found = blobs(list(classes), -(-count // len(classes)), length=length, seed=seed)[:count]
    return [
        encode_example(row, label, id=str(place), timestamp=BEGAN + place)
        for place, (row, label) in enumerate(zip(found.inputs, found.labels, strict=True))
    ]


def mixed(count: int, seed: int = 0) -> list[Record]:
    """About `count` records; the same for the same seed."""
    rng = random.Random(seed)
    records: list[Record] = []
    for number in range(len(GROUPS)):
        share = count // len(GROUPS)
        learned = examples(share, classes=GROUPS[number], seed=seed + number)
        known = tuple(name for group in GROUPS[: number + 1] for name in group)
        held_out = examples(share, classes=known, seed=seed + 100 + number)
        for one, other in zip(learned, held_out, strict=True):
            kind = rng.random()
            if kind < 0.1:
                records.append(other._replace(headers=(*other.headers, ("split", b"eval"))))
            elif kind < 0.13:
                records.append(Record(rng.choice(RUBBISH)))
            else:
                records.append(one)
        records.append(encode_event("flush" if number == 1 else "end-of-group"))
    return [record._replace(timestamp=BEGAN + place) for place, record in enumerate(records)]
