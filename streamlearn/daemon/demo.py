"""`serve --demo`: the sample that ships with the project arrives on the embedded log, two new classes at a time.

What is put on the log follows from its length alone, so a demo that was stopped goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from streamlearn.daemon.learning import Learning
from streamlearn.learner import Learner
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.record import Record
from streamlearn.run_folder import RunFolder, read_json
from streamlearn.sample import NAMES, Sample, load_sample
from streamlearn.settings.daemon import Settings
from streamlearn.settings.presets import DEMO
from streamlearn.stream.url import open_stream

PASSES = 2
RECORDS_AT_ONCE = 25
PAUSE_SECONDS = 0.08  # between them, so that a person can watch


class Demo:
    """Feeds the log from a thread of its own, and says at the end what was remembered."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._settings, self._console = settings, console
        self._sample = load_sample()
        self._records = list(demo_records(self._sample))
        self._pause = PAUSE_SECONDS if console.is_terminal else 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="demo", daemon=True)
        self.told = False

    def start(self) -> None:
        served = read_json(RunFolder(self._settings.state_dir).http)
        if served is not None:
            self._console.print(f"Watch it on [bold]{served['url']}[/]")
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _feed(self) -> None:
        stream = open_stream(self._settings.stream_url, self._settings.stream)
        stream.open(None)
        place = stream.ends()[0]
        while place < len(self._records) and not self._stopped.wait(self._pause):
            chunk = self._records[place : place + RECORDS_AT_ONCE]
            stream.append(chunk)
            place += len(chunk)
        stream.close()

    def look(self, learning: Learning) -> None:
        """Asked now and then: when everything was learned, tell once how it went."""
        if not self.told and learning.core.counters.records_consumed >= len(self._records):
            self.told = True
            self._console.print(self._summary(learning))
            self._console.print(
                f"It goes on following [bold]{learning.stream_url}[/] until Ctrl-C; start it again and it resumes.\n"
                f"To try next: [bold]streamlearn checkpoints list --state-dir {self._settings.state_dir}[/], "
                f"[bold]streamlearn export --state-dir {self._settings.state_dir} --format onnx --output model.onnx[/]"
            )

    def _summary(self, learning: Learning) -> Table:
        """Held-out accuracy of each pair of classes, and what plain gradient descent keeps of the same stream."""
        ours, plain = (answers_by_group(learner, self._sample) for learner in (learning.core.learner, self._plain()))
        table = Table(title="What is known at the end, of pictures never seen")
        table.add_column("classes, in order of arrival")
        table.add_column(f"this daemon ({learning.settings.learner.method})", justify="right", style="green")
        table.add_column("plain gradient descent", justify="right", style="red")
        for group, (kept, lost) in enumerate(zip(ours, plain, strict=True)):
            table.add_row(" and ".join(NAMES[2 * group : 2 * group + 2]), f"{kept:.0%}", f"{lost:.0%}")
        table.add_section()
        table.add_row("all ten", f"{np.mean(ours):.0%}", f"{np.mean(plain):.0%}")
        return table

    def _plain(self) -> Learner:
        settings = self._settings.learner.model_validate({"method": "sgd", "learning_rate": DEMO["learning_rate"]})
        learner = Learner(settings)
        for indices in demo_order(self._sample):
            learner.learn(self._sample.train[indices], [NAMES[k] for k in self._sample.train_labels[indices]])
        return learner


def demo_order(sample: Sample) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """For each group of two classes, the places of its training pictures: mixed, and several times over."""
    rng = np.random.default_rng(0)
    for group in range(5):
        members = np.flatnonzero(sample.train_labels // 2 == group)
        yield np.concatenate([rng.permutation(members) for _ in range(PASSES)])


def demo_records(sample: Sample) -> Iterator[Record]:
    """Each group is learned, ended, and then everything seen so far is asked for."""
    for group, indices in enumerate(demo_order(sample)):
        for place, k in enumerate(indices):
            yield encode_example(sample.train[k], NAMES[sample.train_labels[k]], id=f"train-{group}-{place}")
        yield encode_event("end-of-group")
        for k in np.flatnonzero(sample.test_labels // 2 <= group):
            yield encode_example(sample.test[k], NAMES[sample.test_labels[k]], split="eval")
    yield encode_event("flush")


def answers_by_group(learner: Learner, sample: Sample) -> list[float]:
    answers = learner.predict(sample.test).labels
    right = np.array([answer == NAMES[k] for answer, k in zip(answers, sample.test_labels, strict=True)])
    return [float(right[sample.test_labels // 2 == group].mean()) for group in range(5)]
