"""The Open Inference Protocol V2, as KServe, Triton and MLServer speak it."""

from __future__ import annotations

import asyncio

from streamlearn.serving.admin import Admin
from streamlearn.serving.joining import Joiner
from streamlearn.serving.messages import HttpError, Request, Response, json_answer
from streamlearn.serving.model import Served
from streamlearn.serving.v2_tensors import inference_answer, read_inference
from streamlearn.settings.http import HttpSettings
from streamlearn.version import VERSION

MODEL = "streamlearn"
EXTENSIONS = ["binary_tensor_data"]
BESIDE_BYTES = 64 * 1024


class V2:
    def __init__(self, joiner: Joiner, admin: Admin, settings: HttpSettings) -> None:
        self._joiner, self._admin, self._settings = joiner, admin, settings

    async def server(self, request: Request) -> Response:
        return json_answer({"name": "streamlearn", "version": VERSION, "extensions": EXTENSIONS})

    async def live(self, request: Request) -> Response:
        return json_answer({"live": True})

    async def ready(self, request: Request) -> Response:
        reason = self._admin.serving()
        return json_answer({"ready": True}) if reason is None else _not_ready(reason)

    async def model_ready(self, request: Request) -> Response:
        reason = self._admin.serving()
        if reason is not None:
            return _not_ready(reason)
        served = self._chosen(request)
        if served.shape is None:
            return _not_ready("nothing has been learned yet")
        return json_answer({"name": MODEL, "ready": True})

    async def model(self, request: Request) -> Response:
        served = self._chosen(request)
        shape = [-1] if served.shape is None else [-1, *served.shape]
        datatype = "FP32" if served.dtype is not None and served.dtype.kind == "f" else "UINT8"
        return json_answer(
            {
                "name": MODEL,
                "versions": [str(version) for version in self._joiner.models.kept],
                "platform": "streamlearn",
                "inputs": [{"name": "input", "datatype": datatype, "shape": shape}],
                "outputs": [
                    {"name": "label", "datatype": "BYTES", "shape": [-1]},
                    {"name": "probability", "datatype": "FP32", "shape": [-1]},
                    {"name": "probabilities", "datatype": "FP32", "shape": [-1, len(served.classes)]},
                    {"name": "classes", "datatype": "BYTES", "shape": [len(served.classes)]},
                ],
                "parameters": {"version": str(served.version), "examples_seen": served.examples_seen},
            }
        )

    async def infer(self, request: Request) -> Response:
        served = self._chosen(request)
        if served.shape is None:
            raise HttpError(409, "not-ready", "nothing has been learned yet")
        arguments = (request, served, self._settings.max_instances)
        if len(request.body) > BESIDE_BYTES:
            asked = await asyncio.get_running_loop().run_in_executor(None, read_inference, *arguments)
        else:
            asked = read_inference(*arguments)
        version = served.version if "version" in request.places else None
        used, answers = await self._joiner.ask(asked.inputs, version)
        return inference_answer(MODEL, asked, used, answers)

    def _chosen(self, request: Request) -> Served:
        if request.places["model"] != MODEL:
            raise HttpError(404, "unknown-model", f"there is one model here, {MODEL}")
        models = self._joiner.models
        version = request.places.get("version")
        if version is None:
            if models.current is None:
                raise HttpError(503, "no-snapshot", "nothing has been published yet", {"Retry-After": "1"})
            return models.current
        known = int(version) if version.isascii() and version.isdecimal() and len(version) < 19 else -1
        if known not in models.kept:
            there = ", ".join(map(str, models.kept)) or "none"
            raise HttpError(404, "unknown-version", f"this version is not served; there are: {there}")
        return models.kept[known]


def _not_ready(reason: str) -> Response:
    return json_answer({"ready": False, "error": reason, "code": "not-ready"}, 503, {"Retry-After": "1"})
