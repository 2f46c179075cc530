"""The state directory: one owner, damaged checkpoints, changed settings."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import pytest

from streamlearn.checkpoint.folder import Folder
from streamlearn.stream.url import open_stream
from tests.cli.command import streamlearn
from tests.records.mixed import mixed
from tests.serving import SMALL, Serve, digest, run, saved_examples


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with everything learned, and its log."""
    directory = tmp_path_factory.mktemp("learned") / "state"
    stream = open_stream(f"log:{directory.parent / 'stream.log'}")
    stream.append(mixed(600))
    stream.close()
    run(directory, f"log:{directory.parent / 'stream.log'}")
    return directory


@pytest.fixture
def state_dir(learned: Path, tmp_path: Path) -> Path:
    """A copy of that, to do harm to."""
    shutil.copytree(learned, tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture
def url(learned: Path) -> str:
    return f"log:{learned.parent / 'stream.log'}"


def test_a_second_daemon_is_refused_at_once_and_the_first_goes_on(tmp_path: Path, url: str) -> None:
    with Serve(tmp_path / "state", url) as first:
        first.hear("following the stream")
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            with Serve(tmp_path / "state", url) as second:
                assert second.end() == 5
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
            assert f"belongs to a running streamlearn, process {first.process.pid}" in second.errors
            assert "hint: stop that process, or use another state directory" in second.errors
        # Processor time, so that others on this machine do not matter; half a second of waiting comes on top.
        assert min(times) + 0.5 < 2
        first.learned(400)
        first.kill()
    run(tmp_path / "state", url)  # the lock died with its owner


def test_a_damaged_checkpoint_is_passed_over_and_the_result_is_the_same(state_dir: Path, url: str) -> None:
    whole, folder = digest(state_dir), Folder(state_dir)
    *_, before, newest = folder.numbers()
    path = folder.arrays_path(newest)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    daemon = run(state_dir, url)
    passed_over = daemon.hear("a damaged checkpoint was passed over")
    assert passed_over["number"] == newest
    assert path.name in passed_over["why"]
    assert daemon.hear("restored")["checkpoint"] == before
    assert digest(state_dir) == whole

    for number in folder.numbers():
        folder.manifest_path(number).write_bytes(b"{}")
    with Serve(state_dir, url) as daemon:
        assert daemon.end() == 5
    assert "is whole" in daemon.errors
    assert "restore" in daemon.errors
    assert daemon.said("following the stream") == []


def test_settings_that_make_another_model_are_refused_by_name(state_dir: Path, url: str) -> None:
    whole = digest(state_dir)
    for name, value, was in (("buffer_size", 70, 60), ("model", "linear", "'mlp'")):
        with Serve(state_dir, url, settings={**SMALL, f"learner.{name}": value}) as daemon:
            assert daemon.end() == 5
        assert f"{name} was {was} and is {value!r}" in daemon.errors
        assert digest(state_dir) == whole


def test_another_learning_rate_is_accepted_and_told_and_without_records_nothing_is_saved(
    state_dir: Path, url: str
) -> None:
    before = Folder(state_dir).numbers()
    daemon = run(state_dir, url, settings={**SMALL, "learner.learning_rate": 0.01})
    assert daemon.hear("settings changed since the checkpoint")["learning_rate"] == "0.03 -> 0.01"
    assert daemon.hear("restored")["examples"] == saved_examples(state_dir)
    assert Folder(state_dir).numbers() == before
    shown = streamlearn("checkpoints", "show", "--json", "--state-dir", state_dir)
    assert digest(state_dir) in shown.stdout
