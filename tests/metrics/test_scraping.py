"""How Prometheus gets at the metrics of a server, and what it costs."""

from __future__ import annotations

import time
from pathlib import Path

from tests.http.client import Running
from tests.metrics.prometheus import Prometheus, check_metrics, families, series, value
from tests.serving import wait_until

HEALTH = 'up{job="streamlearn"}'


def test_with_the_token_for_reading_in_a_file_and_not_without(tmp_path: Path) -> None:
    tokens = {"token": "everything", "read_token": "look"}
    with (
        Running(tmp_path / "state", None, http=tokens) as server,
        Prometheus(tmp_path / "knows", {"it": server.url}, token="look") as knows,
        Prometheus(tmp_path / "guesses", {"it": server.url}) as guesses,
    ):
        wait_until(lambda: knows.query(HEALTH) and guesses.query(HEALTH), "a scrape of each")
        assert knows.query(HEALTH)[0]["value"][1] == "1"
        assert guesses.query(HEALTH)[0]["value"][1] == "0"
        refused = server.ask("GET", "/metrics")
        assert refused.status == 401
        found = server.ask("GET", "/metrics", headers={"Authorization": "Bearer look"}).body.decode()
        assert "everything" not in found
        assert value(found, "streamlearn_http_requests_total", route="/metrics", code="401") > 0


def test_without_a_learner_it_answers_at_once_and_says_so(tmp_path: Path) -> None:
    with Running(tmp_path / "state", None) as server:
        server.ask("GET", "/metrics")
        begun = time.monotonic()
        found = server.ask("GET", "/metrics").body.decode()
        assert time.monotonic() - begun < 0.5
        check_metrics(found)
        assert value(found, "streamlearn_state", state="away") == 1
        assert value(found, "streamlearn_snapshot_published_timestamp_seconds") == 0
        (server.state_dir / "run" / "learner.json").write_text('{"stopped": true, "reason": "bad records"}')
        stopped = server.ask("GET", "/metrics").body.decode()
        assert value(stopped, "streamlearn_state", state="stopped") == 1
        assert value(stopped, "streamlearn_state", state="away") == 0


def test_unknown_paths_and_codes_make_no_series(running: Running) -> None:
    before = series(running.ask("GET", "/metrics").body.decode()).keys()
    for number in range(50):
        running.ask("GET", f"/nowhere/{number}")
        running.ask("GET", f"/v1/buffer/{number}/picture")
    found = running.ask("GET", "/metrics").body.decode()
    assert series(found).keys() - before <= {
        ("streamlearn_http_requests_total", frozenset({("route", route), ("code", code)}))
        for route, code in (("/metrics", "200"), ("other", "404"))
    }
    assert value(found, "streamlearn_http_requests_total", route="other", code="404") == 100
    assert sum(len(family.samples) for family in families(found).values()) < 1000


def test_a_timeout_that_is_no_number_is_no_matter(running: Running) -> None:
    for text in ("soon", "nan", "-1", "1e9"):
        assert running.ask("GET", "/metrics", headers={"X-Prometheus-Scrape-Timeout-Seconds": text}).status == 200
