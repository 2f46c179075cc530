"""All routes, and from a request to the one that answers it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from streamlearn.metrics.server_numbers import ServerNumbers
from streamlearn.run_folder import RunFolder
from streamlearn.serving.access import Access, Level
from streamlearn.serving.admin import Admin
from streamlearn.serving.appending import Appender
from streamlearn.serving.ingest import Ingest
from streamlearn.serving.joining import Joiner
from streamlearn.serving.labels import PendingLabels
from streamlearn.serving.learner_link import LearnerLink
from streamlearn.serving.live_page import Page
from streamlearn.serving.messages import HttpError, Request, Response, json_answer
from streamlearn.serving.metrics import Metrics
from streamlearn.serving.model import Models
from streamlearn.serving.openapi import description
from streamlearn.serving.predict import Predict
from streamlearn.serving.v2 import V2
from streamlearn.settings.daemon import Settings

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str  # {name} stands for one part
    level: Level
    handler: Handler


class App:
    """What one server process answers. Made inside a running event loop.

    With `follow`, a folder of snapshots that somebody else publishes: predictions only. `slot` is this server's among
    those of its daemon.
    """

    def __init__(self, settings: Settings, models: Models, *, follow: bool = False, slot: int = 0) -> None:
        http, limits = settings.http, settings.records.limits()
        run = RunFolder(settings.state_dir)
        self.models = models
        self._labels = None if follow else PendingLabels(run.labels, settings.labels)
        self._appender = None if follow else Appender(settings)
        self.joiner = Joiner(models, http.max_waiting, lambda size: self.numbers.batch(size))
        link = None if follow else LearnerLink(run)
        self.admin = Admin(link, models, self._labels, max(http.request_seconds - 0.5, 0.5))
        self._access = Access(http, None if follow else run.own_token())
        predict, v2 = Predict(self.joiner, self._labels, http, limits), V2(self.joiner, self.admin, http)
        page = Page()
        self.routes = [
            Route("GET", "/", Level.OPEN, page.index),
            Route("GET", "/page/{digest}/{file}", Level.OPEN, page.file),
            Route("POST", "/v1/predict", Level.READ, predict),
            Route("POST", "/v2/models/{model}/infer", Level.READ, v2.infer),
            Route("POST", "/v2/models/{model}/versions/{version}/infer", Level.READ, v2.infer),
            Route("GET", "/v2", Level.READ, v2.server),
            Route("GET", "/v2/health/live", Level.OPEN, v2.live),
            Route("GET", "/v2/health/ready", Level.OPEN, v2.ready),
            Route("GET", "/v2/models/{model}", Level.READ, v2.model),
            Route("GET", "/v2/models/{model}/ready", Level.OPEN, v2.model_ready),
            Route("GET", "/v2/models/{model}/versions/{version}", Level.READ, v2.model),
            Route("GET", "/v2/models/{model}/versions/{version}/ready", Level.OPEN, v2.model_ready),
            Route("GET", "/v1/status", Level.READ, self.admin.status),
            Route("GET", "/v1/history", Level.READ, self.admin.history),
            Route("GET", "/v1/confusion", Level.READ, self.admin.confusion),
            Route("GET", "/v1/buffer", Level.READ, self.admin.buffer),
            Route("GET", "/v1/buffer/{slot}/image", Level.READ, self.admin.image),
            Route("DELETE", "/v1/buffer", Level.ADMIN, self.admin.erase),
            Route("POST", "/v1/admin/{order}", Level.ADMIN, self.admin.order),
            Route("GET", "/v1/events", Level.READ, self.admin.events),
            Route("GET", "/healthz", Level.OPEN, self.admin.healthz),
            Route("GET", "/readyz", Level.OPEN, self.admin.readyz),
            Route("GET", "/openapi.json", Level.OPEN, _openapi),
            Route("GET", "/metrics", Level.READ, lambda request: self.metrics(request)),
        ]
        if self._appender is not None and self._labels is not None:
            ingest = Ingest(
                self._appender,
                self._labels,
                models,
                limits,
                http.max_instances,
                lambda late: self.numbers.label_delay(late),
            )
            self.routes += [
                Route("POST", "/v1/examples", Level.WRITE, ingest.examples),
                Route("POST", "/v1/labels", Level.WRITE, ingest.labels),
            ]
        paths = list(dict.fromkeys(route.path for route in self.routes))
        self.numbers = ServerNumbers(paths, None if follow else run.metrics, slot)
        self.metrics = Metrics(self.numbers, models, None if follow else run, link, self._labels)
        self._exact: dict[bytes, dict[str, Route]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        for path in paths:
            methods = {route.method: route for route in self.routes if route.path == path}
            if "GET" in methods:
                methods["HEAD"] = methods["GET"]
            if "{" in path:
                self._patterns.append((re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)), methods))
            else:
                self._exact[path.encode()] = methods

    async def __call__(self, request: Request) -> Response:
        route = self._route(request)
        request.route = self.numbers.place[route.path]
        self._access.check(request, route.level)
        return await route.handler(request)

    def _route(self, request: Request) -> Route:
        methods = self._exact.get(request.raw_path)
        if methods is None:
            methods = self._matched(request)
        route = methods.get(request.method)
        if route is None:
            allowed = ", ".join(methods)
            raise HttpError(405, "wrong-method", f"this path can be asked with {allowed}", {"Allow": allowed})
        return route

    def _matched(self, request: Request) -> dict[str, Route]:
        path = request.path.rstrip("/") if request.path.startswith("/v2") else request.path
        if found := self._exact.get(path.encode()):
            return found
        for pattern, methods in self._patterns:
            if match := pattern.fullmatch(path):
                request.places = match.groupdict()
                return methods
        raise HttpError(404, "unknown-path", "there is nothing at this path; /openapi.json says what there is")

    def close(self) -> None:
        if self._labels is not None:
            self._labels.close()
        if self._appender is not None:
            self._appender.close()


async def _openapi(request: Request) -> Response:
    return json_answer(description())


def models_of(folder: Path) -> Models:
    models = Models(folder)
    models.refresh()
    return models
