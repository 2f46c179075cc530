"""The plan as records, each with an id that says where in the sequence it stands.

The id is `run/number/picture`: the run follows from the data set and the options, so whoever finds such an id on a
stream knows that this record need not be sent again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from replay_producers.datasets.dataset import DataSet, Part, Places
from replay_producers.plan import Options, Task, plan
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.headers import Split
from streamlearn.records.record import Record

READ_AT_ONCE = 500


class Sequence:
    """All records of one run, in order; `records(start)` begins at any place without making those before it."""

    def __init__(self, dataset: DataSet, options: Options) -> None:
        self.dataset, self.options = dataset, options
        self.tasks = plan(dataset, options)
        told = json.dumps([dataset.digest(), options.plain()], sort_keys=True)
        self.run = hashlib.sha256(told.encode()).hexdigest()[:12]

    def __len__(self) -> int:
        return sum(self._length(task) for task in self.tasks) + 1

    @property
    def examples(self) -> int:
        return sum(len(task.train) for task in self.tasks)

    @property
    def evaluations(self) -> int:
        return sum(len(task.test) for task in self.tasks) if self.options.evaluate else 0

    @property
    def _explicit(self) -> bool:
        return self.options.groups == "explicit"

    def _length(self, task: Task) -> int:
        return len(task.train) + self._explicit + (len(task.test) if self.options.evaluate else 0)

    def records(self, start: int = 0) -> Iterator[Record]:
        """From the record with this number on."""
        number = 0  # of the first record of the task
        for task in self.tasks:
            if number + self._length(task) > start:
                yield from self._task(task, number, max(0, start - number))
            number += self._length(task)
        # Whatever waits for a full batch is learned now, what was held out is scored, and all of it is saved.
        if start <= number:
            yield self._event("flush", number)

    def _task(self, task: Task, number: int, skip: int) -> Iterator[Record]:
        yield from self._examples(task.train, "train", task, number, skip)
        number, skip = number + len(task.train), max(0, skip - len(task.train))
        if self._explicit:
            if not skip:
                yield self._event("end-of-group", number)
            number, skip = number + 1, max(0, skip - 1)
        if self.options.evaluate:
            yield from self._examples(task.test, "eval", task, number, skip)

    def _examples(self, places: Places, split: Split, task: Task, number: int, skip: int) -> Iterator[Record]:
        part: Part = self.dataset.train if split == "train" else self.dataset.test
        name = "train" if split == "train" else "test"
        group = task.name if self._explicit and split == "train" else None
        classes = self.dataset.classes
        for start in range(skip, len(places), READ_AT_ONCE):
            some = places[start : start + READ_AT_ONCE]
            for offset, (place, picture) in enumerate(zip(some.tolist(), part.read(some), strict=True), start):
                yield encode_example(
                    picture,
                    classes[part.labels[place]],
                    id=f"{self.run}/{number + offset}/{name}-{place}",
                    split=split,
                    group=group,
                )

    def _event(self, kind: str, number: int) -> Record:
        event = encode_event("flush" if kind == "flush" else "end-of-group")
        return event._replace(headers=(*event.headers, ("id", f"{self.run}/{number}/{kind}".encode())))

    def number_of(self, record: Record) -> int | None:
        """Where in this run a record found on a stream stands; None if it is of another run or not ours at all."""
        found = dict(record.headers).get("id", b"").split(b"/")
        if len(found) != 3 or found[0] != self.run.encode() or not found[1].isdigit():
            return None
        return int(found[1])
