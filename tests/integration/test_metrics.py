"""A real Prometheus scrapes real daemons: what dashboard and alerts ask for is there, and means what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamlearn.daemon.counters import CAUSES
from streamlearn.metrics.catalogue import METRICS, STATES
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.reasons import REASONS
from streamlearn.records.record import Record
from streamlearn.sample import NAMES
from streamlearn.stream.url import open_stream
from tests.cli.command import ENVIRONMENT, MAIN
from tests.http.client import OCTETS, ask
from tests.integration.daemon import FAST, SAMPLE, Daemon, feed
from tests.metrics.prometheus import (
    FASTER,
    SCRAPE_SECONDS,
    Prometheus,
    check_metrics,
    expressions,
    families,
    rules,
    series,
    value,
)
from tests.serving import wait_until

SETTINGS = {**FAST, "learner.buffer_size": 500, "learner.batch_size": 10, "learner.replay_batch": 32}
REPLAY = {"learner.replay_batch", "learner.buffer_size"}  # are not for a method that has none
FIRST, SECOND = "first", "second"
PROCESSES = ("learner", "server", "supervisor")


def scraped(daemon: Daemon, **headers: str) -> str:
    answer = daemon.ask("GET", "/metrics", headers=headers)
    assert answer.status == 200
    return answer.body.decode()


def send(url: str, classes: range, group: str) -> None:
    """Examples of some classes, then a round of held-out ones of the first group."""
    stream = open_stream(url)
    chosen = [k for k, label in enumerate(SAMPLE.train_labels) if label in classes]
    chosen.sort(key=lambda k: k % 300)  # in turns
    stream.append(
        [encode_example(SAMPLE.train[k], NAMES[SAMPLE.train_labels[k]], id=f"{k}", group=group) for k in chosen]
    )
    stream.append([encode_event("end-of-group")])
    held_out = [k for k, label in enumerate(SAMPLE.test_labels) if label < 8]
    stream.append([encode_example(SAMPLE.test[k], NAMES[SAMPLE.test_labels[k]], split="eval") for k in held_out])
    stream.append([encode_event("flush")])
    stream.close()


@dataclass
class Watched:
    """What was seen of two daemons, one of which replays nothing, and their Prometheus."""

    learning: Daemon
    prometheus: Prometheus
    fresh: str
    learned: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    urls = {name: f"log:{folder / name}.log" for name in ("replaying", "forgetful")}
    sgd = {name: value for name, value in SETTINGS.items() if name not in REPLAY} | {"learner.method": "sgd"}
    with (
        Daemon(folder / "replaying", urls["replaying"], settings=SETTINGS) as learning,
        Daemon(folder / "forgetful", urls["forgetful"], settings=sgd) as forgetful,
    ):
        daemons = {"replaying": learning, "forgetful": forgetful}
        for daemon in daemons.values():
            daemon.ready()
            daemon.wait(lambda daemon=daemon: "streamlearn_lag_records{" in scraped(daemon), "a stream")  # type: ignore[misc]
        fresh = scraped(learning)
        targets = {name: daemon.http_url for name, daemon in daemons.items()}
        with Prometheus(folder / "prometheus", targets, rules(FASTER)) as prometheus:
            wait_until(lambda: len(prometheus.query("streamlearn_build_info")) == 2, "a first scrape")
            for name, url in urls.items():
                send(url, range(8), FIRST)
                daemons[name].has_learned(2400)
            use(learning, urls["replaying"])
            time.sleep(4)  # an accuracy that has been for a while
            for url in urls.values():
                send(url, range(8, 10), SECOND)
            for daemon in daemons.values():
                daemon.has_learned(3000)
            learned = scraped(learning)
            yield Watched(learning, prometheus, fresh, learned)


def use(daemon: Daemon, url: str) -> None:
    """A little of everything: predictions, labels that come later, a bad record."""
    for number in range(20):
        body = {"instances": SAMPLE.test[number : number + 3].tolist(), "ids": [f"p{number}", None, None]}
        assert daemon.ask("POST", "/v1/predict", body).status == 200
        if number % 2:
            assert daemon.ask("POST", "/v1/labels", {"id": f"p{number}", "label": NAMES[0]}).status == 200
    assert daemon.ask("POST", "/v1/predict", b"nonsense").status == 400
    assert daemon.ask("GET", "/nowhere").status == 404
    stream = open_stream(url)
    stream.append([Record(b"nonsense")])
    stream.close()


# ---------------------------------------------------------------------- the metrics themselves


def test_every_metric_is_there_from_the_start_with_its_type_and_labels(watched: Watched) -> None:
    found = families(watched.fresh)
    assert found.keys() == METRICS.keys()
    for name, metric in METRICS.items():
        assert found[name].type == metric.kind
        assert found[name].documentation == metric.about
        for sample in found[name].samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), name


def test_what_can_be_known_beforehand_is_counted_from_zero(watched: Watched) -> None:
    expected: dict[tuple[str, str], Any] = {
        ("streamlearn_records_rejected_total", "reason"): REASONS,
        ("streamlearn_bias_refits_total", "cause"): CAUSES,
        ("streamlearn_checkpoints_total", "outcome"): ("success", "failure"),
        ("streamlearn_predictions_evaluated_total", "source"): ("prequential", "eval"),
        ("streamlearn_loss", "source"): ("stream", "replay"),
        ("streamlearn_state", "state"): STATES,
        ("streamlearn_process_restarts_total", "process"): ("learner", "server"),
        ("streamlearn_process_cpu_seconds_total", "process"): PROCESSES,
        ("streamlearn_process_resident_memory_bytes", "process"): PROCESSES,
        ("streamlearn_process_start_time_seconds", "process"): PROCESSES,
    }
    found = families(watched.fresh)
    for (name, label), values in expected.items():
        assert {sample.labels[label] for sample in found[name].samples} == set(values), name
    for name, family in found.items():
        if family.type == "counter" and "http" not in name and "cpu" not in name and "checkpoints" not in name:
            assert {sample.value for sample in family.samples} == {0}, name
    routes = {*watched.learning.ask("GET", "/openapi.json").json["paths"], "other"}
    requests = {
        (sample.labels["route"], sample.labels["code"]) for sample in found["streamlearn_http_requests_total"].samples
    }
    assert requests >= {(route, code) for route in routes for code in ("200", "503")}
    assert {route for route, _ in requests} == routes


def test_promtool_has_nothing_to_say_against_them(watched: Watched) -> None:
    check_metrics(watched.fresh)
    check_metrics(watched.learned)
    assert len(series(watched.learned)) < 1000


def test_they_say_what_happened(watched: Watched) -> None:
    found = watched.learned
    assert value(found, "streamlearn_examples_learned_total") == 3010  # ten labels came later
    assert value(found, "streamlearn_steps_total") == value(found, "streamlearn_step_duration_seconds_count")
    assert value(found, "streamlearn_records_rejected_total", reason="bad-json") == 1
    assert value(found, "streamlearn_dead_letters_sent_total") == 1
    assert value(found, "streamlearn_label_delay_seconds_count") == 10
    assert value(found, "streamlearn_labels_pending") == 10
    assert value(found, "streamlearn_predict_batch_size_sum") == 60
    assert value(found, "streamlearn_http_requests_total", route="/v1/predict", code="200") == 20
    assert value(found, "streamlearn_http_requests_total", route="/v1/predict", code="400") == 1
    assert value(found, "streamlearn_http_requests_total", route="other", code="404") == 1
    assert value(found, "streamlearn_classes") == 10
    assert value(found, "streamlearn_new_class_events_total") == 2
    refits = sum(number for (name, _), number in series(found).items() if name == "streamlearn_bias_refits_total")
    assert value(found, "streamlearn_bias_refit_duration_seconds_count") == refits > 0
    assert value(found, "streamlearn_checkpoints_total", outcome="success") > 0
    groups = {name: value(found, "streamlearn_buffer_examples", class_group=name) for name in (FIRST, SECOND)}
    assert sum(groups.values()) == 500
    for name in (FIRST, SECOND):
        assert value(found, "streamlearn_predicted_group_total", class_group=name) > 0
    assert value(found, "streamlearn_predictions_evaluated_total", class_group=FIRST, source="eval") == 800
    newest = value(found, "streamlearn_last_record_timestamp_seconds")
    assert time.time() - 120 < newest < time.time()
    assert sum(value(found, "streamlearn_state", state=state) for state in STATES) == 1


def test_openmetrics_for_those_who_ask_for_it(watched: Watched) -> None:
    plain = watched.learning.ask("GET", "/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    asked = watched.learning.ask("GET", "/metrics", headers={"Accept": accept})
    assert asked.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert asked.body.endswith(b"# EOF\n")
    assert watched.learning.ask("HEAD", "/metrics").body == b""


# ---------------------------------------------------------------------- what is asked of them


def test_everything_the_dashboard_asks_for_has_data(watched: Watched) -> None:
    wait_until(lambda: watched.prometheus.query("streamlearn_examples_learned_total > 3000"), "the last scrape")
    time.sleep(2 * SCRAPE_SECONDS)
    empty = []
    for title, expression in expressions("replaying"):
        found = watched.prometheus.query_range(expression, 60)
        if all(number == "NaN" for one in found for _, number in one["values"]):
            empty.append((title, expression))
    assert not empty
    for name in ("job", "instance"):
        assert watched.prometheus.query(f"count by ({name}) (streamlearn_build_info)")


def test_everything_the_alerts_ask_for_has_data(watched: Watched) -> None:
    """Without the comparisons, which are there to leave out most of it."""
    for rule in rules(FASTER):
        for part in re.split(r"\n\s+and(?: on \(job, instance\))?\n", rule["expr"]):
            left, right = re.fullmatch(r"(.*?)\s*(?:==|>)\s*([^>]*)", part.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
            asked = [part] if "or on" in part else [left, right]
            for expression in asked:
                assert watched.prometheus.query(expression), (rule["alert"], expression)


def test_the_alert_for_forgetting_fires_without_replay_and_not_with_it(watched: Watched) -> None:
    forgotten = "StreamlearnOldestGroupForgotten"
    wait_until(lambda: (forgotten, "forgetful") in watched.prometheus.firing(), "the alert", seconds=30)
    assert (forgotten, "replaying") not in watched.prometheus.firing()
    now = {
        found["metric"]["instance"]: float(found["value"][1])
        for found in watched.prometheus.query('streamlearn_oldest_group_accuracy_ratio{source="eval"}')
    }
    assert now["forgetful"] < 0.2
    assert now["replaying"] > 0.5


# ---------------------------------------------------------------------- when processes die


def test_a_learner_that_hangs_holds_up_no_scrape(watched: Watched) -> None:
    daemon = watched.learning
    (pid,) = daemon.children("learner")
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        found = scraped(daemon, **{"X-Prometheus-Scrape-Timeout-Seconds": "2"})
        assert time.monotonic() - begun < 1.9
    finally:
        os.kill(pid, signal.SIGCONT)
    assert value(found, "streamlearn_state", state="away") == 1
    assert value(found, "streamlearn_snapshot_version") > 0
    wait_until(lambda: value(scraped(daemon), "streamlearn_state", state="away") == 0, "an answer")


def test_a_follower_tells_what_it_serves_and_nothing_of_a_learner_it_does_not_know(
    watched: Watched, tmp_path: Path
) -> None:
    output, snapshots = tmp_path / "out", watched.learning.state_dir / "snapshots"
    with output.open("wb") as file:
        command = [*MAIN, "follow", "--snapshots", str(snapshots), "--http", "127.0.0.1:0"]
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT, cwd=tmp_path)
    try:
        wait_until(lambda: "following snapshots" in output.read_text(), "the follower")
        url = json.loads(output.read_text().splitlines()[-1])["url"]
        ask(url, "POST", "/v1/predict", SAMPLE.test[3].tobytes(), OCTETS)
        found = ask(url, "GET", "/metrics").body.decode()
        check_metrics(found)
        assert value(found, "streamlearn_http_requests_total", route="/v1/predict", code="200") == 1
        assert value(found, "streamlearn_snapshot_version") > 0
        assert not {"streamlearn_state", "streamlearn_examples_learned_total"} & families(found).keys()
    finally:
        process.kill()
        process.wait()


def test_counts_survive_what_dies(tmp_path: Path) -> None:
    """What Prometheus makes of the scrapes is what really happened: also what was learned a second time."""
    url = f"log:{tmp_path / 'stream.log'}"
    settings = {**FAST, "http.servers": 2, "checkpoint.every_seconds": 0, "checkpoint.every_examples": 400}
    predict = 'streamlearn_http_requests_total{route="/v1/predict", code="200"}'
    with Daemon(tmp_path / "state", url, settings=settings) as daemon:
        daemon.ready()
        daemon.wait(lambda: "streamlearn_servers 2.0" in scraped(daemon), "both servers")
        with Prometheus(tmp_path / "prometheus", {"it": daemon.http_url}) as prometheus:

            def counted(name: str) -> float:
                return max((float(found["value"][1]) for found in prometheus.query(name)), default=-1.0)

            wait_until(lambda: counted("streamlearn_examples_learned_total") == 0, "a scrape at the start")
            feed(url, 0, 1000)
            wait_until(lambda: counted("streamlearn_examples_learned_total") == 1000, "1,000 examples")
            asked = 0
            for killing in (True, False):
                for _ in range(40):  # a connection each: now this server, now the other
                    assert daemon.ask("POST", "/v1/predict", SAMPLE.test[0].tobytes(), OCTETS).status == 200
                    asked += 1
                wait_until(lambda: counted(predict) == asked, "all predictions")  # noqa: B023
                if killing:
                    daemon.kill_child("server")
            assert prometheus.increase(predict) == asked

            pid = daemon.kill_child("learner")
            away = scraped(daemon)
            check_metrics(away)
            assert value(away, "streamlearn_state", state="away") == 1
            assert value(away, "streamlearn_http_requests_total", route="/v1/predict", code="200") == asked
            assert "streamlearn_examples_learned_total" not in away
            daemon.wait(lambda: daemon.children("learner") not in ([], [pid]), "another learner")
            feed(url, 1000, 1300)
            # 800 were saved: 200 are learned again, in a process that counts from zero.
            wait_until(lambda: counted("streamlearn_examples_learned_total") == 500, "the rest")
            assert prometheus.increase("streamlearn_examples_learned_total") == 1500
            assert prometheus.increase("streamlearn_step_duration_seconds_count") == 300
            assert prometheus.query("streamlearn_examples_seen")[0]["value"][1] == "1300"
            end = scraped(daemon)
            assert value(end, "streamlearn_process_restarts_total", process="learner") == 1
            assert value(end, "streamlearn_process_restarts_total", process="server") == 1
        assert len(list((tmp_path / "state" / "run" / "metrics").iterdir())) <= 3
