"""Tensors of the Open Inference Protocol: as JSON, or as bytes behind the JSON (the binary tensor extension)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.learner import Answers
from streamlearn.records.record import Array
from streamlearn.serving.messages import JSON, HttpError, Request, Response, json_object
from streamlearn.serving.model import Served

DATATYPES: Mapping[str, str] = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
    "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8",
    "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
OUTPUTS = ("label", "probability", "probabilities", "classes")
USUAL_OUTPUTS = OUTPUTS[:3]
LENGTH_HEADER = b"inference-header-content-length"


@dataclass(slots=True)
class Inference:
    inputs: Array
    id: str | None
    outputs: list[tuple[str, bool]]  # name, and whether as bytes


def read_inference(request: Request, model: Served, most: int) -> Inference:
    head, tail = _parted(request)
    content = json_object(head)
    tensors = content.get("inputs")
    if not isinstance(tensors, list) or len(tensors) != 1 or not isinstance(tensors[0], dict):
        raise HttpError(422, "bad-inputs", "inputs must hold one tensor")
    id, parameters = content.get("id"), content.get("parameters") or {}
    if not (id is None or isinstance(id, str)) or not isinstance(parameters, dict):
        raise HttpError(422, "bad-inputs", "id must be a string and parameters an object")
    inputs = _fitting(_tensor(tensors[0], tail), model, most)
    return Inference(inputs, id, _outputs(content.get("outputs"), parameters.get("binary_data_output") is True))


def _parted(request: Request) -> tuple[bytes, bytes]:
    """The JSON, and the bytes behind it."""
    length = request.headers.get(LENGTH_HEADER)
    if length is None:
        return request.body, b""
    if not length.isdigit() or len(length) > 12 or int(length) > len(request.body):
        raise HttpError(400, "bad-header", "Inference-Header-Content-Length is not the length of the JSON in the body")
    return request.body[: int(length)], request.body[int(length) :]


def _tensor(tensor: dict[str, Any], tail: bytes) -> NDArray[Any]:
    name, datatype, shape = tensor.get("name"), tensor.get("datatype"), tensor.get("shape")
    if not isinstance(name, str):
        raise HttpError(422, "bad-inputs", "a tensor needs a name")
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise HttpError(422, "bad-dtype", f"datatype must be one of {', '.join(DATATYPES)}")
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 5
        or not all(type(n) is int and 0 < n < 1 << 40 for n in shape)
    ):
        raise HttpError(422, "bad-shape", "shape must be a list of one to five positive numbers")
    count, dtype = prod(shape), np.dtype(DATATYPES[datatype])
    parameters = tensor.get("parameters") or {}
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None:
        if type(size) is not int or size != len(tail) or size != count * dtype.itemsize:
            wanted = count * dtype.itemsize
            raise HttpError(
                422,
                "bad-shape",
                f"shape and datatype ask for {wanted:,} bytes behind the JSON; there are {len(tail):,}",
            )
        return np.frombuffer(tail, dtype).reshape(shape)
    if tail:
        raise HttpError(422, "bad-inputs", "there are bytes behind the JSON that no tensor asks for")
    return _from_list(tensor.get("data"), dtype, count).reshape(shape)


def _from_list(data: Any, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Flat or nested, as clients like it."""
    while isinstance(data, list) and data and all(isinstance(item, list) for item in data):
        data = [item for part in data for item in part]
    if not isinstance(data, list) or len(data) != count:
        found = len(data) if isinstance(data, list) else "no"
        raise HttpError(422, "bad-shape", f"shape asks for {count:,} values; data has {found}")
    kinds = set(map(type, data))
    if not kinds <= ({bool} if dtype.kind == "b" else {int} if dtype.kind in "iu" else {int, float}):
        raise HttpError(422, "bad-dtype", f"data holds values that are not of datatype {dtype.name}")
    try:
        with np.errstate(over="ignore"):
            return np.array(data, dtype)
    except (OverflowError, ValueError):
        raise HttpError(422, "bad-dtype", f"data holds numbers beyond {dtype.name}") from None


def _fitting(values: NDArray[Any], model: Served, most: int) -> Array:
    """As the model wants them: whole numbers from 0 to 255 for pictures, float32 for features."""
    assert model.shape is not None
    if len(values) > most:
        raise HttpError(413, "too-many-instances", f"{len(values):,} inputs; at most {most:,} at once")
    if values.shape[1:] != model.shape:
        if values.size != len(values) * prod(model.shape):
            wanted = f"[-1, {', '.join(map(str, model.shape))}]"
            raise HttpError(422, "wrong-shape", f"the tensor's shape is {list(values.shape)}; the model's is {wanted}")
        values = values.reshape(len(values), *model.shape)  # flat pictures
    if model.dtype == np.uint8:
        if values.dtype == np.uint8:
            return values
        with np.errstate(invalid="ignore"):
            pixels = values.astype(np.uint8)
        if not (pixels == values).all():
            raise HttpError(422, "bad-dtype", "the model takes pictures: whole numbers from 0 to 255")
        return pixels
    with np.errstate(over="ignore"):
        floats = values.astype(np.float32)
    if not np.isfinite(floats).all():
        raise HttpError(422, "not-finite", "the tensor holds values that are not finite")
    return floats


def _outputs(wanted: Any, binary: bool) -> list[tuple[str, bool]]:
    if wanted is None or wanted == []:
        return [(name, binary) for name in USUAL_OUTPUTS]
    if not isinstance(wanted, list):
        raise HttpError(422, "bad-outputs", "outputs must be a list")
    outputs = []
    for one in wanted:
        name = one.get("name") if isinstance(one, dict) else None
        if name not in OUTPUTS:
            raise HttpError(422, "bad-outputs", f"outputs can be {', '.join(OUTPUTS)}")
        parameters = one.get("parameters")
        own = parameters.get("binary_data") if isinstance(parameters, dict) else None
        outputs.append((name, binary if own is None else own is True))
    return outputs


def inference_answer(model: str, asked: Inference, served: Served, answers: Answers) -> Response:
    tensors, tail = [], []
    for name, binary in asked.outputs:
        tensor, data, raw = _output(name, answers)
        if binary:
            tensor["parameters"] = {"binary_data_size": len(raw)}
            tail.append(raw)
        else:
            tensor["data"] = data
        tensors.append(tensor)
    content = {
        "model_name": model,
        "model_version": str(served.version),
        **({} if asked.id is None else {"id": asked.id}),
        "parameters": {"examples_seen": served.examples_seen, "bias_version": served.bias_version},
        "outputs": tensors,
    }
    head = json.dumps(content, ensure_ascii=False).encode()
    if not tail:
        return Response(head, content_type=JSON)
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return Response(head + b"".join(tail), content_type=b"application/octet-stream", headers=headers)


def _output(name: str, answers: Answers) -> tuple[dict[str, Any], list[Any], bytes]:
    if name in ("label", "classes"):
        names = list(answers.classes) if name == "classes" else [label or "" for label in answers.labels]
        encoded = [text.encode() for text in names]
        raw = b"".join(len(text).to_bytes(4, "little") + text for text in encoded)
        return {"name": name, "datatype": "BYTES", "shape": [len(names)]}, names, raw
    values = answers.probabilities if name == "probabilities" else answers.probabilities.max(axis=1)
    tensor = {"name": name, "datatype": "FP32", "shape": list(values.shape)}
    return tensor, values.reshape(-1).tolist(), values.astype("<f4").tobytes()
