"""One run through a real daemon: the producer fills a stream, `streamlearn serve` follows it, and how well each task is
known comes from the records that it held out.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from replay_producers.benchmarks import dataset_of
from replay_producers.producer import produce
from replay_producers.runs import Result, Run, finished
from replay_producers.sequence import Sequence
from streamlearn.checkpoint import CheckpointStore
from streamlearn.cli.options import load_from_flags
from streamlearn.errors import StreamlearnError
from streamlearn.stream.interface import Stream
from streamlearn.stream.url import open_stream

LOOK_SECONDS = 0.1
STOP_SECONDS = 60.0


def through_daemon(run: Run) -> Result:
    sequence = Sequence(dataset_of(run.benchmark, run.data_dir), run.options)
    with tempfile.TemporaryDirectory(prefix="streamlearn-reproduce-") as directory:
        state_dir = Path(directory) / "state"
        url = _stream_url(run, Path(directory))
        stream_settings = load_from_flags(None, url).settings.stream  # for Kafka: who we are to the broker
        with closing(open_stream(url, stream_settings)) as stream:
            # First the records, then the daemon: how long it takes is about learning, not about who gets which core.
            produce(stream, sequence, again=True)
            with _daemon(run, url, state_dir) as daemon:
                ended = daemon.wait_until_all_is_learned(stream)
        state = _state(state_dir)
        log = daemon.log.read_text()
    refused = int(sum(state["counters"]["rejected"].values()))
    if refused:
        raise StreamlearnError(f"the daemon refused {refused} of {len(sequence)} records", log[-2000:])
    held_out = state["accuracy"]["eval"]
    by_group = [
        100 * held_out[task.name]["recent_correct"] / max(held_out[task.name]["recent"], 1) for task in sequence.tasks
    ]
    return finished(run, sequence.tasks, by_group, ended - _began(log))


def _stream_url(run: Run, directory: Path) -> str:
    """A stream of its own for each run: the first record on it is the first that is learned."""
    if run.through == "log":
        return f"log:{directory / 'stream.log'}"
    name = re.sub(r"[^a-z0-9]+", "-", f"{run.benchmark}-{run.method}-{run.buffer}-{run.seed}")
    return f"{run.through}-{name}-{secrets.token_hex(4)}"


class Daemon:
    def __init__(self, process: subprocess.Popen[bytes], log: Path, state_dir: Path) -> None:
        self.process, self.log, self._state_dir = process, log, state_dir

    def wait_until_all_is_learned(self, stream: Stream) -> float:
        """The flush at the end of the stream makes a checkpoint: when it stands there, so does everything before.

        Returns when it was made, in seconds since 1970.
        """
        ends = {str(partition): end for partition, end in stream.ends().items()}
        store = CheckpointStore(self._state_dir)
        while True:
            for info in store.list():
                if info.position is not None and info.position["offsets"] == ends:
                    return info.created_at
            if self.process.poll() is not None:
                raise StreamlearnError(f"the daemon ended with {self.process.returncode}", self.log.read_text()[-2000:])
            time.sleep(LOOK_SECONDS)


@contextmanager
def _daemon(run: Run, url: str, state_dir: Path) -> Iterator[Daemon]:
    log = state_dir.with_suffix(".log")
    arguments = [
        "serve",
        "--stream",
        url,
        "--state-dir",
        str(state_dir),
        "--quiet",
        "--no-http",
        "--set",
        "log.format=json",
    ]
    for name, value in run.values().items():
        arguments += ["--set", f"learner.{name}={_text(value)}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlearn", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(os.environ),
            start_new_session=True,  # Ctrl-C is ours to hear; we stop it ourselves
        )
    try:
        yield Daemon(process, log, state_dir)
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Only what says how to reach the stream: anything else would make it another run."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("STREAMLEARN_") or name.startswith("STREAMLEARN_STREAM__")
    }


def _state(state_dir: Path) -> dict[str, Any]:
    loaded = CheckpointStore(state_dir).load()
    assert loaded is not None  # one was seen
    return dict(loaded.tree)


def _began(log: str) -> float:
    """When the daemon met its first class: importing torch is no part of the run."""
    for line in log.splitlines():
        if line.startswith("{") and (told := json.loads(line))["message"].startswith("new class"):
            return datetime.fromisoformat(told["time"]).timestamp()
    raise StreamlearnError("the daemon's log tells of no class", log[-2000:])
