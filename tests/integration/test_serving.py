"""Predictions while it learns, with the real processes: what can be asked and told."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import streamlearn
from tests.http.client import OCTETS, ask
from tests.integration.daemon import FAST, LABELS, SAMPLE, Client, Daemon, feed
from tests.serving import saved_state, wait_until


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests that leave it well."""
    folder = tmp_path_factory.mktemp("shared")
    feed(f"log:{folder / 'stream.log'}", 0, 1000)
    with Daemon(folder / "state") as daemon:
        daemon.ready()
        daemon.has_learned(1000)
        yield daemon
        assert daemon.stop() == 0


def test_status_has_what_was_promised(shared: Daemon) -> None:
    status = shared.status
    assert status["state"] in ("idle", "learning")
    assert status["reason"] is None
    assert status["examples_seen"] >= 1000
    assert status["stream"]["positions"]["0"] >= 1000
    assert set(status["classes"]) == set(LABELS)
    assert {"name", "classes", "accuracy", "forgetting"} <= status["groups"][0].keys()
    assert status["snapshot"]["version"] >= 1
    assert sum(status["buffer"]["by_class"].values()) == status["buffer"]["examples"] == 60
    wait_until(lambda: shared.status["checkpoint"], "a checkpoint")


def test_status_for_people_and_scripts(shared: Daemon) -> None:
    told = streamlearn("status", "--url", shared.http_url)
    assert told.returncode == 0
    assert "examples" in told.stdout
    found = json.loads(streamlearn("status", "--json", "--state-dir", shared.state_dir).stdout)
    assert found["examples_seen"] >= 1000
    nobody = streamlearn("status", "--url", "http://127.0.0.1:9")
    assert nobody.returncode == 1
    assert "no daemon answers at http://127.0.0.1:9" in nobody.stderr


def test_the_buffer_in_pages_and_pictures(shared: Daemon) -> None:
    page = shared.ask("GET", "/v1/buffer?limit=25").json
    seen = page["examples"]
    while page["next"] is not None:
        page = shared.ask("GET", f"/v1/buffer?limit=25&after={page['next']}").json
        seen += page["examples"]
    assert len(seen) == page["total"] == 60
    assert {"slot", "label", "id", "loss", "age"} <= seen[0].keys()
    label = seen[0]["label"]
    chosen = shared.ask("GET", f"/v1/buffer?limit=1000&label={label.replace('/', '%2F')}").json["examples"]
    assert chosen == [one for one in seen if one["label"] == label]
    picture = shared.ask("GET", f"/v1/buffer/{seen[0]['slot']}/image")
    assert picture.headers["content-type"] == "image/png"
    from io import BytesIO

    from PIL import Image

    pixels = np.asarray(Image.open(BytesIO(picture.body)))
    assert (pixels == SAMPLE.train[int(seen[0]["id"]) % len(LABELS)]).all()
    assert shared.ask("GET", "/v1/buffer/99999/image").code == "unknown-slot"
    kept = shared.ask("GET", f"/v1/buffer/{seen[0]['slot']}/image?arrival={seen[0]['arrival']}")
    assert kept.body == picture.body
    assert "max-age" in kept.headers["cache-control"]
    assert picture.headers["cache-control"] == "no-store"
    another = shared.ask("GET", f"/v1/buffer/{seen[0]['slot']}/image?arrival={seen[0]['arrival'] + 1}")
    assert (another.status, another.body) == (204, b"")
    with_input = shared.ask("GET", "/v1/buffer?limit=1&inputs=1").json["examples"][0]["input"]
    assert (with_input["shape"], with_input["dtype"]) == ([28, 28], "uint8")
    assert base64.b64decode(with_input["bytes"]) == pixels.tobytes()


