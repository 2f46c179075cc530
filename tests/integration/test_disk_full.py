"""No room for checkpoints: learning goes on for a while, then pauses, and goes on when there is room again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamlearn.checkpoint.store import CheckpointStore
from streamlearn.stream.url import open_stream
from tests.conftest import missing
from tests.http.client import ask
from tests.records.mixed import examples, mixed
from tests.serving import SMALL, Serve, digest, run, saved_state

FAILED = "a checkpoint could not be written"
PAUSED = "learning pauses until a checkpoint can be written"

Disk = tuple[Path, Callable[[], None], Callable[[], None]]  # a state directory, fill its disk, free it


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of its own that is full: only root may mount one."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(mounted)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        missing("the right to mount a small disk")
    ballast = mounted / "ballast"

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    try:
        yield mounted / "state", fill, ballast.unlink
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Disk]:
    """Nobody may write into the folder of checkpoints. Root may whatever its mode: for root it is a disk of its own."""
    state_dir = tmp_path / "state"
    checkpoints = state_dir / "checkpoints"
    if os.geteuid() != 0:

        def allow(mode: int) -> None:
            for folder in (checkpoints, checkpoints / "shards"):
                folder.chmod(mode)

        yield state_dir, lambda: allow(0o500), lambda: allow(0o700)
        return
    checkpoints.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(checkpoints)], capture_output=True, check=False).returncode:
        missing("the right to mount a small disk")

    def remount(how: str) -> None:
        # Refused for as long as a save is being written.
        while subprocess.run(["mount", "-o", f"remount,{how}", str(checkpoints)], capture_output=True).returncode:
            time.sleep(0.05)

    try:
        yield state_dir, lambda: remount("ro"), lambda: remount("rw")
    finally:
        subprocess.run(["umount", str(checkpoints)], check=True)


@pytest.mark.parametrize("disk", ["full_disk", "read_only"])
def test_learning_pauses_and_goes_on_by_itself(tmp_path: Path, request: pytest.FixtureRequest, disk: str) -> None:
    state_dir, fill, free = request.getfixturevalue(disk)
    url, records = f"log:{tmp_path / 'stream.log'}", mixed(3000)
    stream = open_stream(url)
    settings = {**SMALL, "checkpoint.max_failures": 3, "checkpoint.every_examples": 0}
    stream.append(records[:500])
    with Serve(state_dir, url, settings=settings, output_dir=tmp_path) as daemon:
        daemon.learned(400)
        fill()
        stream.append(records[500:1000])
        assert daemon.hear(FAILED)["error"] in ("No space left on device", "Permission denied", "Read-only file system")
        daemon.hear(PAUSED)
        stream.append(records[1000:2000])  # not learned while it pauses
        assert daemon.stop() == 0
        assert daemon.lines[-1]["examples"] < 1000
        checks = [check for checks in CheckpointStore(state_dir).verify().values() for check in checks]
        assert checks
        assert not any(check.problem for check in checks)
        assert saved_state(state_dir)["counters"]["examples_learned"] < 500

    free()
    with Serve(state_dir, url, settings=settings, output_dir=tmp_path) as daemon:
        daemon.learned(1000)
        fill()
        stream.append(records[2000:])
        daemon.hear(PAUSED)
        free()
        daemon.hear("checkpoints can be written again")
        daemon.passed(len(records))
        assert daemon.stop() == 0
    stream.close()
    run(tmp_path / "undisturbed", url, settings=settings)
    assert digest(state_dir) == digest(tmp_path / "undisturbed")


def test_it_starts_where_there_is_no_room_and_serves_what_it_knows(tmp_path: Path, full_disk: Disk) -> None:
    state_dir, fill, free = full_disk
    url, records = f"log:{tmp_path / 'stream.log'}", examples(800)
    stream = open_stream(url)
    stream.append(records[:400])
    run(state_dir, url)
    fill()
    with Serve(state_dir, url, settings=SMALL, output_dir=tmp_path, http="127.0.0.1:0") as daemon:
        daemon.hear("following the stream")
        address = daemon.hear("serving on ")["message"].removeprefix("serving on ")
        daemon.wait(lambda: _ready(address), "readiness")
        one = records[0]
        headers = {"Content-Type": "application/octet-stream", "X-Shape": "6", "X-Dtype": "float32"}
        assert ask(address, "POST", "/v1/predict", one.value, headers).status == 200
        assert ask(address, "GET", "/v1/status").json["state"] == "idle"
        free()
        stream.append(records[400:])
        daemon.learned(800)
        assert daemon.stop() == 0
    stream.close()


def _ready(address: str) -> bool:
    try:
        return ask(address, "GET", "/readyz").status == 200
    except OSError:
        return False
