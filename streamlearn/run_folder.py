"""What the processes of one daemon leave for each other in `run/` of the state directory.

    run/learner.json    whether there is a learner, and why not: written by the supervisor
    run/status.json     what the learner was doing when it last published: written by the learner
    run/control.sock    where the learner takes requests
    run/http.json       where the servers listen: written by the supervisor
    run/supervisor.json which process that is, and how often it had to start another again
    run/metrics/        what each server has counted
    run/labels.db       predictions that wait for their label: shared by the servers
    run/paused          while it is there, nothing is learned
    run/token           the administrator's token when the settings have none

Nothing in it is needed to go on after a crash, except that what was paused stays paused and labels find their inputs.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamlearn import disk

_LONGEST_SOCKET_PATH = 100  # the kernel takes 108 bytes


class RunFolder:
    def __init__(self, state_dir: Path) -> None:
        self.root = state_dir / "run"
        self.learner = self.root / "learner.json"
        self.status = self.root / "status.json"
        self.http = self.root / "http.json"
        self.supervisor = self.root / "supervisor.json"
        self.metrics = self.root / "metrics"
        self.control = self.root / "control.sock"
        self.labels = self.root / "labels.db"
        self.paused = self.root / "paused"
        self.token = self.root / "token"

    def make(self) -> None:
        disk.make_directory(self.root)

    def clear_metrics(self) -> None:
        """A daemon counts from zero, its servers together: what one has counted outlives it."""
        disk.make_directory(self.metrics)
        disk.remove(self.metrics.glob("server-*"))

    def own_token(self) -> str:
        """Made once; whoever may read the state directory may administer its daemon."""
        try:
            return self.token.read_text().strip()
        except FileNotFoundError:
            token = secrets.token_urlsafe(32)
            with suppress(OSError):  # a full disk: then nobody knows it, and nobody administers
                disk.write_file(self.token, [f"{token}\n".encode()])
            return token


def write_json(path: Path, value: Any) -> None:
    disk.write_file(path, [json.dumps(value, ensure_ascii=False).encode()])


def read_json(path: Path) -> dict[str, Any] | None:
    """None: not there (yet), or left by something else."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class SocketPath:
    """A path for bind or connect, however long it is: through a descriptor of its directory if need be."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        self.text = str(path)
        if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
            self._descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            self.text = f"/proc/self/fd/{self._descriptor}/{path.name}"

    def __enter__(self) -> str:
        return self.text

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def listen(path: Path) -> socket.socket:
    """A Unix socket for its owner only. What an older process left under the name goes."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with SocketPath(path) as text:
        listening.bind(text)
    os.chmod(path, 0o600)  # before listen: until then nobody can connect
    listening.listen()
    return listening
