"""A small HTTP client that sends what it is told, and a server in this process to send it to."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from pathlib import Path
from typing import Any

import torch

from streamlearn.learner import Learner
from streamlearn.sample import NAMES, load_sample
from streamlearn.serving.app import App, models_of
from streamlearn.serving.server import HttpServer
from streamlearn.settings.daemon import Settings
from streamlearn.settings.learner import LearnerSettings
from streamlearn.snapshot import Snapshot, folder_of, publish

OCTETS = {"Content-Type": "application/octet-stream", "X-Shape": "28,28"}


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of an error, which must have the shape of one."""
        assert set(self.json["error"]) == {"code", "message"}, self.body
        return str(self.json["error"]["code"])


def ask(
    url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, timeout: float = 30
) -> Answer:
    """A body that is not bytes is sent as JSON."""
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    sent = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Running:
    """A server on a thread of this process. With `learner`, its snapshot is published first."""

    def __init__(self, state_dir: Path, learner: Learner | None, *, follow: bool = False, **tables: Any) -> None:
        self.state_dir, self.learner = state_dir, learner
        self.settings = Settings.model_validate({"state_dir": state_dir, **tables})
        self._follow = follow
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        (state_dir / "run").mkdir(parents=True, exist_ok=True)
        if learner is not None:
            self.publish(1)

    def publish(self, version: int, learner: Learner | None = None, published_at: float = 1e9) -> None:
        learner = learner or self.learner
        assert learner is not None
        state = learner.state_dict(buffer=False)
        publish(folder_of(self.state_dir), Snapshot(version, learner.examples_seen, published_at, None, state))

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        torch.set_num_threads(1)
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self.app = App(self.settings, models_of(folder_of(self.state_dir)), follow=self._follow)
        self.server = HttpServer(self.settings.http, self.app, self.app.numbers)
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        await self.server.start(listening)
        self._started.set()
        await self._stop.wait()
        await self.server.stop()
        self.app.close()

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return ask(self.url, method, path, body, headers)

    @property
    def token(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {(self.state_dir / 'run' / 'token').read_text().strip()}"}


def trained(examples: int = 300, **settings: Any) -> Learner:
    sample = load_sample()
    learner = Learner(LearnerSettings.model_validate({"buffer_size": 50, **settings}))
    labels = [NAMES[label] for label in sample.train_labels[:examples]]
    learner.learn(sample.train[:examples], labels)
    return learner
