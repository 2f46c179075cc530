"""How long each method takes, beside a bare torch loop: all in turns, a few hundred examples at a time, so that
whatever else the machine does slows all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from replay_producers.benchmarks import BENCHMARKS, dataset_of
from replay_producers.datasets.dataset import DataSet
from replay_producers.methods import buffers_for, learner_values
from replay_producers.plan import Options, Task, plan
from replay_producers.progress import bar
from replay_producers.runs import learn_some, one_thread, pieces
from streamlearn.bench.learning import bare_loop
from streamlearn.learner import Learner
from streamlearn.settings.learner import LearnerSettings

BENCHMARK = "split-fashion-mnist"  # the paper's figure is about this one, with the smallest buffer
BUFFER = 200
SLICE = 600
BARE = "bare loop"
METHODS = ("sgd", "er", "er+t", "joint")


@dataclass(slots=True)
class Contender:
    learn: Callable[[Task, Any], object]
    end_task: Callable[[], object]
    by_task: list[float]  # seconds


def measure(data_dir: Path | None, limit: int | None) -> dict[str, Any]:
    """Seconds of learning for a whole run of each, task by task; nothing is evaluated in between."""
    dataset = dataset_of(BENCHMARK, data_dir)
    tasks = plan(dataset, Options(limit=limit))
    examples = sum(len(task.train) for task in tasks)
    with one_thread(), bar(examples, "how long each takes") as shown:
        contenders = {BARE: _bare(dataset)} | {name: _method(dataset, name, examples) for name in METHODS}
        _in_turns(contenders, tasks, shown.at)
    return {
        "examples": examples,
        "buffer": BUFFER,
        "at": time.time(),
        "seconds": {name: sum(contender.by_task) for name, contender in contenders.items()},
        "seconds_by_task": {name: contender.by_task for name, contender in contenders.items()},
    }


def _in_turns(contenders: dict[str, Contender], tasks: Sequence[Task], tell: Callable[[int], None]) -> None:
    names = list(contenders)
    done = 0
    for task in tasks:
        for contender in contenders.values():
            contender.by_task.append(0.0)
        for places in pieces(task.train, SLICE):
            names.append(names.pop(0))  # nobody always comes after the same one
            for name in names:
                contender = contenders[name]
                start = time.perf_counter()
                contender.learn(task, places)
                contender.by_task[-1] += time.perf_counter() - start
            done += len(places)
            tell(done)
        for contender in contenders.values():
            start = time.perf_counter()
            contender.end_task()
            contender.by_task[-1] += time.perf_counter() - start


def _method(dataset: DataSet, name: str, examples: int) -> Contender:
    (buffer,) = buffers_for(name, [BUFFER])
    values = learner_values(BENCHMARKS[BENCHMARK], name, buffer, 0, examples)
    learner = Learner(LearnerSettings.model_validate(values))
    return Contender(lambda task, places: learn_some(learner, dataset, task, places), learner.end_group, [])


def _bare(dataset: DataSet) -> Contender:
    """Forward, backward and step over ready-made batches of 10 + 32, as many as there are; no buffer, no copies."""
    loop = bare_loop(dataset.train.read(np.arange(min(SLICE, len(dataset.train)))))

    def learn(task: Task, places: Any) -> None:
        if len(places) == SLICE or len(dataset.train) < SLICE:
            loop()
        else:  # the rest at the end of a task
            bare_loop(dataset.train.read(places))()

    return Contender(learn, lambda: None, [])
