"""The processes of a daemon: killed, stopped, interrupted, and what goes on meanwhile."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from streamlearn.records.record import Record
from streamlearn.stream.url import open_stream
from tests.http.client import OCTETS, ask
from tests.integration.daemon import FAST, SAMPLE, Client, Daemon, feed
from tests.serving import digest, run, saved_state, wait_until


def test_the_learner_killed_under_load_fails_no_prediction(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    feed(url, 0, 2000)
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
        daemon.learned(200)
        with Client(daemon.http_url) as client, Client(daemon.http_url) as other:
            for round in range(2):
                time.sleep(0.3)
                pid = daemon.kill_child("learner")
                daemon.wait(lambda pid=pid: daemon.children("learner") not in ([], [pid]), "another learner")  # type: ignore[misc]
                feed(url, 2000 + 300 * round, 2300 + 300 * round)
                daemon.has_learned(2300 + 300 * round)
            time.sleep(0.3)
        assert daemon.stop() == 0
    for one in (client, other):
        assert not one.failures
        assert one.answered > 100
        assert not one.went_backwards
        assert len(set(one.versions)) > 2
    assert saved_state(tmp_path / "state")["counters"]["examples_learned"] == 2600
    run(tmp_path / "undisturbed", url, settings=FAST)
    assert digest(tmp_path / "state") == digest(tmp_path / "undisturbed")


def test_a_server_killed_is_back_within_two_seconds(tmp_path: Path) -> None:
    feed(f"log:{tmp_path / 'stream.log'}", 0, 300)
    with Daemon(tmp_path / "state", settings={**FAST, "http.spare": True}) as daemon:
        daemon.ready()
        daemon.wait(lambda: len(daemon.children("server")) == 2, "the spare one")
        time.sleep(8)  # for it to load, on a busy machine
        with Client(daemon.http_url) as client:
            daemon.kill_child("server")
            time.sleep(2.5)
        assert len(client.failures) <= 1, client.failures  # the one that was under way
        assert client.longest < 2.0
        assert not client.went_backwards


def test_versions_never_go_backwards_over_restarts_and_servers(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    versions: list[int] = []
    for round in range(2):
        feed(url, 500 * round, 500 * (round + 1))
        with Daemon(tmp_path / "state", url, "--set", "http.servers=2") as daemon:
            daemon.ready()
            daemon.wait(lambda: len(daemon.children("server")) >= 2, "both servers")
            stop = time.monotonic() + 4
            while time.monotonic() < stop:  # a new connection each time: now this server, now the other
                answer = daemon.ask("POST", "/v1/predict", SAMPLE.test[0].tobytes(), OCTETS)
                versions.append(answer.json["model"]["version"])
            daemon.kill()
    assert versions == sorted(versions)
    assert len(set(versions)) > 3


def test_a_learner_that_stops_for_a_reason_leaves_serving_on(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    feed(url, 0, 300)
    settings = {**FAST, "records.bad_window": 20}
    with Daemon(tmp_path / "state", settings=settings) as daemon:
        daemon.ready()
        daemon.has_learned(300)
        stream = open_stream(url)
        stream.append([Record(b"nonsense")] * 60)
        daemon.wait(lambda: daemon.ask("GET", "/readyz").status == 503, "trouble")
        wait_until(lambda: daemon.status["state"] == "stopped", "the end of learning")
        found = daemon.ask("GET", "/readyz").json
        assert "of the last 20 records are bad" in found["reason"]
        assert found["serving"] is True
        assert "bad" in daemon.status["reason"]
        assert daemon.status["examples_seen"] == 300
        answer = daemon.ask("POST", "/v1/predict", SAMPLE.test[0].tobytes(), OCTETS)
        assert answer.status == 200
        assert daemon.ask("GET", "/v2/health/ready").status == 200
        assert daemon.ask("GET", "/v1/buffer").code == "learner-away"
        assert daemon.stop() == 0


def test_told_to_it_exits_with_the_learner(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    feed(url, 0, 100)
    stream = open_stream(url)
    stream.append([Record(b"nonsense")] * 60)
    settings = {**FAST, "records.bad_window": 20}
    with Daemon(tmp_path / "state", url, "--exit-with-learner", settings=settings) as daemon:
        assert daemon.end() == 3
        assert "records are bad" in daemon.errors


def test_until_idle_ends_with_everything_learned(tmp_path: Path) -> None:
    feed(f"log:{tmp_path / 'stream.log'}", 0, 300)
    with Daemon(tmp_path / "state", None, "--until-idle") as daemon:
        assert daemon.end() == 0
    assert saved_state(tmp_path / "state")["counters"]["examples_learned"] == 300


def test_stopping_is_not_ready_at_once_answers_what_is_under_way_and_saves(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    feed(url, 0, 500)
    settings = {**FAST, "checkpoint.every_seconds": 0, "checkpoint.every_examples": 0}
    with Daemon(tmp_path / "state", settings=settings) as daemon:
        daemon.ready()
        daemon.has_learned(500)
        address, seen = daemon.http_url, []
        daemon.process.send_signal(signal.SIGTERM)

        def look() -> bool:
            seen.append(ask(address, "GET", "/readyz").status)
            return seen[-1] == 503

        wait_until(look, "not ready", seconds=5)
        assert ask(address, "POST", "/v1/predict", SAMPLE.test[0].tobytes(), OCTETS).status == 200
        assert daemon.end(seconds=10) == 0
    assert saved_state(tmp_path / "state")["counters"]["examples_learned"] == 500


def test_a_second_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    feed(f"log:{tmp_path / 'stream.log'}", 0, 300)
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
        pids = daemon.children("")
        daemon.process.send_signal(signal.SIGINT)
        daemon.process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.end(seconds=5) in (130, 0)
        wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), "the end of all processes")


def test_the_supervisor_killed_takes_everybody_with_it(tmp_path: Path) -> None:
    feed(f"log:{tmp_path / 'stream.log'}", 0, 300)
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
        pids = daemon.children("")
        daemon.kill()
        wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), "the end of all processes")
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
