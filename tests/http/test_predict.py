"""POST /v1/predict: every form of an input gives the learner's own answer, and names the snapshot it came from."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from streamlearn.learner import Learner
from streamlearn.sample import load_sample
from streamlearn.settings.learner import LearnerSettings
from tests.http.client import OCTETS, Running, trained

PICTURES = load_sample().test


def encoded(picture: np.ndarray, kind: str = "PNG") -> bytes:
    file = BytesIO()
    Image.fromarray(picture).save(file, kind)
    return file.getvalue()


def test_every_form_of_a_picture_gives_the_learners_answer(running: Running, learner: Learner) -> None:
    picture = PICTURES[0]
    expected = learner.predict(picture[None])
    png = encoded(picture)
    nested = picture.tolist()
    forms = [
        (png, {"Content-Type": "image/png"}),
        (png, {"Content-Type": "application/x-www-form-urlencoded"}),  # what curl --data-binary says
        (png, {}),
        (picture.tobytes(), OCTETS),
        (picture.tobytes(), OCTETS | {"X-Shape": "1,28,28", "X-Dtype": "uint8"}),
        ({"instances": [nested]}, {}),
        ({"instances": [{"x": nested}]}, {}),
        ({"instances": [{"image": base64.b64encode(png).decode()}]}, {}),
    ]
    for body, headers in forms:
        answer = running.ask("POST", "/v1/predict?top_k=10", body, headers)
        assert answer.status == 200, answer.body
        (prediction,) = answer.json["predictions"]
        assert prediction["label"] == expected.labels[0]
        assert prediction["scores"] == dict(
            sorted(zip(expected.classes, expected.probabilities[0].tolist(), strict=True), key=lambda one: -one[1])
        )
        assert next(iter(prediction["scores"])) == prediction["label"]
        assert prediction["probability"] == max(prediction["scores"].values())
        model = answer.json["model"]
        assert model | {"age_seconds": 0} == {
            "version": 1,
            "examples_seen": learner.examples_seen,
            "bias_version": learner.bias.version,
            "published_at": 1e9,
            "age_seconds": 0,
        }
        assert model["age_seconds"] > 1e8


def test_many_instances_and_top_k(running: Running, learner: Learner) -> None:
    body = {"instances": PICTURES[:64].tolist()}
    predictions = running.ask("POST", "/v1/predict?top_k=3", body).json["predictions"]
    assert [one["label"] for one in predictions] == learner.predict(PICTURES[:64]).labels
    assert all(len(one["scores"]) == 3 for one in predictions)
    octets = OCTETS | {"X-Shape": "64,28,28"}
    assert (
        running.ask("POST", "/v1/predict?top_k=3", PICTURES[:64].tobytes(), octets).json["predictions"] == predictions
    )


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {"Content-Type": "application/json"}, 400, "bad-json"),
        (b"\xff", {"Content-Type": "application/json"}, 400, "bad-json"),
        (b"[" * 100_000, {"Content-Type": "application/json"}, 400, "bad-json"),
        (b"[]", {"Content-Type": "application/json"}, 422, "bad-json"),
        ({}, {}, 422, "no-input"),
        ({"instances": []}, {}, 422, "no-input"),
        ({"instances": [[[1, 2], [3]]]}, {}, 422, "bad-shape"),
        ({"instances": [[[1, 2], [3, 4]]]}, {}, 422, "wrong-shape"),
        ({"instances": ["x"]}, {}, 422, "bad-shape"),
        ({"instances": [{"image": "!"}]}, {}, 422, "bad-image"),
        ({"instances": [[[0] * 28] * 28] * 1025}, {}, 413, "too-many-instances"),
        (b"x", {"Content-Type": "text/plain"}, 415, "unknown-content-type"),
        (b"x", {"Content-Type": "image/png"}, 422, "bad-image"),
        (b"x", {"Content-Type": "application/octet-stream"}, 422, "bad-shape"),
        (b"x", OCTETS, 422, "bad-shape"),
        (b"x", OCTETS | {"X-Shape": "0"}, 422, "bad-shape"),
        (b"x", OCTETS | {"X-Shape": "1,1,1,1,1"}, 422, "bad-shape"),
        (b"x", OCTETS | {"X-Dtype": "int64"}, 422, "bad-dtype"),
        (b"\0\0\xc0\x7f", OCTETS | {"X-Shape": "1", "X-Dtype": "float32"}, 422, "not-finite"),
        ({"instances": [[[0] * 28] * 28], "ids": ["a", "b"]}, {}, 422, "bad-ids"),
        ({"instances": [[[0] * 28] * 28], "ids": [1]}, {}, 422, "bad-ids"),
        ({"instances": [[[0] * 28] * 28], "ids": [""]}, {}, 422, "bad-ids"),
    ],
)
def test_what_cannot_be_answered_says_why(
    running: Running, body: object, headers: dict[str, str], status: int, code: str
) -> None:
    answer = running.ask("POST", "/v1/predict", body, headers)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize("top_k", ["0", "-1", "x", "1.5", "99999999999999999999"])
def test_top_k_is_a_number(running: Running, top_k: str) -> None:
    answer = running.ask("POST", f"/v1/predict?top_k={top_k}", {"instances": [PICTURES[0].tolist()]})
    assert (answer.status, answer.code) == (422, "bad-query")


def test_before_anything_was_learned(tmp_path: Path) -> None:
    with Running(tmp_path / "state", Learner(LearnerSettings())) as server:
        answer = server.ask("POST", "/v1/predict", {"instances": [PICTURES[0].tolist()]})
        assert answer.json["predictions"] == [{"label": None, "probability": None, "scores": {}}]
        assert server.ask("POST", "/v2/models/streamlearn/infer", {"inputs": []}).status == 409


def test_without_a_snapshot_it_is_not_ready(tmp_path: Path) -> None:
    with Running(tmp_path / "state", None) as server:
        answer = server.ask("POST", "/v1/predict", {"instances": [PICTURES[0].tolist()]})
        assert (answer.status, answer.code) == (503, "no-snapshot")
        assert server.ask("GET", "/readyz").status == 503
        server.publish(3, trained(50))
        assert server.ask("POST", "/v1/predict", {"instances": [PICTURES[0].tolist()]}).status == 200
        assert server.ask("GET", "/readyz").status == 200


def test_requests_that_wait_together_are_answered_by_one_pass_from_one_snapshot(running: Running) -> None:
    start = threading.Barrier(16)
    before = running.app.joiner.passes

    def pictures() -> Iterator[int]:
        start.wait()
        for place in range(40):
            answer = running.ask("POST", "/v1/predict", PICTURES[place].tobytes(), OCTETS)
            assert answer.status == 200
            yield answer.json["model"]["version"]

    threads = [threading.Thread(target=lambda: list(pictures())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert running.app.joiner.answered >= 640
    assert running.app.joiner.passes - before < 600


def test_a_newer_snapshot_is_served_from_the_next_answer_on_and_an_older_one_never(running: Running) -> None:
    def version() -> int:
        answer = running.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS)
        return int(answer.json["model"]["version"])

    for published, served in ((2, 2), (7, 7), (5, 7), (8, 8)):
        running.publish(published)
        assert version() == served


def test_a_damaged_snapshot_changes_nothing(running: Running) -> None:
    path = running.state_dir / "snapshots" / "current.safetensors"
    for content in (b"", b"x" * 1000, path.read_bytes()[:-5]):
        path.with_suffix(".other").write_bytes(content)
        path.with_suffix(".other").rename(path)
        answer = running.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS)
        assert answer.json["model"]["version"] == 1
    running.publish(2)
    assert running.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS).json["model"]["version"] == 2


def test_another_shape_after_a_restart(running: Running) -> None:
    """A state directory that was started anew learns something else: who asks as before is told."""
    other = Learner(LearnerSettings())
    other.learn(np.zeros((4, 8, 8), np.uint8), ["a", "b", "a", "b"])
    running.publish(2, other)
    answer = running.ask("POST", "/v1/predict", PICTURES[0].tobytes(), OCTETS)
    assert (answer.status, answer.code) == (422, "wrong-shape")


def test_more_than_can_wait(tmp_path: Path, learner: Learner) -> None:
    with Running(tmp_path / "state", learner, http={"max_waiting": 1}) as server:
        many = server.ask("POST", "/v1/predict", {"instances": PICTURES[:20].tolist()})
        assert many.status == 200  # one request alone is never too many
