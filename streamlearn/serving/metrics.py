"""GET /metrics: the whole daemon as one target. Any server answers for all of them, and asks the learner."""

from __future__ import annotations

import asyncio
import os

import torch

from streamlearn.logs import event_logger
from streamlearn.metrics.catalogue import STATES
from streamlearn.metrics.exposition import text
from streamlearn.metrics.process import add_memory, cpu_seconds
from streamlearn.metrics.server_numbers import ServerNumbers
from streamlearn.metrics.values import Values
from streamlearn.run_folder import RunFolder, read_json
from streamlearn.serving.labels import PendingLabels
from streamlearn.serving.learner_link import LearnerAway, LearnerLink
from streamlearn.serving.messages import HttpError, Request, Response
from streamlearn.serving.model import Models
from streamlearn.version import VERSION

log = event_logger("metrics")

LONGEST_WAIT = 4.0  # for the learner, whose step may be long
TIMEOUT_HEADER = b"x-prometheus-scrape-timeout-seconds"


class Metrics:
    """Without `run`, of a server that follows snapshots: what it serves, and nothing of a learner."""

    def __init__(
        self,
        numbers: ServerNumbers,
        models: Models,
        run: RunFolder | None,
        link: LearnerLink | None,
        labels: PendingLabels | None,
    ) -> None:
        self._numbers, self._models, self._run, self._link, self._labels = numbers, models, run, link, labels
        if numbers.not_shared is not None:
            log.warning("what this server counts is not shared with the others", error=numbers.not_shared)

    def tell(self) -> None:
        """For when another server is asked."""
        served = self._models.current
        self._numbers.tell(served.version if served else 0, served.published_at if served else 0.0)

    async def __call__(self, request: Request) -> Response:
        values = await self._learner(_patience(request))
        self.tell()
        if self._labels is not None:
            await self._add_labels(values, self._labels)
        accept = request.headers.get(b"accept", b"").decode("latin-1")
        # Beside the event loop: a thousand lines take milliseconds, and predictions should not wait for them.
        content, kind = await asyncio.get_running_loop().run_in_executor(None, self._text, values, accept)
        return Response(content, content_type=kind.encode(), headers={"Cache-Control": "no-store"})

    async def _learner(self, seconds: float) -> Values:
        """A learner that does not answer is `away`, and its series end until it is back.

        To repeat the last that was heard would be wrong with several servers, who have not heard the same: a counter
        that goes back and forth is read as a process that starts again and again.
        """
        if self._link is None:
            return Values()
        try:
            return Values(await self._link.ask({"do": "metrics"}, seconds))
        except (LearnerAway, HttpError):
            values = Values()
            state = "stopped" if self._link.stopped()[0] else "away"
            values.add_each("state", ((name, int(name == state)) for name in STATES))
            return values

    async def _add_labels(self, values: Values, labels: PendingLabels) -> None:
        try:
            counts = await labels.counts()
        except HttpError:
            return  # the database is busy: the next scrape finds it
        values.add("labels_pending", counts["pending"])
        values.add("labels_expired_total", counts["expired"])

    def _text(self, values: Values, accept: str) -> tuple[bytes, str]:
        values.add("build_info", 1, VERSION, torch.__version__)
        add_memory(values, "server", self._numbers.add_to(values))
        if self._run is not None:
            self._add_supervisor(values, read_json(self._run.supervisor) or {})
        return text(values, accept)

    def _add_supervisor(self, values: Values, told: dict[str, float]) -> None:
        """It started this process, and has written down what it did."""
        pid = os.getppid()
        for process in ("learner", "server"):
            values.add("process_restarts_total", told.get(f"{process}_restarts", 0), process)
        if told.get("pid") == pid:
            values.add("process_start_time_seconds", told["started_at"], "supervisor")
            if (used := cpu_seconds(pid)) is not None:
                values.add("process_cpu_seconds_total", used, "supervisor")
            add_memory(values, "supervisor", [pid])


def _patience(request: Request) -> float:
    """Prometheus says how long it waits; half of it may go to the learner."""
    try:
        wanted = float(request.headers.get(TIMEOUT_HEADER, b"10"))
    except ValueError:
        return LONGEST_WAIT
    return max(0.1, min(LONGEST_WAIT, wanted / 2)) if wanted == wanted else LONGEST_WAIT
