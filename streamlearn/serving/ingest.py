"""POST /v1/examples and POST /v1/labels: examples that come over HTTP, at once or with their label later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlearn.records.decode import Decoder
from streamlearn.records.encode import encode_example
from streamlearn.records.headers import JSON, OCTETS, PICTURES, split_named
from streamlearn.records.json_body import body_id, body_input, body_text
from streamlearn.records.record import Example, Record
from streamlearn.serving.appending import Appender
from streamlearn.serving.bodies import dtype_of, is_picture, refusals_as_answers
from streamlearn.serving.joining import wrong_shape
from streamlearn.serving.labels import PendingLabels
from streamlearn.serving.messages import HttpError, Request, Response, json_answer
from streamlearn.serving.model import Models, Served
from streamlearn.settings.limits import Limits

_HEADERS = {
    b"x-label": "label",
    b"x-id": "id",
    b"x-split": "split",
    b"x-group": "group",
    b"x-shape": "shape",
    b"x-dtype": "dtype",
}


class Ingest:
    def __init__(
        self,
        appender: Appender,
        labels: PendingLabels,
        models: Models,
        limits: Limits,
        most_examples: int,
        delayed: Callable[[float], None],
    ) -> None:
        """`delayed` is told how late each label came, in seconds."""
        self._appender, self._labels, self._models = appender, labels, models
        self._limits, self._most, self._delayed = limits, most_examples, delayed
        self._decoder = Decoder(limits)

    async def examples(self, request: Request) -> Response:
        """Nothing of a request is appended unless all of it can be learned."""
        if b"x-label" in request.headers or request.content_type != JSON:
            records = [self._raw(request)]
        else:
            given = request.json().get("examples")
            if not isinstance(given, list) or not given:
                raise HttpError(422, "no-input", 'expected {"examples": [...]} with at least one')
            if len(given) > self._most:
                raise HttpError(413, "too-many-instances", f"{len(given):,} examples; at most {self._most:,} at once")
            records = [self._listed(example, place) for place, example in enumerate(given)]
        await self._appender.append(records)
        return json_answer({"accepted": len(records)})

    def _raw(self, request: Request) -> Record:
        """One input as it is; what the body does not say is in headers."""
        if is_picture(request):
            content_type = "image/png" if request.body.startswith(b"\x89PNG") else "image/jpeg"
        elif request.content_type in (OCTETS, JSON):
            content_type = request.content_type
        else:
            raise HttpError(
                415, "unknown-content-type", f"content-type can be {JSON}, {OCTETS}, {' or '.join(PICTURES)}"
            )
        headers = [("content-type", content_type.encode())]
        headers += [(name, request.headers[header]) for header, name in _HEADERS.items() if header in request.headers]
        record = Record(request.body, headers=tuple(headers))
        with refusals_as_answers():
            example = self._decoder.decode(record)
            if not isinstance(example, Example):
                raise HttpError(422, "unknown-event", "events come by the stream only")
            self._fits(example)
            return _encoded(example)

    def _listed(self, given: Any, place: int) -> Record:
        with refusals_as_answers(f"examples[{place}]: "):
            if not isinstance(given, dict):
                raise HttpError(422, "bad-json", f"examples[{place}] must be an object")
            label = body_text(given, "label", self._limits.label_bytes, "bad-label")
            if not label:
                raise HttpError(422, "no-label", f"examples[{place}] has no label")
            split = body_text(given, "split", 64, "bad-split")
            example = Example(
                body_input(given, None, dtype_of(self._models.current), self._limits),
                label,
                body_id(given, self._limits.id_bytes),
                body_text(given, "group", self._limits.group_bytes),
                "train" if split is None else split_named(split),
            )
            self._fits(example)
            return _encoded(example)

    def _fits(self, example: Example) -> None:
        """The learner would refuse it later; here somebody can still be told."""
        model: Served | None = self._models.current
        if model is not None and model.shape is not None:
            inputs = example.input[None]
            if example.input.shape != model.shape or example.input.dtype != model.dtype:
                raise wrong_shape(inputs, model)
        if example.input.nbytes > self._limits.record_bytes:
            raise HttpError(413, "too-large", f"the input has more than {self._limits.record_bytes:,} bytes")

    async def labels(self, request: Request) -> Response:
        content = request.json()
        with refusals_as_answers():
            id = body_id(content, self._limits.id_bytes)
            label = body_text(content, "label", self._limits.label_bytes, "bad-label")
        if not id or not label:
            raise HttpError(422, "bad-label", 'expected {"id": ..., "label": ...}, neither of them empty')
        prediction, before = await self._labels.waiting(id)
        if prediction is None:
            if before != label:
                raise HttpError(409, "labelled-already", "another label has come for this id before")
            return json_answer({"accepted": 0, "id": id, "repeated": True})  # a client that had no answer tries again
        with refusals_as_answers():
            record = encode_example(prediction.input, label, id=id)
        about = (
            ("streamlearn.predicted", (prediction.label or "").encode()),
            ("streamlearn.predicted.version", str(prediction.version).encode()),
            ("streamlearn.predicted.at", f"{prediction.at:.3f}".encode()),
        )
        await self._appender.append([record._replace(headers=record.headers + about)])
        delay = await self._labels.labelled(prediction, label)
        self._delayed(delay)
        return json_answer(
            {
                "accepted": 1,
                "id": id,
                "predicted": prediction.label,
                "model_version": prediction.version,
                "delay_seconds": round(delay, 3),
            }
        )


def _encoded(example: Example) -> Record:
    return encode_example(example.input, example.label, id=example.id, split=example.split, group=example.group)
