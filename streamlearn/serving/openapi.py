"""The description of the interface at /openapi.json. A test holds it against the routes, and fuzzing against both."""

from __future__ import annotations

from functools import cache
from typing import Any

from streamlearn.serving.openapi_schemas import SCHEMAS
from streamlearn.version import VERSION

Json = dict[str, Any]

_JSON, _OCTETS = "application/json", "application/octet-stream"
_FAULTS = {
    400: "not understood",
    401: "no token, or a wrong one",
    403: "this token may not",
    404: "not there",
    405: "not with this method",
    408: "the request did not arrive in time",
    409: "not in this state",
    410: "too late",
    413: "too large",
    415: "not of this type",
    422: "understood, but it cannot be",
    431: "the headers are too large",
    503: "not now: try again later",
}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: str) -> Json:
    return {_JSON: {"schema": _ref(schema)}}


def _operation(
    summary: str,
    answer: str,
    *faults: int,
    body: Json | None = None,
    parameters: list[Json] | None = None,
    error: str = "Error",
) -> Json:
    ready = {"503": {"description": "not ready", "content": _content(answer)}} if answer == "Ready" else {}
    operation: Json = {
        "summary": summary,
        "operationId": "".join(letter if letter.isalnum() else "-" for letter in summary.lower()),
        "responses": {"200": {"description": "done", "content": _content(answer)}}
        | {
            str(code): {"description": _FAULTS[code], "content": _content(error)}
            for code in sorted({*faults, 400, 401, 403, 408, 413, 431, 503})
        }
        | ready,
    }
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = {"required": True, "content": body}
    return operation


def _parameter(name: str, place: str, schema: Json, about: str, required: bool = False) -> Json:
    return {"name": name, "in": place, "required": required or place == "path", "description": about, "schema": schema}


def _pictures() -> Json:
    return {kind: {"schema": {"type": "string", "format": "binary"}} for kind in ("image/png", "image/jpeg", _OCTETS)}


_TEXT: Json = {"type": "string", "minLength": 1}
_RAW_HEADERS = [
    _parameter("X-Shape", "header", {"type": "string", "examples": ["28,28"]}, "of an octet-stream"),
    _parameter("X-Dtype", "header", {"enum": ["uint8", "float32"]}, "of an octet-stream"),
]
_MODEL = _parameter("model", "path", {"type": "string", "const": "streamlearn"}, "the one model there is")
_VERSION = _parameter("version", "path", {"type": "string", "pattern": "^[0-9]{1,18}$"}, "of a snapshot")


def _predict() -> Json:
    parameters = [
        _parameter("top_k", "query", {"type": "integer", "minimum": 1, "maximum": 1_000_000}, "scores to name"),
        *_RAW_HEADERS,
        _parameter("X-Id", "header", _TEXT, "of one raw input: a label that comes later will name it"),
    ]
    body = _content("PredictRequest") | _pictures()
    return {"post": _operation("Predict", "Predictions", 409, 415, 422, body=body, parameters=parameters)}


def _buffer() -> Json:
    chosen = [
        _parameter("label", "query", _TEXT, "only this class"),
        _parameter("id", "query", _TEXT, "only this example"),
    ]
    whole = {"type": "integer", "minimum": 0, "maximum": 10**9}
    pages = [
        _parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 1000}, "examples on a page"),
        _parameter("after", "query", whole, "what `next` of the page before says"),
        _parameter("inputs", "query", {"enum": [0, 1]}, "1: with the inputs themselves, in base64"),
    ]
    return {
        "get": _operation("What is remembered", "BufferPage", 409, 422, parameters=chosen + pages),
        "delete": _operation("Forget an example or a class", "Erased", 409, 422, parameters=chosen),
    }


def _image() -> Json:
    operation = _operation(
        "The picture in a slot",
        "Error",
        404,
        409,
        422,
        parameters=[
            _parameter("slot", "path", {"type": "integer", "minimum": 0, "maximum": 10**8}, "of the buffer"),
            _parameter(
                "arrival", "query", {"type": "integer", "minimum": 0}, "as the buffer's page says: may be cached then"
            ),
        ],
    )
    binary = {"schema": {"type": "string", "format": "binary"}}
    operation["responses"]["200"] = {"description": "the picture", "content": {"image/png": binary}}
    operation["responses"]["204"] = {"description": "the slot holds another example than that of `arrival`"}
    return {"get": operation}


def _page(summary: str, *places: Json) -> Json:
    """What browsers ask for."""
    operation = _operation(summary, "Error", 404, parameters=list(places))
    contents = {kind: {"schema": {"type": "string"}} for kind in ("text/html", "text/css", "text/javascript")}
    contents["image/svg+xml"] = {"schema": {"type": "string"}}
    operation["responses"] |= {
        "200": {"description": "done", "content": contents},
        "304": {"description": "not changed since"},
    }
    return {"get": operation}


