"""What one server counts, and the sum of what all of them have."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from streamlearn.metrics.catalogue import buckets_of
from streamlearn.metrics.cells import own_cells, read_cells
from streamlearn.metrics.process import is_alive
from streamlearn.metrics.values import Values

NO_ROUTE = "other"  # what no route answers: unknown paths, and what is refused before it is a request
CODES = (200, 304, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 431, 500, 503)
OTHER_CODE = "other"
AT_ONCE = {200, 503}  # exported from the start, for every route

_REQUESTS, _BATCHES, _DELAYS = map(
    buckets_of, ("http_request_duration_seconds", "predict_batch_size", "label_delay_seconds")
)
_PID, _STARTED, _CPU, _VERSION, _PUBLISHED, _FACTS = range(6)


def file_of(folder: Path, slot: int) -> Path:
    return folder / f"server-{slot}"


class ServerNumbers:
    """Layout: facts about the process; for each route its codes and durations; batch sizes; label delays.

    A histogram is its bucket counts, then the sum. All servers of a daemon have the same routes, so the same layout.
    """

    def __init__(self, routes: Sequence[str], folder: Path | None = None, slot: int = 0) -> None:
        self.routes = (NO_ROUTE, *routes)
        self._folder = folder
        self._code = {code: place for place, code in enumerate(CODES)}
        self._durations = len(CODES) + 1
        self._stride = self._durations + len(_REQUESTS) + 2
        self._batches = _FACTS + self._stride * len(self.routes)
        self._delays = self._batches + len(_BATCHES) + 2
        self._count = self._delays + len(_DELAYS) + 2
        self._path = None if folder is None else file_of(folder, slot)
        self.not_shared: str | None = None  # why the other servers cannot see what this one counts
        try:
            self._cells = own_cells(self._path, self._count)
        except OSError as error:
            self.not_shared = error.strerror or str(error)
            self._path, self._cells = None, own_cells(None, self._count)
        self._cpu_before = self._cells[_CPU]  # of those that had this place before
        self._cells[_PID], self._cells[_STARTED] = os.getpid(), time.time()
        self._cells[_VERSION] = self._cells[_PUBLISHED] = 0
        self.place = {route: place for place, route in enumerate(self.routes)}

    # ------------------------------------------------------------------ counting

    def answered(self, route: int, status: int, seconds: float) -> None:
        """A few hundred nanoseconds, with every request."""
        cells, start = self._cells, _FACTS + route * self._stride
        cells[start + self._code.get(status, len(CODES))] += 1
        start += self._durations
        cells[start + bisect_left(_REQUESTS, seconds)] += 1
        cells[start + len(_REQUESTS) + 1] += seconds

    def refused(self, status: int) -> None:
        """Before it was a request: it has no duration."""
        self._cells[_FACTS + self._code.get(status, len(CODES))] += 1

    def batch(self, size: int) -> None:
        self._observe(self._batches, _BATCHES, size)

    def label_delay(self, seconds: float) -> None:
        self._observe(self._delays, _DELAYS, seconds)

    def _observe(self, start: int, bounds: tuple[float, ...], value: float) -> None:
        self._cells[start + bisect_left(bounds, value)] += 1
        self._cells[start + len(bounds) + 1] += value

    def tell(self, version: int, published_at: float) -> None:
        """Now and then: what is served, and what it has cost so far."""
        self._cells[_VERSION], self._cells[_PUBLISHED] = version, published_at
        self._cells[_CPU] = self._cpu_before + time.process_time()

    # ------------------------------------------------------------------ telling

    def _all(self) -> list[Sequence[float]]:
        """Of every server there is or was, this one first."""
        others = [] if self._folder is None else sorted(self._folder.glob("server-*"))
        found = [read_cells(path, self._count) for path in others if path != self._path]
        return [self._cells.tolist(), *(cells for cells in found if cells is not None)]

    def add_to(self, values: Values) -> list[int]:
        """Says which processes serve."""
        every = self._all()
        total = [sum(column) for column in zip(*every, strict=True)]
        alive = [cells for cells in every if is_alive(int(cells[_PID]))]
        behind = min(alive, key=lambda cells: cells[_VERSION])
        values.add("snapshot_version", int(behind[_VERSION]))
        values.add("snapshot_published_timestamp_seconds", behind[_PUBLISHED])
        for route, place in self.place.items():
            start = _FACTS + place * self._stride
            for code, count in zip((*CODES, OTHER_CODE), total[start : start + self._durations], strict=True):
                if count or code in AT_ONCE or (route == NO_ROUTE and code == 404):
                    values.add("http_requests_total", count, route, str(code))
            duration = total[start + self._durations : start + self._stride]
            values.add("http_request_duration_seconds", duration, route)
        values.add("predict_batch_size", total[self._batches : self._delays])
        values.add("label_delay_seconds", total[self._delays :])
        values.add("servers", len(alive))
        values.add("process_start_time_seconds", max(cells[_STARTED] for cells in alive), "server")
        values.add("process_cpu_seconds_total", total[_CPU], "server")
        return [int(cells[_PID]) for cells in alive]
