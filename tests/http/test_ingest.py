"""Examples and late labels over HTTP: on the stream when answered, with the input of prediction time."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamlearn.learner import Learner
from streamlearn.records.decode import Decoder
from streamlearn.records.record import Example, Record
from streamlearn.sample import load_sample
from streamlearn.stream.url import open_stream
from tests.http.client import OCTETS, Running
from tests.http.test_predict import encoded

PICTURES = load_sample().test


def on_the_stream(server: Running) -> Sequence[Record]:
    stream = open_stream(server.settings.stream_url)
    stream.open(None)
    try:
        return stream.poll(1000, 0)
    finally:
        stream.close()


def decoded(record: Record) -> Example:
    example = Decoder().decode(record)
    assert isinstance(example, Example)
    return example


def test_examples_are_on_the_stream_when_answered(running: Running) -> None:
    picture = PICTURES[0]
    png = encoded(picture)
    listed: list[dict[str, Any]] = [
        {"x": picture.tolist(), "label": "boot", "id": "a", "split": "eval", "group": "g"},
        {"image": base64.b64encode(png).decode(), "label": "Schuh ü", "id": 7},
    ]
    assert running.ask("POST", "/v1/examples", {"examples": listed}).json == {"accepted": 2}
    raw = {"X-Label": "boot", "X-Id": "b", "X-Group": "g"}
    assert running.ask("POST", "/v1/examples", picture.tobytes(), OCTETS | raw).json == {"accepted": 1}
    assert running.ask("POST", "/v1/examples", png, {"X-Label": "boot"}).json == {"accepted": 1}
    found = [decoded(record) for record in on_the_stream(running)]
    assert [(one.label, one.id, one.split, one.group) for one in found] == [
        ("boot", "a", "eval", "g"),
        ("Schuh ü", "7", "train", None),
        ("boot", "b", "train", "g"),
        ("boot", None, "train", None),
    ]
    assert all((one.input == picture).all() for one in found)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"examples": []}, {}, 422),
        ({}, {}, 422),
        ({"examples": [1]}, {}, 422),
        ({"examples": [{"x": PICTURES[0].tolist()}]}, {}, 422),
        ({"examples": [{"x": PICTURES[0].tolist(), "label": ""}]}, {}, 422),
        ({"examples": [{"x": PICTURES[0].tolist(), "label": "x" * 129}]}, {}, 422),
        ({"examples": [{"x": PICTURES[0].tolist(), "label": "a", "split": "test"}]}, {}, 422),
        ({"examples": [{"x": [[1, 2]], "label": "a"}]}, {}, 422),
        ({"examples": [{"x": PICTURES[0].tolist(), "label": "a"}, {"label": "a"}]}, {}, 422),
        (b"x", {"X-Label": "a"}, 415),
        (b"{", {"X-Label": "a", "Content-Type": "application/json"}, 400),
        (PICTURES[0].tobytes(), OCTETS, 422),
        (PICTURES[0].tobytes(), OCTETS | {"X-Label": ""}, 422),
        (PICTURES[0].tobytes(), OCTETS | {"X-Label": "a", "X-Shape": "784"}, 422),
        (PICTURES[0].tobytes(), OCTETS | {"X-Label": "a", "X-Dtype": "float64"}, 422),
    ],
)
def test_what_could_not_be_learned_is_refused_whole(
    running: Running, body: object, headers: dict[str, str], status: int
) -> None:
    answer = running.ask("POST", "/v1/examples", body, headers)
    assert answer.status == status, answer.body
    assert answer.code
    assert not on_the_stream(running)


def test_a_label_that_comes_later_is_joined_with_the_input_and_the_prediction(running: Running) -> None:
    body = {"instances": PICTURES[:3].tolist(), "ids": ["one", None, "three"]}
    predictions = running.ask("POST", "/v1/predict", body).json["predictions"]
    assert [one["id"] for one in predictions] == ["one", None, "three"]
    running.ask("POST", "/v1/predict", PICTURES[4].tobytes(), OCTETS | {"X-Id": "raw"})
    running.publish(2)  # what is served by the time the label comes does not matter
    time.sleep(0.05)
    answer = running.ask("POST", "/v1/labels", {"id": "three", "label": "bag"})
    assert answer.status == 200
    assert answer.json["accepted"] == 1
    assert answer.json["predicted"] == predictions[2]["label"]
    assert answer.json["model_version"] == 1
    assert 0.05 <= answer.json["delay_seconds"] < 10
    assert running.ask("POST", "/v1/labels", {"id": "raw", "label": "bag"}).status == 200
    records = on_the_stream(running)
    found = [decoded(record) for record in records]
    assert [(one.id, one.label) for one in found] == [("three", "bag"), ("raw", "bag")]
    assert (found[0].input == PICTURES[2]).all()
    assert (found[1].input == PICTURES[4]).all()
    headers = dict(records[0].headers)
    assert headers["streamlearn.predicted"].decode() == predictions[2]["label"]
    assert headers["streamlearn.predicted.version"] == b"1"
    counts = running.ask("GET", "/v1/status").json["labels"]
    assert (counts["pending"], counts["labelled"], counts["expired"]) == (1, 2, 0)
    assert counts["delay_seconds"]["max"] >= 0.05


def test_labels_for_nobody_twice_and_too_late(tmp_path: Path, learner: Learner) -> None:
    with Running(tmp_path / "state", learner, labels={"expire_seconds": 0.3}) as server:
        body = {"instances": PICTURES[:2].tolist(), "ids": ["a", "b"]}
        server.ask("POST", "/v1/predict", body)
        assert server.ask("POST", "/v1/labels", {"id": "x", "label": "bag"}).code == "unknown-id"
        assert server.ask("POST", "/v1/labels", {"id": "a", "label": "bag"}).status == 200
        again = server.ask("POST", "/v1/labels", {"id": "a", "label": "bag"})
        assert (again.status, again.json["accepted"]) == (200, 0)
        other = server.ask("POST", "/v1/labels", {"id": "a", "label": "boot"})
        assert (other.status, other.code) == (409, "labelled-already")
        time.sleep(0.4)
        late = server.ask("POST", "/v1/labels", {"id": "b", "label": "bag"})
        assert (late.status, late.code) == (410, "expired-id")
        assert len(on_the_stream(server)) == 1


@pytest.mark.parametrize(
    "body", [{}, {"id": "a"}, {"id": "a", "label": ""}, {"id": "", "label": "b"}, {"id": [], "label": 1}]
)
def test_labels_that_say_nothing(running: Running, body: object) -> None:
    assert running.ask("POST", "/v1/labels", body).status == 422


def test_what_waits_survives_the_server_and_is_bounded(tmp_path: Path, learner: Learner) -> None:
    labels = {"max_pending": 50}
    with Running(tmp_path / "state", learner, labels=labels) as server:
        for start in range(0, 200, 20):
            ids = [f"id-{place}" for place in range(start, start + 20)]
            server.ask("POST", "/v1/predict", {"instances": PICTURES[start : start + 20].tolist(), "ids": ids})
        time.sleep(1.1)  # a sweep is due
        server.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS | {"X-Id": "last"})
    with Running(tmp_path / "state", None, labels=labels) as server:
        counts = server.ask("GET", "/v1/status").json["labels"]
        assert counts["pending"] == 50
        assert counts["expired"] == 151
        assert server.ask("POST", "/v1/labels", {"id": "id-199", "label": "bag"}).status == 200
        assert server.ask("POST", "/v1/labels", {"id": "id-140", "label": "bag"}).code == "expired-id"
        (record,) = on_the_stream(server)
        assert (decoded(record).input == PICTURES[199]).all()
    assert (tmp_path / "state" / "run" / "labels.db").stat().st_mode & 0o777 == 0o600


def test_a_stream_that_does_not_answer(tmp_path: Path, learner: Learner) -> None:
    stream = {"url": f"log:{tmp_path / 'nowhere' / 'stream.log'}"}
    with Running(tmp_path / "state", learner, stream=stream) as server:
        body = {"examples": [{"x": PICTURES[0].tolist(), "label": "a"}]}
        answer = server.ask("POST", "/v1/examples", body)
        assert (answer.status, answer.code) == (503, "stream-away")
        assert answer.headers["retry-after"]
        (tmp_path / "nowhere").mkdir()
        assert server.ask("POST", "/v1/examples", body).json == {"accepted": 1}


def test_a_follower_takes_no_examples(tmp_path: Path, learner: Learner) -> None:
    with Running(tmp_path / "state", learner, follow=True) as server:
        assert server.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS).status == 200
        assert server.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS | {"X-Id": "a"}).code == "no-stream"
        assert server.ask("POST", "/v1/examples", {}).status == 404
        assert server.ask("GET", "/v1/buffer").code == "no-learner"
        assert server.ask("GET", "/v1/status").json["snapshot"]["version"] == 1
        assert server.ask("GET", "/readyz").status == 200
        assert not (tmp_path / "state" / "run" / "labels.db").exists()


def test_the_inputs_of_a_prediction_are_the_ones_that_were_sent(running: Running) -> None:
    """Features in any number format come back as they were."""
    values = np.arange(784, dtype=np.uint8).reshape(28, 28)
    running.ask("POST", "/v1/predict", {"instances": [values.tolist()], "ids": ["x"]})
    running.ask("POST", "/v1/labels", {"id": "x", "label": "bag"})
    assert (decoded(on_the_stream(running)[0]).input == values).all()