def _metrics() -> Json:
    operation = _operation("Metrics of the whole daemon, for Prometheus", "Error")
    kinds = ("text/plain", "application/openmetrics-text")
    texts = {kind: {"schema": {"type": "string"}} for kind in kinds}
    operation["responses"]["200"] = {"description": "in the format that Accept asks for", "content": texts}
    return {"get": operation}


def _events() -> Json:
    number = {"type": "string", "pattern": "^[0-9]{1,18}$"}
    parameters = [
        _parameter("after", "query", number, "the number of the last event seen"),
        _parameter("Last-Event-ID", "header", number, "the same, as browsers send it"),
    ]
    operation = _operation("What happens, as server-sent events", "Error", 409, 422, parameters=parameters)
    text = {"text/event-stream": {"schema": {"type": "string"}}}
    operation["responses"]["200"] = {"description": "events, for as long as one listens", "content": text}
    return {"get": operation}


def _examples() -> Json:
    parameters = [
        *_RAW_HEADERS,
        _parameter("X-Label", "header", _TEXT, "of one raw input"),
        _parameter("X-Id", "header", _TEXT, "of one raw input"),
        _parameter("X-Split", "header", {"enum": ["train", "eval"]}, "of one raw input"),
        _parameter("X-Group", "header", _TEXT, "of one raw input"),
    ]
    body = _content("ExamplesRequest") | _pictures()
    operation = _operation("Labelled examples for the stream", "Accepted", 415, 422, body=body, parameters=parameters)
    return {"post": operation}


def _v2(summary: str, answer: str, *faults: int, **more: Any) -> Json:
    """The inference protocol has its own shape of an error."""
    return _operation(summary, answer, *faults, error="V2Error", **more)


def _v2_model(*places: Json) -> dict[str, Json]:
    """Metadata, readiness and inference of a model, or of one version of it."""
    infer = _content("InferRequest") | {_OCTETS: {"schema": {"type": "string", "format": "binary"}}}
    length = _parameter(
        "Inference-Header-Content-Length", "header", {"type": "integer", "minimum": 0}, "where binary tensors begin"
    )
    versioned = " of a version" if len(places) > 1 else ""
    operation = _v2(f"Infer{versioned}", "InferResponse", 404, 409, 422, body=infer, parameters=[*places, length])
    operation["responses"]["200"]["content"][_OCTETS] = {"schema": {"type": "string", "format": "binary"}}
    return {
        "": {"get": _v2(f"Model metadata{versioned}", "ModelMetadata", 404, parameters=[*places])},
        "/ready": {"get": _v2(f"Is the model ready{versioned}", "Ready", 404, parameters=[*places])},
        "/infer": {"post": operation},
    }


@cache
def description() -> Json:
    source = _parameter(
        "source", "query", {"enum": ["prequential", "eval"]}, "answers on the stream, or to held-out records"
    )
    order = _parameter("order", "path", {"enum": ["pause", "resume", "checkpoint", "refit-bias"]}, "what to do")
    page_version = _parameter("digest", "path", _TEXT, "of all its files")
    paths: Json = {
        "/": _page("The live page, for people"),
        "/page/{digest}/{file}": _page("A file of the live page", page_version, _parameter("file", "path", _TEXT, "")),
        "/v1/predict": _predict(),
        "/v1/examples": _examples(),
        "/v1/labels": {
            "post": _operation(
                "A label that comes later", "Labelled", 404, 409, 410, 422, body=_content("LabelRequest")
            )
        },
        "/v1/status": {"get": _operation("What the daemon is doing", "Status")},
        "/v1/history": {"get": _operation("How it came about, over examples learned", "History", 409)},
        "/v1/confusion": {
            "get": _operation("Which class was taken for which", "Confusion", 409, 422, parameters=[source])
        },
        "/v1/buffer": _buffer(),
        "/v1/buffer/{slot}/image": _image(),
        "/v1/admin/{order}": {"post": _operation("Control", "Done", 404, 409, parameters=[order])},
        "/v1/events": _events(),
        "/metrics": _metrics(),
        "/healthz": {"get": _operation("Is the server alive", "Alive")},
        "/readyz": {"get": _operation("Is everything well, and if not, why", "Ready")},
        "/openapi.json": {"get": _operation("This description", "Anything")},
        "/v2": {"get": _v2("Server metadata", "ServerMetadata")},
        "/v2/health/live": {"get": _v2("Is the server live", "Anything")},
        "/v2/health/ready": {"get": _v2("Can predictions be asked for", "Ready")},
    }
    for path, item in _v2_model(_MODEL).items():
        paths[f"/v2/models/{{model}}{path}"] = item
    for path, item in _v2_model(_MODEL, _VERSION).items():
        paths[f"/v2/models/{{model}}/versions/{{version}}{path}"] = item
    return {
        "openapi": "3.1.0",
        "info": {"title": "streamlearn", "version": VERSION, "description": "Predictions while it learns."},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
