from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replay_producers import split_cifar10, split_cifar100, split_core50, split_fashion_mnist, split_images
from replay_producers.datasets.fashion_mnist import read_fashion_mnist
from replay_producers.plan import Options
from replay_producers.producer import BATCH, produce
from replay_producers.sequence import Sequence as Run
from streamlearn.daemon.core import Core
from streamlearn.errors import StreamAway
from streamlearn.learner import Learner
from streamlearn.records.record import Record
from streamlearn.settings.daemon import Settings
from streamlearn.stream.interface import Stream
from streamlearn.stream.url import open_stream
from tests.broker import Broker
from tests.replay_producers import layouts
from tests.replay_producers.layouts import Known


def records_on(url: str) -> list[Record]:
    with closing(open_stream(url)) as stream:
        position = stream.open(None)
        ends, found = stream.ends(), list[Record]()
        while any(position.offsets[place] < end for place, end in ends.items()):
            found += stream.poll(1000, 5.0)
            position = stream.position()
        return found


def learned_from(url: str) -> Core:
    """A daemon's core that has taken every record of the stream, and remembers every example."""
    learner = {"method": "joint", "buffer_size": 1000, "model": "linear", "batch_size": 100}
    settings = Settings.model_validate({"learner": learner})

    def refuse(record: Record, error: Exception) -> None:
        raise AssertionError(f"refused: {error}")

    core = Core(settings, Learner(settings.learner), refuse)
    for record in records_on(url):
        core.take(record)
    return core


Write = Callable[[Path], tuple[Known, Known]]


@pytest.mark.parametrize(
    ("command", "write", "tasks"),
    [
        (split_fashion_mnist.command, layouts.write_fashion_mnist, 5),
        (split_cifar10.command, layouts.write_cifar10_python, 5),
        (split_cifar100.command, layouts.write_cifar100_python, 10),
        (split_core50.command, layouts.write_core50_folder, 9),
        (split_core50.command, layouts.write_core50_npz, 9),
    ],
)
def test_what_the_daemon_learns_is_what_was_in_the_file(
    command: Callable[..., None], write: Write, tasks: int, tmp_path: Path
) -> None:
    (pictures, labels), (tested, _) = write(tmp_path / "data")
    url = f"log:{tmp_path / 'stream.log'}"
    command(stream=url, data_dir=tmp_path / "data")
    core = learned_from(url)
    buffer, table = core.learner.buffer, core.learner.classes
    assert buffer is not None
    slots = buffer.filled()
    outputs = {name: place for place, name in enumerate(table.names)}
    classes = _classes(command, tmp_path / "data")
    remembered = Counter((int(buffer.classes[slot]), buffer.inputs[slot].tobytes()) for slot in slots)
    assert remembered == Counter(
        (outputs[classes[label]], picture.tobytes()) for label, picture in zip(labels, pictures, strict=True)
    )
    assert [group.name for group in table.groups] == [f"task-{number}" for number in range(1, tasks + 1)]
    held_out = core.accuracy.state_dict()["eval"]
    assert sum(one["recent"] for one in held_out.values()) == len(tested)


def _classes(command: Callable[..., None], data_dir: Path) -> tuple[str, ...]:
    from replay_producers.datasets.cifar import read_cifar10, read_cifar100
    from replay_producers.datasets.core50 import read_core50

    readers = {
        split_fashion_mnist.command: read_fashion_mnist,
        split_cifar10.command: read_cifar10,
        split_cifar100.command: read_cifar100,
        split_core50.command: read_core50,
    }
    return readers[command](data_dir).classes


def test_anyones_pictures(tmp_path: Path) -> None:
    written = layouts.write_folders(tmp_path / "pictures")
    url = f"log:{tmp_path / 'stream.log'}"
    split_images.command(tmp_path / "pictures", stream=url, hold_out=0.1)
    core = learned_from(url)
    buffer = core.learner.buffer
    assert buffer is not None
    remembered = {buffer.inputs[slot].tobytes() for slot in buffer.filled()}
    known = {picture.tobytes() for pictures in written.values() for picture in pictures}
    assert len(remembered) == 27
    assert remembered < known
    assert sorted(core.learner.classes.index) == ["cat", "dog", "owl"]


