"""What comes when: the tasks of a data set one after the other, each mixed, each followed by what it is tested on.

The plan follows from the data set and the options alone. The producer sends it record by record, `reproduce` gives it
to a learner directly; both see the same pictures in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from replay_producers.datasets.dataset import DataSet, Part, Places
from streamlearn.errors import SettingsError

SHUFFLED = "shuffled"


@dataclass(frozen=True, slots=True)
class Options:
    """What decides the order. Equal options, equal streams."""

    seed: int = 0
    epochs: int = 1
    limit: int | None = None  # training pictures of one pass, spread evenly over the classes; as many test pictures
    class_order: str | None = None  # numbers or names with commas between them, or "shuffled"
    tasks: str | None = None  # a number of tasks, or the number of classes of each
    groups: Literal["explicit", "discovered"] = "explicit"
    evaluate: bool = True

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    classes: tuple[int, ...]
    train: Places  # every pass over it, one after the other
    test: Places  # of this task and all before it, in their order


def plan(dataset: DataSet, options: Options) -> list[Task]:
    order = _class_order(dataset.classes, options)
    sizes = _sizes(len(order), options.tasks) if options.tasks else dataset.tasks
    if sum(sizes) != len(order):
        raise SettingsError([f"--tasks: {sizes} is {sum(sizes)} classes, and {dataset.name} has {len(order)}"])
    train = _places_by_class(dataset.train, order, options.limit)
    test = _places_by_class(dataset.test, order, options.limit)
    chance = np.random.default_rng(1000 + options.seed)  # not the learner's generator, although it has the same seed
    tasks: list[Task] = []
    tested: list[Places] = []
    first = 0
    for number, size in enumerate(sizes, 1):
        classes = tuple(order[first : first + size])
        first += size
        everything = np.sort(np.concatenate([train[output] for output in classes]))
        passes = [chance.permutation(everything) for _ in range(options.epochs)]
        tested.append(np.sort(np.concatenate([test[output] for output in classes])))
        tasks.append(Task(f"task-{number}", classes, np.concatenate(passes), np.concatenate(tested)))
    return tasks


def _class_order(classes: Sequence[str], options: Options) -> list[int]:
    text = options.class_order
    if text is None:
        return list(range(len(classes)))
    if text.strip() == SHUFFLED:
        return [int(k) for k in np.random.default_rng([options.seed, 1]).permutation(len(classes))]
    places = {name: place for place, name in enumerate(classes)}
    order, faults = [], []
    for part in (one.strip() for one in text.split(",")):
        if part in places:
            order.append(places[part])
        elif part.isdecimal() and int(part) < len(classes):
            order.append(int(part))
        else:
            faults.append(f"--class-order: there is no class {part!r}; there are {_some(classes)}, or their numbers")
    twice = sorted({classes[place] for place in order if order.count(place) > 1})
    faults += [f"--class-order names {name!r} twice" for name in twice]
    if not faults and (left := [name for place, name in enumerate(classes) if place not in order]):
        faults.append(f"--class-order leaves out {_some(left)}: name every class once")
    if faults:
        raise SettingsError(faults)
    return order


def _sizes(classes: int, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise SettingsError([f"--tasks {text!r}: expected a number of tasks, or the classes of each such as 4,3,3"])
    if len(numbers) > 1:
        return numbers
    if classes % numbers[0]:
        raise SettingsError(
            [f"--tasks: {classes} classes do not make {numbers[0]} equal tasks"],
            "say how many each has, such as 4,3,3",
        )
    return (classes // numbers[0],) * numbers[0]


def _places_by_class(part: Part, order: Sequence[int], limit: int | None) -> dict[int, Places]:
    """Where the pictures of each class are; with a limit the first of each, as many of one class as of another."""
    by_class = {output: np.flatnonzero(part.labels == output) for output in order}
    if limit is None:
        return by_class
    shares = {output: limit // len(order) + (rank < limit % len(order)) for rank, output in enumerate(order)}
    return {output: places[: shares[output]] for output, places in by_class.items()}


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
