"""Being told to stop, once or twice, while learning."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from streamlearn.stream.url import open_stream
from tests.records.mixed import mixed
from tests.serving import SMALL, Serve, digest, run, saved_state


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """More than is learned in a moment."""
    url = f"log:{tmp_path_factory.mktemp('signals') / 'stream.log'}"
    stream = open_stream(url)
    stream.append(mixed(RECORDS))
    stream.close()
    return url


@pytest.fixture(scope="module")
def undisturbed(url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The state of a run that nobody disturbed."""
    state_dir = tmp_path_factory.mktemp("undisturbed") / "state"
    run(state_dir, url)
    return digest(state_dir)


RECORDS = 6000
# Only the final checkpoint can have saved anything.
NEVER = {**SMALL, "checkpoint.every_seconds": 0, "checkpoint.every_examples": 0}


def test_told_to_stop_while_learning_it_saves_and_loses_nothing(tmp_path: Path, url: str, undisturbed: str) -> None:
    consumed = [0]
    for number in (signal.SIGTERM, signal.SIGINT):
        with Serve(tmp_path / "state", url, settings=NEVER) as daemon:
            daemon.hear("following the stream")
            assert daemon.stop(number) == 0
        assert daemon.lines[-1]["message"] == "stopped"
        consumed.append(saved_state(tmp_path / "state")["counters"]["records_consumed"])
    assert 0 <= consumed[1] <= consumed[2] < RECORDS
    assert consumed[2] > 0
    run(tmp_path / "state", url, settings=NEVER)
    assert digest(tmp_path / "state") == undisturbed


def test_a_second_ctrl_c_leaves_at_once_and_is_as_safe_as_a_kill(tmp_path: Path, url: str, undisturbed: str) -> None:
    with Serve(tmp_path / "state", url) as daemon:
        daemon.learned(500)
        os.kill(daemon.process.pid, signal.SIGSTOP)  # so that both are there when it goes on
        daemon.process.send_signal(signal.SIGINT)
        daemon.process.send_signal(signal.SIGCONT)
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.end(seconds=5) in (0, 130)
    run(tmp_path / "state", url)
    assert digest(tmp_path / "state") == undisturbed


def test_told_to_stop_while_it_starts(tmp_path: Path, url: str) -> None:
    with Serve(tmp_path / "state", url) as daemon:
        daemon.wait(lambda: daemon.owns_the_directory, "the lock")
        assert daemon.stop() == 0
