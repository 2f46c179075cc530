"""kill -9 at random moments: what is learned in the end is what would have been learned without, to the bit."""

from __future__ import annotations

import random
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from streamlearn.learner import texts
from streamlearn.records.record import Record
from streamlearn.stream.url import open_stream
from tests.records.mixed import examples, mixed
from tests.serving import SMALL, Serve, digest, run, saved_examples, saved_state

KINDS = ["log", "kafka", "kafka-3"]


class Feeder:
    """Appends records bit by bit, in chunks of any size."""

    def __init__(self, url: str, records: list[Record], rng: random.Random) -> None:
        self._stream, self._records, self._rng, self.fed = open_stream(url), records, rng, 0

    def feed(self, end: int) -> None:
        while self.fed < end:
            chunk = min(end - self.fed, self._rng.choice([1, 3, 40, 700]))
            self._stream.append(self._records[self.fed : self.fed + chunk])
            self.fed += chunk

    def close(self) -> None:
        self.feed(len(self._records))
        self._stream.close()


def kill_often(
    kills: int, state_dir: Path, url: str, records: list[Record], seed: int, settings: dict[str, Any]
) -> int:
    """Feed the records to daemons that are killed one after the other; returns how many had learned something new."""
    rng = random.Random(seed)
    feeder = Feeder(url, records, rng)
    new = before = 0
    for number, moment in zip(range(kills), cycle(["learning", "saving", "starting"]), strict=False):
        part = len(records) // (kills + 1)
        feeder.feed(number * part + rng.randrange(part // 2))  # some before it starts, the rest while it runs
        with Serve(state_dir, url, settings=settings) as daemon:
            if moment == "starting":
                daemon.wait(lambda: daemon.owns_the_directory, "the lock")
                time.sleep(rng.uniform(0, 2))
            else:
                feeder.feed(number * part + part // 2)
                daemon.learned(before + 1)
                feeder.feed((number + 1) * part)
                if moment == "saving":
                    daemon.kill_while_saving()
                else:
                    time.sleep(rng.uniform(0, 0.3))
        new += saved_examples(state_dir) > before
        before = saved_examples(state_dir)
    feeder.close()
    return new


def check_bits(kills: int, tmp_path: Path, url: str, seed: int) -> None:
    settings = {**SMALL, "stream.kafka.interleave": "fixed"}
    new = kill_often(kills, tmp_path / "killed", url, mixed(400 * (kills + 1), seed), seed, settings)
    assert new >= kills // 2, "killed before anything was learned, all too often"
    run(tmp_path / "killed", url, settings=settings)
    run(tmp_path / "whole", url, settings=settings)
    assert digest(tmp_path / "killed") == digest(tmp_path / "whole")
    counters = saved_state(tmp_path / "whole")["counters"]
    assert counters["examples_learned"] > 250 * kills
    assert counters["examples_evaluated"] > 20 * kills
    assert counters["rejected"]["bad-json"] > 0
    assert counters["refits"]["end-of-group"] == 3


@pytest.mark.parametrize("url", KINDS, indirect=True)
def test_killed_eight_times_the_state_is_the_same_to_the_bit(tmp_path: Path, url: str) -> None:
    check_bits(8, tmp_path, url, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("url", KINDS, indirect=True)
def test_killed_a_hundred_times_the_state_is_the_same_to_the_bit(tmp_path: Path, url: str) -> None:
    check_bits(100, tmp_path, url, seed=2)


def check_ids(count: int, kills: int, tmp_path: Path, url: str, batch: int) -> None:
    """Nothing leaves a buffer that is large enough, so it holds every example that was learned, as often as it was."""
    settings = {
        "learner.method": "sgd",
        "learner.model": "linear",
        "learner.buffer_size": 2 * count,
        "learner.batch_size": batch,
        "checkpoint.every_seconds": 0.3,
        "checkpoint.every_examples": count // 50,
    }
    state_dir = tmp_path / "state"
    assert kill_often(kills, state_dir, url, examples(count, length=2), 3, settings) >= kills // 2
    run(state_dir, url, settings=settings)
    state = saved_state(state_dir)
    waiting = state["training"]["ids"]
    ids = [*texts.unpack(state["learner"]["buffer"]["ids"]), *waiting]
    assert sorted(map(int, ids)) == list(range(count))
    assert state["learner"]["buffer"]["arrivals"].tolist() == list(range(count - len(waiting)))
    assert state["counters"]["records_consumed"] == count
    if url.startswith("log:"):
        assert ids == [str(number) for number in range(count)]


@pytest.mark.parametrize("url", ["log", "kafka-3"], indirect=True)
def test_each_of_20000_records_is_learned_once(tmp_path: Path, url: str) -> None:
    check_ids(20_000, 4, tmp_path, url, batch=10)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("url", ["log", "kafka-3"], indirect=True)
def test_each_of_a_million_records_is_learned_once(tmp_path: Path, url: str) -> None:
    check_ids(1_000_000, 20, tmp_path, url, batch=100)
