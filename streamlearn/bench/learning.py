"""How fast the learner is: against a bare torch loop, with large buffers, and when it refits the bias."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from streamlearn.bench.figures import Figure, rates_in_turns
from streamlearn.learner import Learner
from streamlearn.sample import NAMES, load_sample
from streamlearn.settings.learner import LearnerSettings

BATCH, REPLAY = 10, 32


def grouped_sample() -> tuple[NDArray[np.uint8], list[str]]:
    """The sample as a stream: five groups of two classes, one after the other, mixed inside each."""
    sample = load_sample()
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(np.flatnonzero(sample.train_labels // 2 == g)) for g in range(5)])
    return sample.train[order], [NAMES[label] for label in sample.train_labels[order]]


def learner_vs_bare_loop() -> Iterator[Figure]:
    inputs, labels = grouped_sample()
    learner = Learner(LearnerSettings(batch_size=BATCH, replay_batch=REPLAY, buffer_size=1000))

    def learn() -> int:
        for start in range(0, len(labels), BATCH):
            learner.learn(inputs[start : start + BATCH], labels[start : start + BATCH])
        return len(labels)

    rates = rates_in_turns({"learner": learn, "bare loop": bare_loop(inputs)}, rounds=7)
    yield Figure("learner_vs_bare_loop", rates["learner"], "examples/s", "bare torch loop", rates["bare loop"])


def bare_loop(inputs: NDArray[np.uint8]) -> Callable[[], int]:
    """Forward, backward and SGD step over ready-made batches of the same size, and nothing else."""
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 10),
    )  # fmt: skip
    optimiser = torch.optim.SGD(network.parameters(), lr=0.03)
    loss = torch.nn.CrossEntropyLoss()
    steps = len(inputs) // BATCH
    rng = np.random.default_rng(0)
    batches = [
        (
            torch.from_numpy(inputs[rng.integers(0, len(inputs), BATCH + REPLAY)] / np.float32(255)),
            torch.arange(42) % 10,
        )
        for _ in range(steps)
    ]

    def run() -> int:
        for pictures, targets in batches:
            optimiser.zero_grad()
            loss(network(pictures), targets).backward()
            optimiser.step()
        return steps * BATCH

    return run


def large_buffers() -> Iterator[Figure]:
    """Steps/s with a full buffer of each size, every second stream example accepted."""
    inputs, labels = grouped_sample()

    def stepping(size: int) -> Callable[[], int]:
        learner = Learner(LearnerSettings(batch_size=BATCH, replay_batch=REPLAY, buffer_size=size, bias="none"))
        learner.learn(inputs, labels)
        fill(learner, inputs)
        steps = 100

        def run() -> int:
            for step in range(steps):
                learner.examples_seen = 2 * size  # half of what comes is accepted
                start = step * BATCH
                learner.learn(inputs[start : start + BATCH], labels[start : start + BATCH])
            return steps

        return run

    rates = rates_in_turns({f"1e{power}": stepping(10**power) for power in (3, 4, 5, 6)}, rounds=7)
    for power in (4, 5, 6):
        yield Figure(f"buffer_1e{power}_vs_1e3", rates[f"1e{power}"], "steps/s", "buffer of 1e3", rates["1e3"])


def fill(learner: Learner, inputs: NDArray[np.uint8]) -> None:
    """Offer examples with plausible losses until the buffer is full, without learning from them."""
    buffer = learner.buffer
    assert buffer is not None
    rng = np.random.default_rng(1)
    while len(buffer) < buffer.capacity:
        count = min(10_000, buffer.capacity - len(buffer))
        outputs, losses = rng.integers(0, 10, count).tolist(), rng.exponential(0.5, count).tolist()
        buffer.offer(inputs[rng.integers(0, len(inputs), count)], outputs, losses, None, len(buffer), learner.chance)


def bias_refit() -> Iterator[Figure]:
    inputs, labels = grouped_sample()
    learner = Learner(LearnerSettings(buffer_size=1000))
    learner.learn(inputs, labels)
    seconds = []
    for _ in range(15):
        start = time.perf_counter()
        learner.refit_bias()
        seconds.append(time.perf_counter() - start)
    yield Figure("bias_refit", statistics.median(seconds), "s", "promised at most", 0.05)
