"""The Open Inference Protocol, asked by a client that others wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tritonclient import http as triton

from streamlearn.learner import Learner
from streamlearn.sample import load_sample
from tests.http.client import Running

PICTURES = load_sample().test[:5]
INFER = "/v2/models/streamlearn/infer"


@pytest.fixture
def client(running: Running) -> Any:
    client = triton.InferenceServerClient(running.url.removeprefix("http://"))
    yield client
    client.close()


def tensor(binary: bool, values: np.ndarray = PICTURES, datatype: str = "UINT8") -> Any:
    wanted = triton.InferInput("input", list(values.shape), datatype)
    wanted.set_data_from_numpy(values, binary_data=binary)
    return wanted


def test_metadata_and_readiness(client: Any, learner: Learner) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("streamlearn")
    assert client.is_model_ready("streamlearn", "1")
    assert not client.is_model_ready("streamlearn", "2")
    assert not client.is_model_ready("another")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    about = client.get_model_metadata("streamlearn")
    assert about["versions"] == ["1"]
    assert about["inputs"] == [{"name": "input", "datatype": "UINT8", "shape": [-1, 28, 28]}]
    assert about["outputs"][2]["shape"] == [-1, len(learner.classes.index)]


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
@pytest.mark.parametrize("version", ["", "1"])
def test_the_same_answer_as_predict(
    client: Any, running: Running, binary_in: bool, binary_out: bool, version: str
) -> None:
    names = ("label", "probability", "probabilities", "classes")
    outputs = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in names]
    found = client.infer("streamlearn", [tensor(binary_in)], version, outputs, request_id="mine")
    predictions = running.ask("POST", "/v1/predict?top_k=10", {"instances": PICTURES.tolist()}).json["predictions"]

    def texts(name: str) -> list[str]:
        return [text.decode() if isinstance(text, bytes) else text for text in found.as_numpy(name).tolist()]

    assert texts("label") == [one["label"] for one in predictions]
    assert found.as_numpy("probability").tolist() == [one["probability"] for one in predictions]
    assert found.as_numpy("probabilities").tolist() == [
        [one["scores"][name] for name in texts("classes")] for one in predictions
    ]
    assert found.get_response()["model_version"] == "1"
    assert found.get_response()["id"] == "mine"


@pytest.mark.parametrize("datatype", ["FP32", "INT64", "FP64", "UINT8"])
def test_pixels_in_any_type(client: Any, learner: Learner, datatype: str) -> None:
    kinds = {"FP32": np.float32, "INT64": np.int64, "FP64": np.float64, "UINT8": np.uint8}
    found = client.infer("streamlearn", [tensor(True, PICTURES.astype(kinds[datatype]), datatype)])
    labels = [text.decode() for text in found.as_numpy("label").tolist()]
    assert labels == learner.predict(PICTURES).labels


def test_an_error_reaches_the_client_in_words(client: Any) -> None:
    with pytest.raises(triton.InferenceServerException, match="one model here"):
        client.infer("another", [tensor(True)])


GOOD: dict[str, Any] = {"name": "input", "datatype": "UINT8", "shape": [1, 28, 28], "data": [0] * 784}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"name": None}, 422),
        ({"datatype": "BYTES"}, 422),
        ({"datatype": ["UINT8"]}, 422),
        ({"shape": [1, 28]}, 422),
        ({"shape": [0, 28, 28]}, 422),
        ({"shape": [1 << 39, 1 << 39]}, 422),
        ({"shape": "x"}, 422),
        ({"data": [0] * 783}, 422),
        ({"data": [256] + [0] * 783}, 422),
        ({"data": [0.5] + [0] * 783}, 422),
        ({"data": ["0"] * 784}, 422),
        ({"data": None}, 422),
        ({"datatype": "FP32", "data": [0.5] * 784}, 422),
        ({"datatype": "FP64", "data": [1e300] * 784}, 422),
        ({"parameters": {"binary_data_size": 784}}, 422),
        ({"shape": [2000, 28, 28], "data": [0] * 784 * 2000}, 413),
        ({"shape": [1, 784]}, 200),
        ({"data": [[0] * 28] * 28}, 200),
    ],
)
def test_tensors_that_do_not_fit(running: Running, changes: dict[str, Any], status: int) -> None:
    answer = running.ask("POST", INFER, {"inputs": [GOOD | changes]})
    assert answer.status == status, answer.body[:300]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"inputs": []},
        {"inputs": [GOOD, GOOD]},
        {"inputs": {}},
        {"inputs": [GOOD], "outputs": [{"name": "x"}]},
        {"inputs": [GOOD], "outputs": 1},
        {"inputs": [GOOD], "id": 5},
        {"inputs": [GOOD], "parameters": 5},
    ],
)
def test_requests_that_make_no_sense(running: Running, body: Any) -> None:
    assert running.ask("POST", INFER, body).status == 422


@pytest.mark.parametrize("length", ["x", "-1", "9999", "", "1e3"])
def test_a_wrong_header_length(running: Running, length: str) -> None:
    headers = {"Inference-Header-Content-Length": length}
    assert running.ask("POST", INFER, {"inputs": [GOOD]}, headers).status == 400


def test_features(tmp_path: Any) -> None:
    from streamlearn.settings.learner import LearnerSettings

    rng = np.random.default_rng(0)
    learner = Learner(LearnerSettings(normalise="running"))
    learner.learn(rng.normal(size=(40, 6)).astype(np.float32), ["a", "b"] * 20)
    with Running(tmp_path / "state", learner) as server:
        client = triton.InferenceServerClient(server.url.removeprefix("http://"))
        values = rng.normal(size=(3, 6)).astype(np.float32)
        found = client.infer("streamlearn", [tensor(True, values, "FP32")])
        assert found.as_numpy("probabilities").tolist() == learner.predict(values).probabilities.tolist()
        client.close()