def test_discovered_groups_are_left_to_the_daemon(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    split_fashion_mnist.command(stream=url, limit=50, groups="discovered", evaluate=False)
    headers = [dict(record.headers) for record in records_on(url)]
    assert len(headers) == 51
    assert not any("group" in one for one in headers)
    assert [one["event"] for one in headers if "event" in one] == [b"flush"]


# ---------------------------------------------------------------------- each record once


@pytest.fixture
def run() -> Run:
    return Run(read_fashion_mnist(None), Options(limit=700))


def numbers(url: str, run: Run) -> list[int | None]:
    return [run.number_of(record) for record in records_on(url)]


class Away:
    """A stream that goes away after some records, in the middle of a batch, once or several times."""

    def __init__(self, stream: Stream, at: Sequence[int]) -> None:
        self._stream, self._at, self._appended = stream, list(at), 0

    def append(self, records: Sequence[Record]) -> None:
        if self._at and self._appended + len(records) > self._at[0]:
            some = self._at.pop(0) - self._appended
            self._stream.append(records[:some])
            self._appended += some
            raise StreamAway("the broker does not answer")
        self._stream.append(records)
        self._appended += len(records)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def test_the_same_again_adds_nothing(run: Run, tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    for _ in range(2):
        with closing(open_stream(url)) as stream:
            done = produce(stream, run)
        assert done.there == len(run)
    assert done.found == len(run)
    assert numbers(url, run) == list(range(len(run)))
    with closing(open_stream(url)) as stream:
        produce(stream, run, again=True)
    assert numbers(url, run) == [*range(len(run)), *range(len(run))]


@pytest.mark.parametrize("at", [[0], [1], [499], [500], [501], [730, 740, 1200]])
def test_a_stream_that_went_away_in_the_middle(run: Run, at: list[int], tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    with closing(open_stream(url)) as stream:
        assert produce(Away(stream, at), run).there == len(run)
    assert numbers(url, run) == list(range(len(run)))


@pytest.mark.parametrize("there", [0, 1, 699, 1300])
def test_it_goes_on_behind_what_is_there(run: Run, there: int, tmp_path: Path) -> None:
    """Also when others have sent much in between, and when records inside the last batch are missing."""
    url = f"log:{tmp_path / 'stream.log'}"
    missing = {number for number in (there - 3, there - 7) if number >= 0}
    with closing(open_stream(url)) as stream:
        stream.append(
            [record for number, record in enumerate(run.records()) if number < there and number not in missing]
        )
        other = Run(run.dataset, Options(limit=700, seed=5))
        stream.append(list(other.records()))
        assert produce(stream, run).there == len(run)
    found = numbers(url, run)
    assert sorted(number for number in found if number is not None) == list(range(len(run)))
    assert found.count(None) == len(other)


def test_several_partitions_of_a_real_topic(broker: Broker, run: Run) -> None:
    url = f"{broker.url}/{broker.new_topic(partitions=3)}"
    with closing(open_stream(url)) as stream:
        produce(Away(stream, [BATCH + 200]), run)
    with closing(open_stream(url)) as stream:
        assert produce(stream, run).found == len(run)
    found = Counter(numbers(url, run))
    assert sorted(found, key=lambda number: number or 0) == list(range(len(run)))
    assert max(found.values()) == 1


def test_a_rate_is_kept(tmp_path: Path) -> None:
    run = Run(read_fashion_mnist(None), Options(limit=20, evaluate=False))
    with closing(open_stream(f"log:{tmp_path / 'stream.log'}")) as stream:
        start = time.monotonic()
        produce(stream, run, rate=20)
        assert 1.0 < time.monotonic() - start < 3.0


# ---------------------------------------------------------------------- from the command line


def command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", f"replay_producers.{arguments[0]}", *arguments[1:]]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    arguments = ["--stream", url, "--limit", "300", "--no-eval"]
    program = [sys.executable, "-m", "replay_producers.split_fashion_mnist", *arguments, "--rate", "200"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (tmp_path / "stream.log").exists() or len(records_on(url)) < 20:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "The same command goes on from there" in told
    assert f"python -m replay_producers.split_fashion_mnist --stream {url} --limit 300" in told
    there = len(records_on(url))
    assert 20 <= there < 306
    assert f"{there} of 306 records" in told
    done = command_line("split_fashion_mnist", *arguments)
    assert done.returncode == 0
    assert f"{there} of them from before" in done.stderr
    run = Run(read_fashion_mnist(None), Options(limit=300, evaluate=False))
    assert numbers(url, run) == list(range(306))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["split_fashion_mnist", "--epochs", "0"], "--epochs"),
        (["split_fashion_mnist", "--stream", "ftp://x"], "is of no kind known here"),
        (["split_fashion_mnist", "--class-order", "1,2"], "leaves out"),
        (["split_fashion_mnist", "--data-dir", "/nowhere"], "/nowhere is not a directory"),
        (["split_cifar10"], "--data-dir is missing"),
        (["split_images"], "Missing argument"),
        (["split_images", "/nowhere"], "/nowhere is not a directory"),
    ],
)
def test_bad_options_are_told_in_a_line(arguments: list[str], said: str) -> None:
    done = command_line(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_producer_explains_itself() -> None:
    for name in ("split_fashion_mnist", "split_cifar100", "split_images"):
        done = command_line(name, "--help")
        assert done.returncode == 0
        assert "idempotent" in done.stdout


def test_ids_say_which_picture_it_was(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    split_fashion_mnist.command(stream=url, limit=20)
    sample = read_fashion_mnist(None)
    for record in records_on(url):
        headers = dict(record.headers)
        if "event" not in headers:
            part, place = headers["id"].decode().split("/")[2].split("-")
            pictures = sample.train if part == "train" else sample.test
            assert pictures.read(np.array([int(place)])).tobytes() == record.value
            assert sample.classes[pictures.labels[int(place)]] == headers["label"].decode()