def test_pause_resume_refit_checkpoint(shared: Daemon) -> None:
    url = f"log:{shared.state_dir.parent / 'stream.log'}"
    assert shared.ask("POST", "/v1/admin/pause", headers=shared.token).json == {"state": "paused"}
    before = shared.status["examples_seen"]
    feed(url, 1000, 1100)
    time.sleep(0.5)
    assert shared.status["state"] == "paused"
    assert shared.status["examples_seen"] == before
    assert shared.ask("GET", "/readyz").status == 200  # on purpose
    version = shared.status["bias"]["version"]
    refitted = shared.ask("POST", "/v1/admin/refit-bias", headers=shared.token).json
    assert refitted["bias"]["version"] == version + 1
    shared.ask("POST", "/v1/admin/resume", headers=shared.token)
    shared.has_learned(before + 100)
    saved = shared.ask("POST", "/v1/admin/checkpoint", headers=shared.token).json["checkpoint"]
    assert saved["examples_seen"] == before + 100
    assert shared.ask("POST", "/v1/admin/pause").status == 401


def test_events_tell_what_happens_and_what_was_missed(shared: Daemon) -> None:
    host, port = shared.http_url.removeprefix("http://").split(":")
    connection = HTTPConnection(host, int(port), timeout=20)
    connection.request("GET", "/v1/events?after=0")
    answer = connection.getresponse()
    assert answer.headers["content-type"] == "text/event-stream"
    shared.ask("POST", "/v1/admin/refit-bias", headers=shared.token)
    shared.ask("POST", "/v1/admin/checkpoint", headers=shared.token)
    kinds: list[str] = []
    deadline = time.monotonic() + 30
    expected = {"new-class", "bias-refit", "snapshot", "checkpoint", "accuracy"}
    while not expected <= set(kinds):
        assert time.monotonic() < deadline, kinds
        line = answer.readline().decode()
        if line.startswith("event: "):
            kinds.append(line[7:].strip())
        if line.startswith("data: "):
            json.loads(line[6:])
    connection.close()


def test_erased_is_erased_everywhere_and_stays_so_after_a_crash(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    feed(url, 0, 600)
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
        daemon.has_learned(600)
        one = daemon.ask("GET", "/v1/buffer?limit=1").json["examples"][0]
        answer = daemon.ask("DELETE", f"/v1/buffer?id={one['id']}", headers=daemon.token)
        assert (answer.status, answer.json["erased"]) == (200, 1), answer.body
        answer = daemon.ask("DELETE", "/v1/buffer?label=Bag", headers=daemon.token)
        assert answer.json["erased"] > 0
        daemon.kill_child("learner")
        daemon.kill()
    buffer = saved_state(tmp_path / "state")["learner"]["buffer"]
    texts = buffer["ids"]["bytes"].tobytes()
    picture = SAMPLE.train[int(one["id"]) % len(LABELS)]
    assert not (buffer["inputs"] == picture).all(axis=(1, 2)).any()
    assert one["id"].encode() not in texts or len(one["id"]) < 4
    files = [path for path in (tmp_path / "state" / "checkpoints").rglob("*") if path.is_file()]
    assert not any(picture.tobytes() in path.read_bytes() for path in files), "an older checkpoint still has it"
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
        wait_until(lambda: daemon.status["state"] != "stopped", "the learner")
        assert daemon.ask("GET", f"/v1/buffer?id={one['id']}").json["total"] == 0
        assert daemon.ask("GET", "/v1/buffer?label=Bag").json["total"] == 0


def test_a_second_daemon_and_a_taken_port_are_refused_at_once(shared: Daemon, tmp_path: Path) -> None:
    begun = time.monotonic()
    second = streamlearn("serve", "--state-dir", shared.state_dir, "--http", "127.0.0.1:0")
    assert second.returncode == 5
    assert f"process {shared.process.pid}" in second.stderr
    assert time.monotonic() - begun < 6  # 2 s where nothing else runs
    address = shared.http_url.removeprefix("http://")
    taken = streamlearn("serve", "--state-dir", tmp_path / "other", "--http", address)
    assert taken.returncode == 2
    assert "cannot listen" in taken.stderr


def test_beyond_loopback_it_wants_a_token(tmp_path: Path) -> None:
    refused = streamlearn("serve", "--state-dir", tmp_path / "state", "--http", "0.0.0.0:0")
    assert refused.returncode == 2
    assert "token" in refused.stderr


def test_a_token_is_in_no_log_and_no_file(tmp_path: Path) -> None:
    feed(f"log:{tmp_path / 'stream.log'}", 0, 100)
    token = "a-very-secret-token"
    with Daemon(tmp_path / "state", environment={"STREAMLEARN_HTTP__TOKEN": token}) as daemon:
        daemon.ready()
        assert daemon.ask("GET", "/v1/status").status == 401
        authorised = {"Authorization": f"Bearer {token}"}
        assert daemon.ask("GET", "/v1/status", headers=authorised).status == 200
        assert daemon.ask("POST", "/v1/admin/checkpoint", headers=authorised).status == 200
        commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in daemon.children("")]
        assert not any(token.encode() in command for command in commands)
        assert daemon.stop() == 0
        assert token not in daemon.output
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes()
            assert path.stat().st_mode & 0o077 == 0, path


