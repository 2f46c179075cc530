"""One run: a data set learned task by task with one method, buffer and seed, and how well each task is known after."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from replay_producers.benchmarks import BENCHMARKS, Benchmark, dataset_of
from replay_producers.datasets.dataset import DataSet, Places
from replay_producers.methods import learner_values
from replay_producers.plan import Options, Task, plan
from streamlearn.daemon.core import EVALUATED_AT_ONCE
from streamlearn.learner import Learner
from streamlearn.settings.learner import LearnerSettings

LEARNED_AT_ONCE = 100  # batches: bounds the memory that pictures read from a disk take

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What to run. Everything in it is plain, so that it can be handed to another process."""

    benchmark: str
    method: str
    buffer: int
    seed: int
    epochs: int
    limit: int | None
    data_dir: Path | None
    through: str  # "learner", "log" or a kafka:// URL

    @property
    def options(self) -> Options:
        return Options(seed=self.seed, epochs=self.epochs, limit=self.limit)

    @property
    def kind(self) -> str:
        """Through what, without the address."""
        return self.through.partition(":")[0]

    @property
    def identity(self) -> tuple[str, str, int, int, str]:
        return (self.benchmark, self.method, self.buffer, self.seed, self.kind)

    def values(self) -> dict[str, Any]:
        """The learner's settings."""
        benchmark, dataset = BENCHMARKS[self.benchmark], dataset_of(self.benchmark, self.data_dir)
        examples = sum(len(task.train) for task in plan(dataset, self.options))
        return learner_values(benchmark, self.method, self.buffer, self.seed, examples)

    def setup(self) -> str:
        """Names everything that decides the result, but for the code."""
        dataset = dataset_of(self.benchmark, self.data_dir)
        told = json.dumps([self.values(), self.options.plain(), dataset.digest()], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def described(self) -> str:
        buffer = f" @{self.buffer}" if self.buffer else ""
        return f"{self.method}{buffer} seed {self.seed}"


def runs_of(
    benchmark: Benchmark,
    methods: Sequence[tuple[str, Sequence[int]]],
    seeds: int,
    epochs: int,
    limit: int | None,
    data_dir: Path | None,
    through: str,
) -> list[Run]:
    """Seed by seed, so that after an interruption all methods have about as many runs."""
    return [
        Run(benchmark.name, method, buffer, seed, epochs, limit, data_dir, through)
        for seed in range(seeds)
        for method, buffers in methods
        for buffer in buffers
    ]


@contextmanager
def one_thread() -> Iterator[None]:
    """The number of threads is part of the arithmetic, and a daemon has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def through_learner(run: Run) -> Result:
    dataset = dataset_of(run.benchmark, run.data_dir)
    tasks = plan(dataset, run.options)
    learner = Learner(LearnerSettings.model_validate(run.values()))
    matrix: list[list[float]] = []
    learning = evaluating = 0.0
    chances = np.zeros(0)
    for task in tasks:
        start = time.perf_counter()
        learn_task(learner, dataset, task)
        middle = time.perf_counter()
        accuracies, chances = evaluate(learner, dataset, tasks[: len(matrix) + 1])
        matrix.append(accuracies)
        learning, evaluating = learning + middle - start, evaluating + time.perf_counter() - middle
    return finished(run, tasks, matrix[-1], learning + evaluating) | {
        "seconds_learning": learning,
        "matrix": matrix,
        "forgetting": forgetting(matrix),
        "task_probability": chances.tolist(),
    }


def learn_task(learner: Learner, dataset: DataSet, task: Task) -> None:
    for places in pieces(task.train, LEARNED_AT_ONCE * learner.settings.batch_size):
        learn_some(learner, dataset, task, places)
    learner.end_group()


def learn_some(learner: Learner, dataset: DataSet, task: Task, places: Places) -> None:
    labels = [dataset.classes[output] for output in dataset.train.labels[places].tolist()]
    learner.learn(dataset.train.read(places), labels, groups=[task.name] * len(labels))


def pieces(places: Places, size: int) -> list[Places]:
    return [places[start : start + size] for start in range(0, len(places), size)]


def evaluate(learner: Learner, dataset: DataSet, tasks: Sequence[Task]) -> tuple[list[float], np.ndarray[Any, Any]]:
    """The accuracy of each task in percent, and how likely each is named: on the tests of all of them, as one stream.

    In the portions that the daemon takes: the last bit of an answer may depend on how many are asked at once.
    """
    tested = tasks[-1].test
    task_of = {output: number for number, task in enumerate(tasks) for output in task.classes}
    right, total = [0] * len(tasks), [0] * len(tasks)
    chances = np.zeros(len(tasks))
    for places in pieces(tested, EVALUATED_AT_ONCE):
        answers = learner.predict(dataset.test.read(places))
        outputs = dataset.test.labels[places].tolist()
        for output, answer in zip(outputs, answers.labels, strict=True):
            total[task_of[output]] += 1
            right[task_of[output]] += answer == dataset.classes[output]
        for name, column in zip(answers.classes, answers.probabilities.sum(axis=0), strict=True):
            chances[task_of[dataset.classes.index(name)]] += column
    return [100 * hits / max(count, 1) for hits, count in zip(right, total, strict=True)], chances / chances.sum()


def finished(run: Run, tasks: Sequence[Task], by_group: Sequence[float], seconds: float) -> Result:
    """What every kind of run leaves in results.json."""
    return {
        "dataset": run.benchmark,
        "method": run.method,
        "buffer": run.buffer,
        "seed": run.seed,
        "accuracy": sum(by_group) / len(by_group),
        "accuracy_by_group": list(by_group),
        "seconds": seconds,
        "examples": sum(len(task.train) for task in tasks),
        "through": run.kind,
        "epochs": run.epochs,
        "limit": run.limit,
        "setup": run.setup(),
    }


def forgetting(matrix: Sequence[Sequence[float]]) -> float | None:
    """The best that each task but the last ever had minus what it has at the end, on average; None with one task."""
    if len(matrix) < 2:
        return None
    lost = [max(row[task] for row in matrix[task:]) - matrix[-1][task] for task in range(len(matrix) - 1)]
    return sum(lost) / len(lost)
