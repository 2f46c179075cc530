"""How much of the learner's speed is left in the whole daemon, and what saving costs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from streamlearn.bench.figures import Figure
from streamlearn.bench.learning import fill, grouped_sample
from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.daemon.core import Core
from streamlearn.daemon.saving import Saver
from streamlearn.learner import Learner
from streamlearn.records.encode import encode_example
from streamlearn.records.record import Record
from streamlearn.settings.daemon import Settings
from streamlearn.stream.url import open_stream

PASSES, ROUNDS = 8, 3


def through_log() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _through("log_vs_learner", f"log:{folder}/stream.log", Path(folder))


def through_kafka(url: str) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _through("kafka_vs_learner", f"{url.rstrip('/')}-bench-{uuid.uuid4().hex[:8]}", Path(folder))


def _through(name: str, url: str, folder: Path) -> Iterator[Figure]:
    """The daemon, fed with the sample several times over, against the learner alone on the same examples, in turns."""
    inputs, labels = grouped_sample()
    stream = open_stream(url)
    records = [encode_example(x, label, id=str(k)) for k, (x, label) in enumerate(zip(inputs, labels, strict=True))]
    for _ in range(PASSES):
        stream.append(records)
    stream.close()
    daemon, alone = [], []
    for turn in range(ROUNDS):
        daemon.append(_daemon_rate(url, folder / f"state-{turn}", len(labels)))
        alone.append(_learner_rate(inputs, labels))
    yield Figure(name, statistics.median(daemon), "examples/s", "learner alone", statistics.median(alone))


def _learner_rate(inputs: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], labels: list[str]) -> float:
    learner = Learner(Settings().learner)
    size = learner.settings.batch_size
    start = 0.0
    for turn in range(PASSES):
        if turn == 1:  # the first pass is for warming up, here as there
            start = time.perf_counter()
        for at in range(0, len(labels), size):
            learner.learn(inputs[at : at + size], labels[at : at + size])
    return (PASSES - 1) * len(labels) / (time.perf_counter() - start)


def _daemon_rate(url: str, state_dir: Path, warm_up: int) -> float:
    """Behind the first pass, as the daemon's own process saw it."""
    command = [sys.executable, "-m", "streamlearn.bench.follow_and_time", url, str(state_dir), str(warm_up)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"})
    return float(done.stdout)


def saving() -> Iterator[Figure]:
    """A buffer of 300 MB: the longest pause of learning while all of it is saved; what a save of 1 % changed writes."""
    size, shape = 100_000, (32, 32, 3)
    settings = Settings.model_validate({"learner": {"buffer_size": size, "bias": "none"}})
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (2000, *shape), dtype=np.uint8)
    labels = [f"class {k % 10}" for k in range(len(pictures))]
    learner = Learner(settings.learner)
    learner.learn(pictures[:100], labels[:100])
    fill(learner, pictures)
    learner.examples_seen = 1000 * size  # a long life: hardly anything new is accepted
    core = Core(settings, learner, _no_dead_letters)
    with tempfile.TemporaryDirectory() as folder:
        saver = Saver(CheckpointStore(Path(folder)), core, 0, 0)

        def learn_while(saving: bool) -> float:
            longest, step = 0.0, 0
            while step < 200 or (saving and saver.busy):
                begun = time.perf_counter()
                if saving and step == 50:
                    saver.save()
                at = 10 * (step % 200)
                learner.learn(pictures[at : at + 10], labels[at : at + 10])
                longest = max(longest, time.perf_counter() - begun)
                step += 1
            saver.finish()
            return longest

        quiet, busy = learn_while(False), learn_while(True)
        yield Figure("checkpoint_stall", busy, "s", "longest step without saving", quiet)
        whole = saver.last
        buffer = learner.buffer
        assert whole is not None
        assert buffer is not None
        for slot in rng.choice(size, size // 100, replace=False):
            buffer.erase(np.array([slot]))
            buffer.offer(pictures[:1], [0], [1.0], None, learner.examples_seen + int(slot), learner.chance)
        core.counters.records_consumed += 1
        saver.save(wait=True)
        part = saver.last
        assert part is not None
        yield Figure("checkpoint_bytes", part.bytes_written, "bytes", "the whole", whole.bytes_written)


def _no_dead_letters(record: Record, error: Exception) -> None:
    raise AssertionError(error)
