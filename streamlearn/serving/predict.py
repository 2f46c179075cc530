"""POST /v1/predict."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import numpy as np

from streamlearn.learner import Answers
from streamlearn.records.record import Array
from streamlearn.serving.bodies import read_instances
from streamlearn.serving.joining import Joiner
from streamlearn.serving.labels import PendingLabels, Prediction
from streamlearn.serving.messages import HttpError, Request, Response, json_answer
from streamlearn.settings.http import HttpSettings
from streamlearn.settings.limits import Limits

TOP_K = 5
BESIDE_BYTES = 64 * 1024  # decoding a larger body must not hold up other requests


class Predict:
    def __init__(self, joiner: Joiner, labels: PendingLabels | None, settings: HttpSettings, limits: Limits) -> None:
        self._joiner, self._labels, self._settings, self._limits = joiner, labels, settings, limits

    async def __call__(self, request: Request) -> Response:
        top_k = request.number("top_k", TOP_K, 1, 1_000_000)
        model = self._joiner.models.current
        arguments = (request, model, self._limits, self._settings.max_instances)
        if len(request.body) > BESIDE_BYTES:
            inputs = await asyncio.get_running_loop().run_in_executor(None, read_instances, *arguments)
        else:
            inputs = read_instances(*arguments)
        ids = self._ids(request, len(inputs))
        served, answers = await self._joiner.ask(_stacked(inputs))
        predictions = described(answers, top_k)
        if ids is not None:
            assert self._labels is not None
            await self._labels.remember(
                [
                    Prediction(id, input, one["label"], one["probability"], served.version)
                    for id, input, one in zip(ids, inputs, predictions, strict=True)
                    if id is not None
                ]
            )
            for id, one in zip(ids, predictions, strict=True):
                one["id"] = id
        return json_answer({"predictions": predictions, "model": served.facts()})

    def _ids(self, request: Request, count: int) -> list[str | None] | None:
        """In the body of JSON, for one raw input in X-Id: what a label that comes later will name."""
        given: Any = [request.header(b"x-id")] if b"x-id" in request.headers else None
        if given is None and request.content_type in ("application/json", "") and b'"ids"' in request.body:
            given = request.json().get("ids")
        if given is None:
            return None
        if self._labels is None:
            raise HttpError(
                409, "no-stream", "this server follows snapshots only: ids are for the learner's own daemon"
            )
        if not isinstance(given, list) or len(given) != count:
            raise HttpError(422, "bad-ids", f"ids must be a list of {count}, one for each instance")
        for id in given:
            if id is not None and not (
                isinstance(id, str) and 0 < len(id.encode("utf-8", "surrogatepass")) <= self._limits.id_bytes
            ):
                raise HttpError(
                    422, "bad-ids", f"an id must be a string of up to {self._limits.id_bytes} bytes, or null"
                )
        return given


def _stacked(inputs: list[Array]) -> Array:
    first = inputs[0]
    if len(inputs) == 1:
        return first[np.newaxis]
    if any(other.shape != first.shape or other.dtype != first.dtype for other in inputs):
        raise HttpError(422, "wrong-shape", "the instances differ in shape or dtype")
    stacked: Any = np.stack(inputs)
    return cast(Array, stacked)


def described(answers: Answers, top_k: int) -> list[dict[str, Any]]:
    """For each input the best class and the `top_k` best, best first."""
    if not answers.classes:
        return [{"label": None, "probability": None, "scores": {}} for _ in answers.labels]
    classes, shares = answers.classes, answers.probabilities
    best = np.argsort(-shares, axis=1, kind="stable")[:, :top_k].tolist()
    described = []
    for label, row, order in zip(answers.labels, shares.tolist(), best, strict=True):
        scores = {classes[place]: row[place] for place in order}
        described.append({"label": label, "probability": row[order[0]], "scores": scores})
    return described
