"""How fast predictions are answered, idle and while it learns, and what each process of the daemon takes."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from streamlearn.bench.figures import Figure
from streamlearn.bench.learning import grouped_sample
from streamlearn.bench.load import SteadyClient, answers_per_second, latencies, p99, request
from streamlearn.learner import Learner
from streamlearn.records.encode import encode_example
from streamlearn.run_folder import RunFolder, read_json
from streamlearn.sample import load_sample
from streamlearn.settings.daemon import Settings
from streamlearn.stream.url import open_stream

PASSES = 80  # of the sample: at 9,000 examples a second it lasts for as long as is measured
SECONDS, ROUNDS = 4.0, 3
CONNECTIONS, BATCH = 16, 64
CLIENT_RATE = 50
PATIENCE = 120.0
HEADERS = ("Content-Type: application/octet-stream",)


class Daemon:
    """`streamlearn serve` in processes of its own, on a port that was free."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run = RunFolder(folder / "state")
        self.url = f"log:{folder / 'stream.log'}"

    def start(self) -> float:
        """Returns the seconds until it was ready."""
        command = [sys.executable, "-m", "streamlearn", "serve", "--quiet", "--http", "127.0.0.1:0"]
        command += ["--state-dir", str(self._folder / "state"), "--stream", self.url]
        begun = time.perf_counter()
        with (self._folder / "daemon.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait(lambda: self._run.http.exists() and self._ready())
        return time.perf_counter() - begun

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def wait(self, done: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the daemon does not do it: {(self._folder / 'daemon.log').read_text()[-2000:]}")
            time.sleep(0.02)

    @property
    def port(self) -> int:
        return int((read_json(self._run.http) or {})["url"].rpartition(":")[2])

    def ask(self, path: str, method: str = "GET") -> Any:
        headers = {"Authorization": f"Bearer {self._run.own_token()}"}
        with urlopen(Request(f"http://127.0.0.1:{self.port}{path}", headers=headers, method=method)) as answer:
            return json.load(answer)

    def _ready(self) -> bool:
        try:
            return bool(self.ask("/readyz")["ready"])
        except OSError:
            return False

    def learned(self) -> int:
        status = self.ask("/v1/status")
        return -1 if status["state"] == "stopped" else int(status["examples_seen"])

    def learning_rate(self, seconds: float) -> float:
        """Examples a second over the next `seconds`."""
        first, begun = self.learned(), time.perf_counter()
        time.sleep(seconds)
        return (self.learned() - first) / (time.perf_counter() - begun)

    def resident(self, kind: str) -> int:
        """Bytes of memory of the first child of this kind, what it shares with others included."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        pid = next(pid for pid in children if f"{kind}_process" in Path(f"/proc/{pid}/cmdline").read_text())
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def feed(self, passes: int) -> None:
        inputs, labels = grouped_sample()
        stream = open_stream(self.url)
        records = [encode_example(x, label, id=str(k)) for k, (x, label) in enumerate(zip(inputs, labels, strict=True))]
        for _ in range(passes):
            stream.append(records)
        stream.close()


def serving() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder))
        daemon.feed(1)
        yield Figure("start_to_ready", daemon.start(), "s", "python that imports torch", _import_seconds())
        try:
            daemon.wait(lambda: daemon.learned() >= 3000)
            yield from _idle(daemon)
            daemon.ask("/v1/admin/pause", "POST")
            daemon.feed(PASSES)
            yield from _while_learning(daemon)
            yield from _memory(daemon)
            yield from _restart(daemon)
        finally:
            daemon.stop()


def _one_picture() -> bytes:
    return request("/v1/predict", load_sample().test[0].tobytes(), *HEADERS, "X-Shape: 28,28")


def _idle(daemon: Daemon) -> Iterator[Figure]:
    pictures = load_sample().test[:BATCH]
    batch = request("/v1/predict?top_k=1", pictures.tobytes(), *HEADERS, f"X-Shape: {BATCH},28,28")
    alone, alone_in_batches = _model_alone()
    requests = [answers_per_second(daemon.port, _one_picture(), CONNECTIONS, SECONDS / 2) for _ in range(ROUNDS)]
    batches = [answers_per_second(daemon.port, batch, CONNECTIONS, SECONDS / 2) for _ in range(ROUNDS)]
    yield Figure("predict_requests", statistics.median(requests), "requests/s", "the model alone, one by one", alone)
    yield Figure(
        "predict_pictures",
        statistics.median(batches) * BATCH,
        "pictures/s",
        f"the model alone, {BATCH} at once",
        alone_in_batches,
    )


def _while_learning(daemon: Daemon) -> Iterator[Figure]:
    """Idle and busy in turns: paused, learning, learning and saving all the time."""
    idle: list[float] = []
    learning: list[float] = []
    saving: list[float] = []
    with_client, without = [], []
    for _ in range(ROUNDS):
        idle += latencies(daemon.port, _one_picture(), SECONDS / 2)
        daemon.ask("/v1/admin/resume", "POST")
        learning += latencies(daemon.port, _one_picture(), SECONDS / 2)
        without.append(daemon.learning_rate(SECONDS / 2))
        with SteadyClient(daemon.port, _one_picture(), CLIENT_RATE):
            with_client.append(daemon.learning_rate(SECONDS / 2))
        end = time.perf_counter() + SECONDS / 2
        while time.perf_counter() < end:
            daemon.ask("/v1/admin/checkpoint", "POST")
            saving += latencies(daemon.port, _one_picture(), 0.2)
        daemon.ask("/v1/admin/pause", "POST")
    daemon.ask("/v1/admin/resume", "POST")
    limit = 2 * p99(idle) + 0.005
    yield Figure("predict_p99_idle", p99(idle), "s")
    yield Figure("predict_p99_learning", p99(learning), "s", "2 x idle + 5 ms", limit)
    yield Figure("predict_p99_checkpoint", p99(saving), "s", "2 x idle + 5 ms", limit)
    yield Figure(
        "learning_with_client",
        statistics.median(with_client),
        "examples/s",
        "without a client",
        statistics.median(without),
    )


def _memory(daemon: Daemon) -> Iterator[Figure]:
    torch = float(_python("import torch, os; print(int(open('/proc/self/statm').read().split()[1]) * 4096)"))
    yield Figure("resident_learner", daemon.resident("learner"), "bytes", "python that imports torch", torch)
    yield Figure("resident_server", daemon.resident("server"), "bytes", "python that imports torch", torch)


def _restart(daemon: Daemon) -> Iterator[Figure]:
    daemon.stop()
    daemon.feed(1)
    begun = time.perf_counter()
    daemon.start()
    daemon.wait(lambda: daemon.learned() >= 0)
    before = daemon.learned()
    daemon.feed(1)
    daemon.wait(lambda: daemon.learned() > before)
    yield Figure(
        "restart_to_learning", time.perf_counter() - begun, "s", "python that imports torch", _import_seconds()
    )


def _model_alone() -> tuple[float, float]:
    """Pictures a second that one thread of this process answers without any server: one by one, and in batches."""
    inputs, labels = grouped_sample()
    learner = Learner(Settings().learner)
    learner.learn(inputs[:1000], labels[:1000])
    rates = []
    for size, rounds in ((1, 2000), (BATCH, 300)):
        begun = time.perf_counter()
        for _ in range(rounds):
            learner.predict(inputs[:size])
        rates.append(size * rounds / (time.perf_counter() - begun))
    return rates[0], rates[1]


def _import_seconds() -> float:
    begun = time.perf_counter()
    _python("import torch")
    return time.perf_counter() - begun


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
