"""`streamlearn serve` in a process of its own, watched through what it says and what it leaves on the disk."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.lock import NAME as LOCK
from tests.broker import Broker
from tests.cli.command import ENVIRONMENT, MAIN

PATIENCE = 60.0  # seconds: a busy machine fails nothing, a daemon that hangs does
SMALL: Mapping[str, object] = {
    "learner.buffer_size": 60,
    "learner.batch_size": 5,
    "learner.replay_batch": 10,
    "learner.group_span": 50,
    "checkpoint.every_seconds": 0.2,
    "checkpoint.every_examples": 100,
}


def wait_until(done: Callable[[], object], what: str, *, seconds: float = PATIENCE, pause: float = 0.02) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        if pause:
            time.sleep(pause)


class Serve:
    """A running daemon. Used as a context manager, so that none outlives its test."""

    _serial = itertools.count()

    def __init__(
        self,
        state_dir: Path,
        url: str,
        *arguments: str,
        settings: Mapping[str, object] = SMALL,
        environment: Mapping[str, str] | None = None,
        output_dir: Path | None = None,
        http: str | None = None,
    ) -> None:
        self.state_dir = state_dir
        self._output = (output_dir or state_dir.parent) / f"{state_dir.name}-{next(self._serial)}.out"
        command = [*MAIN, "serve", "--state-dir", str(state_dir), "--stream", url, *arguments]
        command += ["--http", http] if http else ["--no-http"]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        self.began = time.monotonic()
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command, env={**ENVIRONMENT, **(environment or {})}, stdout=output, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Serve:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert "Traceback" not in self.output, self.output

    # ------------------------------------------------------------------ what it says

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its log, as far as it is written."""
        return [
            json.loads(line) for line in self.output.splitlines(keepends=True) if line[0] == "{" and line[-1] == "\n"
        ]

    @property
    def errors(self) -> str:
        """What it says outside the log: why it stopped, and what to do."""
        return "".join(line for line in self.output.splitlines(keepends=True) if not line.startswith("{"))

    def said(self, message: str) -> list[dict[str, Any]]:
        """The log lines that begin like this."""
        return [line for line in self.lines if line["message"].startswith(message)]

    def hear(self, message: str, *, times: int = 1, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait for a line that begins like this."""
        self.wait(lambda: len(self.said(message)) >= times, f"{message!r} {times} times", seconds=seconds)
        return self.said(message)[times - 1]

    def wait(self, done: Callable[[], object], what: str, *, seconds: float = PATIENCE) -> None:
        def look() -> object:
            ended = self.process.poll() is not None  # first: what it did before it ended counts
            if (found := done()) or not ended:
                return found
            raise AssertionError(f"it ended with {self.process.returncode} before {what}:\n{self.output}")

        try:
            wait_until(look, what, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output[-3000:]}") from None

    def learned(self, examples: int) -> None:
        """Wait for a checkpoint with at least so many examples."""
        self.wait(lambda: saved_examples(self.state_dir) >= examples, f"{examples} examples saved")

    def passed(self, records: int) -> None:
        """Wait for a checkpoint behind so many records."""
        self.wait(lambda: saved_records(self.state_dir) >= records, f"{records} records saved")

    @property
    def owns_the_directory(self) -> bool:
        lock = self.state_dir / LOCK
        return lock.exists() and lock.read_text().strip() == str(self.process.pid)

    # ------------------------------------------------------------------ how it ends

    def end(self, *, seconds: float = PATIENCE) -> int:
        """Wait for it to end by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s:\n{self.output[-3000:]}") from None

    def stop(self, number: int = signal.SIGTERM, *, seconds: float = 10.0) -> int:
        """Ask it to stop; it has to within `seconds`."""
        self.process.send_signal(number)
        return self.end(seconds=seconds)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def kill_while_saving(self) -> None:
        """Stop it in its tracks when a save has begun; if that was still under way, kill it, else try the next save."""
        folder = self.state_dir / "checkpoints"

        def caught() -> bool:
            if not unfinished(folder):
                return False
            os.kill(self.process.pid, signal.SIGSTOP)
            if unfinished(folder):
                return True
            os.kill(self.process.pid, signal.SIGCONT)
            return False

        wait_until(caught, "a save under way", pause=0)
        self.kill()


def run(state_dir: Path, url: str, *arguments: str, **options: Any) -> Serve:
    """Learn everything there is and stop."""
    with Serve(state_dir, url, "--until-idle", *arguments, **options) as daemon:
        assert daemon.end(seconds=120) == 0, daemon.output
    return daemon


def unfinished(folder: Path) -> bool:
    """Whether a save has begun that has not ended."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return False
    arrays = {name.partition(".")[0] for name in names if name.endswith(".safetensors")}
    return bool(arrays - {name.partition(".")[0] for name in names if name.endswith(".json")}) or any(
        name.endswith(".tmp") for name in names
    )


def digest(state_dir: Path) -> str:
    """Of the whole newest state."""
    return CheckpointStore(state_dir).show()[0].sha256


def saved_examples(state_dir: Path) -> int:
    return max((info.examples_seen for info in CheckpointStore(state_dir).list()), default=0)


def saved_records(state_dir: Path) -> int:
    """How many records of its stream, counted from offset 0 of each partition, are behind the newest checkpoint."""
    positions = [position for position in CheckpointStore(state_dir).positions() if position is not None]
    return sum(positions[-1]["offsets"].values()) if positions else 0


def saved_state(state_dir: Path) -> Any:
    """The newest state, to look into; the buffer's inputs are read, too."""
    loaded = CheckpointStore(state_dir).load()
    assert loaded is not None
    assert not loaded.skipped
    buffer = loaded.tree["learner"]["buffer"]
    if buffer is not None:
        buffer["inputs"] = buffer["inputs"].read(np.arange(len(buffer["classes"])))
    return loaded.tree


def stream_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new stream of the kind the test is parametrized with."""
    kind: str = request.param
    if kind == "log":
        return f"log:{tmp_path / 'stream.log'}"
    broker: Broker = request.getfixturevalue("broker")
    return f"{broker.url}/{broker.new_topic(partitions=3 if kind == 'kafka-3' else 1)}"
