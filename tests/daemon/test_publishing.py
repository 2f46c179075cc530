"""Snapshots are published when due, numbered for ever upwards, and change nothing in the learner."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from streamlearn import disk, snapshot
from streamlearn.daemon import publishing
from streamlearn.daemon.core import Core
from streamlearn.daemon.events import Events
from streamlearn.daemon.publishing import Publisher
from streamlearn.run_folder import RunFolder, read_json
from streamlearn.settings.daemon import Settings
from tests.http.client import trained
from tests.learner.states import digest


@pytest.fixture
def core(tmp_path: Path) -> Core:
    RunFolder(tmp_path).make()
    return Core(Settings.model_validate({"learner": {"buffer_size": 50}}), trained(100), lambda *_: None)


class Clock:
    """Time that goes only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.time = time.time

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(publishing, "time", clock)
    return clock


def publisher(core: Core, state_dir: Path) -> Publisher:
    return Publisher(state_dir, core, 1.0, lambda: {"state": "learning"}, Events())


def settle(publisher: Publisher) -> None:
    publisher.look()
    if publisher._thread is not None:
        publisher._thread.join()


def version(state_dir: Path) -> int:
    return snapshot.newest_version(snapshot.folder_of(state_dir))


def learn(core: Core) -> None:
    from streamlearn.sample import load_sample

    core.learner.learn(load_sample().test[:10], ["more"] * 10)


def test_at_once_at_the_start_then_when_something_was_learned_and_it_is_time(
    core: Core, tmp_path: Path, clock: Clock
) -> None:
    ours = publisher(core, tmp_path)
    settle(ours)
    assert version(tmp_path) == 1
    clock.now += 2
    settle(ours)
    assert version(tmp_path) == 1  # nothing was learned
    learn(core)
    clock.now += 1
    settle(ours)
    assert version(tmp_path) == 2
    learn(core)
    settle(ours)
    assert version(tmp_path) == 2  # not yet
    ours.hurry()
    settle(ours)
    assert version(tmp_path) == 3
    assert read_json(RunFolder(tmp_path).status) == {
        "state": "learning",
        "snapshot": {"version": 3, "published_at": ours.last and ours.last.published_at, "examples_seen": 0},
    }


def test_numbers_go_on_after_a_restart_and_after_damage(core: Core, tmp_path: Path) -> None:
    for expected in (1, 2, 3):
        settle(publisher(core, tmp_path))
        assert version(tmp_path) == expected
    (snapshot.folder_of(tmp_path) / snapshot.NAME).write_bytes(b"damaged")
    settle(publisher(core, tmp_path))
    assert version(tmp_path) > 3


def test_it_changes_nothing_in_the_learner(core: Core, tmp_path: Path) -> None:
    before = digest(core.learner.state_dict())
    ours = publisher(core, tmp_path)
    settle(ours)
    ours.finish()
    assert digest(core.learner.state_dict()) == before


def test_a_full_disk_is_survived_and_tried_again(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    ours = publisher(core, tmp_path)
    settle(ours)

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    learn(core)
    clock.now += 1
    with monkeypatch.context() as patch:
        patch.setattr(disk, "fsync", refuse)
        settle(ours)
    assert (ours.failed, version(tmp_path)) == (1, 1)
    clock.now += 1
    settle(ours)
    assert version(tmp_path) == 3  # the number that failed is not used again