def test_predicted_labelled_later_and_learned_with_the_input_of_then(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    feed(url, 0, 100)
    settings = {**FAST, "learner.batch_size": 1, "learner.buffer_size": 500}
    with Daemon(tmp_path / "state", settings=settings) as daemon:
        daemon.ready()
        daemon.has_learned(100)
        body = {"instances": SAMPLE.test[:3].tolist(), "ids": ["t0", "t1", "t2"]}
        assert daemon.ask("POST", "/v1/predict", body).status == 200
        daemon.kill_child("server")  # what waits survives it
        daemon.ready()
        delay = daemon.ask("POST", "/v1/labels", {"id": "t1", "label": "late"}).json["delay_seconds"]
        assert delay > 0
        daemon.has_learned(101)
        (found,) = daemon.ask("GET", "/v1/buffer?id=t1").json["examples"]
        assert found["label"] == "late"
        from io import BytesIO

        from PIL import Image

        picture = daemon.ask("GET", f"/v1/buffer/{found['slot']}/image").body
        assert (np.asarray(Image.open(BytesIO(picture))) == SAMPLE.test[1]).all()
        assert daemon.status["labels"]["delay_seconds"]["max"] >= delay - 0.01
        assert daemon.stop() == 0


def test_following_snapshots_from_elsewhere(shared: Daemon, tmp_path: Path) -> None:
    import subprocess

    from tests.cli.command import ENVIRONMENT, MAIN

    output = tmp_path / "out"
    with output.open("wb") as file:
        command = [*MAIN, "follow", "--snapshots", str(shared.state_dir / "snapshots"), "--http", "127.0.0.1:0"]
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT, cwd=tmp_path)
    try:
        wait_until(lambda: "following snapshots" in output.read_text(), "the follower")
        url = json.loads(output.read_text().splitlines()[-1])["url"]

        def answer(address: str) -> Any:
            return ask(address, "POST", "/v1/predict", SAMPLE.test[3].tobytes(), OCTETS).json

        assert answer(url)["predictions"] == answer(shared.http_url)["predictions"]
        before = answer(url)["model"]["version"]
        shared.ask("POST", "/v1/admin/refit-bias", headers=shared.token)
        wait_until(lambda: answer(url)["model"]["version"] > before, "a newer snapshot")
        process.terminate()
        assert process.wait(10) == 0
        assert not list(tmp_path.glob("streamlearn-state*"))
    finally:
        process.kill()
        process.wait()


def test_many_at_once_while_it_learns(shared: Daemon) -> None:
    clients = [Client(shared.http_url) for _ in range(8)]
    feeding = threading.Thread(target=feed, args=(f"log:{shared.state_dir.parent / 'stream.log'}", 2000, 3000))
    feeding.start()
    for client in clients:
        client.__enter__()
    time.sleep(1.5)
    for client in clients:
        client.__exit__()
    feeding.join()
    assert not [failure for client in clients for failure in client.failures]
    assert not any(client.went_backwards for client in clients)
