"""The shapes of what is sent and answered, for the description of the interface."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def _object(required: Json, optional: Json | None = None, *, closed: bool = False) -> Json:
    schema: Json = {"type": "object", "properties": required | (optional or {}), "required": list(required)}
    return schema | ({"additionalProperties": False} if closed else {})


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_WORD: Json = {"type": "string"}
_WHOLE: Json = {"type": "integer"}
_NUMBER: Json = {"type": "number"}
_MAYBE_WORD: Json = {"type": ["string", "null"]}
_MAYBE_NUMBER: Json = {"type": ["number", "null"]}
_OBJECT: Json = {"type": "object"}
_NESTED: Json = {"type": "array", "minItems": 1, "description": "numbers, nested as the input's shape is"}
_INPUT: Json = {"x": _NESTED, "image": {"type": "string", "description": "PNG or JPEG in base64"}}
_LABEL: Json = {"type": "string", "minLength": 1, "maxLength": 128}
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 256}
_CHECKPOINT = _object({"id": _WHOLE, "at": _NUMBER, "examples_seen": _WHOLE})
_SNAPSHOT = _object({"version": _WHOLE, "published_at": _NUMBER, "examples_seen": _WHOLE})
_MODEL = _object(
    {
        "version": _WHOLE,
        "examples_seen": _WHOLE,
        "bias_version": _WHOLE,
        "published_at": _NUMBER,
        "age_seconds": _NUMBER,
    }
)
_TENSOR = _object(
    {"name": _WORD, "datatype": _WORD, "shape": _list(_WHOLE)}, {"data": {"type": "array"}, "parameters": _OBJECT}
)
_TENSOR_METADATA = _object({"name": _WORD, "datatype": _WORD, "shape": _list(_WHOLE)})

SCHEMAS: Json = {
    "Anything": _OBJECT,
    "Error": _object({"error": _object({"code": _WORD, "message": _WORD})}),
    "V2Error": _object({"error": _WORD, "code": _WORD}),
    "PredictRequest": _object(
        {"instances": _list({"anyOf": [_NESTED, _object({}, _INPUT)]}, minItems=1)},
        {"ids": _list({"anyOf": [_ID, {"type": "null"}]})},
    ),
    "Predictions": _object(
        {
            "predictions": _list(
                _object(
                    {
                        "label": _MAYBE_WORD,
                        "probability": _MAYBE_NUMBER,
                        "scores": {"type": "object", "additionalProperties": _NUMBER},
                    },
                    {"id": _MAYBE_WORD},
                )
            ),
            "model": _MODEL,
        }
    ),
    "ExamplesRequest": _object(
        {
            "examples": _list(
                _object(
                    {"label": _LABEL},
                    _INPUT | {"id": _ID, "split": {"enum": ["train", "eval"]}, "group": _LABEL},
                ),
                minItems=1,
            )
        }
    ),
    "Accepted": _object({"accepted": _WHOLE}),
    "LabelRequest": _object({"id": _ID, "label": _LABEL}),
    "Labelled": _object(
        {"accepted": _WHOLE, "id": _WORD},
        {"predicted": _MAYBE_WORD, "model_version": _WHOLE, "delay_seconds": _NUMBER, "repeated": {"type": "boolean"}},
    ),
    "Status": _object(
        {
            "state": {"enum": ["learning", "idle", "paused", "stopped"]},
            "learner": {"enum": ["up", "starting", "away", "stopped", "elsewhere"]},
            "reason": _MAYBE_WORD,
            "examples_seen": _WHOLE,
            "records_rejected": _WHOLE,
            "stream": _object({"url": _MAYBE_WORD, "positions": _OBJECT, "lag": {"type": ["integer", "null"]}}),
            "classes": _list(_WORD),
            "groups": _list(
                _object(
                    {
                        "name": _WORD,
                        "classes": _list(_WORD),
                        "accuracy": _object({"prequential": _MAYBE_NUMBER, "eval": _MAYBE_NUMBER}),
                        "forgetting": _MAYBE_NUMBER,
                    }
                )
            ),
            "held_out_at": {"type": ["integer", "null"]},
            "learning_rate": _MAYBE_NUMBER,
            "bias": _object({"version": _WHOLE, "group": _MAYBE_WORD, "alpha": _NUMBER, "beta": _NUMBER}),
            "buffer": _object({"capacity": _WHOLE, "examples": _WHOLE, "by_class": _OBJECT}),
            "checkpoint": {"anyOf": [_CHECKPOINT, {"type": "null"}]},
            "snapshot": {"anyOf": [_SNAPSHOT, {"type": "null"}]},
        },
        {"labels": _OBJECT, "serving": {"anyOf": [_MODEL, {"type": "null"}]}},
    ),
    "History": _object(
        {
            "examples": _list(_WHOLE),
            "at": _list(_MAYBE_NUMBER),
            "learning_rate": _list(_MAYBE_NUMBER),
            "loss": _object({"stream": _list(_MAYBE_NUMBER), "replay": _list(_MAYBE_NUMBER)}),
            "groups": {
                "type": "object",
                "additionalProperties": _object(
                    {
                        "from": _WHOLE,
                        "prequential": _list(_MAYBE_NUMBER),
                        "eval": _list(_MAYBE_NUMBER),
                        "forgetting": _list(_MAYBE_NUMBER),
                        "predicted": _list(_WHOLE),
                        "seen": _list(_WHOLE),
                    }
                ),
            },
            "marks": _list(
                _object({"examples": _WHOLE, "kind": _WORD}, {"labels": _list(_WORD), "cause": _WORD, "group": _WORD})
            ),
        }
    ),
    "Confusion": _object(
        {
            "source": {"enum": ["prequential", "eval"]},
            "answers": _WHOLE,
            "labels": _list(_WORD),
            "counts": _list(_list({"type": ["integer", "null"]}, minItems=3, maxItems=3)),
        }
    ),
    "BufferPage": _object(
        {
            "examples": _list(
                _object(
                    {
                        "slot": _WHOLE,
                        "label": _WORD,
                        "id": _MAYBE_WORD,
                        "loss": _NUMBER,
                        "arrival": _WHOLE,
                        "age": _WHOLE,
                    },
                    {"input": _object({"shape": _list(_WHOLE), "dtype": _WORD, "bytes": _WORD})},
                )
            ),
            "next": {"type": ["integer", "null"]},
            "total": _WHOLE,
        }
    ),
    "Erased": _object({"erased": _WHOLE, "checkpoint": _CHECKPOINT}, {"pending_predictions": _WHOLE}),
    "Done": _object({}, {"state": _WORD, "checkpoint": _CHECKPOINT, "bias": _OBJECT}),
    "Alive": _object({"status": _WORD}),
    "Ready": _object({"ready": {"type": "boolean"}}, {"reason": _MAYBE_WORD, "serving": {"type": "boolean"}}),
    "ServerMetadata": _object({"name": _WORD, "version": _WORD, "extensions": _list(_WORD)}),
    "ModelMetadata": _object(
        {
            "name": _WORD,
            "versions": _list(_WORD),
            "platform": _WORD,
            "inputs": _list(_TENSOR_METADATA),
            "outputs": _list(_TENSOR_METADATA),
        }
    ),
    "InferRequest": _object(
        {"inputs": _list(_TENSOR, minItems=1, maxItems=1)},
        {"id": _WORD, "parameters": _OBJECT, "outputs": _list(_object({"name": _WORD}, {"parameters": _OBJECT}))},
    ),
    "InferResponse": _object(
        {"model_name": _WORD, "model_version": _WORD, "outputs": _list(_TENSOR)}, {"id": _WORD, "parameters": _OBJECT}
    ),
}
