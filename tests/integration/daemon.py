"""The whole daemon, with its servers: where it listens, its processes, and a client that keeps asking."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from streamlearn.records.encode import encode_example
from streamlearn.run_folder import RunFolder, read_json
from streamlearn.sample import NAMES, load_sample
from streamlearn.stream.url import open_stream
from tests.http.client import OCTETS, Answer, ask
from tests.serving import SMALL, Serve, wait_until

# Without a spare server, which only one test is about: to load one takes long on a busy machine.
FAST = {**SMALL, "snapshot.every_seconds": 0.1, "http.spare": False}
SAMPLE = load_sample()
LABELS = [NAMES[label] for label in SAMPLE.train_labels]


class Daemon(Serve):
    def __init__(self, state_dir: Path, url: str | None = None, *arguments: str, **options: Any) -> None:
        options = {"settings": FAST, "http": "127.0.0.1:0", **options}
        super().__init__(state_dir, url or f"log:{state_dir.parent / 'stream.log'}", *arguments, **options)
        self._run = RunFolder(state_dir)

    @property
    def http_url(self) -> str:
        self.wait(lambda: self._run.http.exists(), "an address")
        return str((read_json(self._run.http) or {})["url"])

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return ask(self.http_url, method, path, body, headers)

    @property
    def token(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._run.own_token()}"}

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "/v1/status").json
        return found

    def ready(self) -> None:
        self.wait(lambda: self._run.http.exists() and self._answers("/readyz"), "readiness")

    def _answers(self, path: str) -> bool:
        try:
            return self.ask("GET", path).status == 200
        except OSError:
            return False

    def has_learned(self, examples: int) -> None:
        self.wait(
            lambda: self.status["examples_seen"] >= examples and self.status["state"] != "stopped",
            f"{examples} examples learned",
        )

    def children(self, kind: str) -> list[int]:
        """Process ids of this daemon's own learner or servers."""
        own = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in own if f"{kind}_process" in Path(f"/proc/{pid}/cmdline").read_text()]

    def kill_child(self, kind: str) -> int:
        pid = self.children(kind)[0]
        os.kill(pid, signal.SIGKILL)
        return pid


def feed(url: str, start: int, end: int) -> None:
    """Append examples of the sample, round and round, each with its number as id."""
    stream = open_stream(url)
    places = [(number, number % len(LABELS)) for number in range(start, end)]
    stream.append([encode_example(SAMPLE.train[k], LABELS[k], id=str(number)) for number, k in places])
    stream.close()


class Client:
    """Asks for predictions on one connection, again and again, and keeps what went wrong."""

    def __init__(self, url: str, pause: float = 0.0) -> None:
        self.answered = 0
        self.failures: list[str] = []
        self.versions: list[int] = []
        self.longest = 0.0
        self._host, self._port = url.removeprefix("http://").split(":")
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Client:
        self._thread.start()
        wait_until(lambda: self.answered, "a first answer")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection = http.client.HTTPConnection(self._host, int(self._port), timeout=30)
        while not self._stop.wait(self._pause):
            begun = time.monotonic()
            try:
                connection.request("POST", "/v1/predict", SAMPLE.test[self.answered % 100].tobytes(), OCTETS)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    self.failures.append(f"{answer.status} {body!r}")
                    continue
                self.versions.append(json.loads(body)["model"]["version"])
                self.answered += 1
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
            self.longest = max(self.longest, time.monotonic() - begun)
        connection.close()

    @property
    def went_backwards(self) -> bool:
        return self.versions != sorted(self.versions)
