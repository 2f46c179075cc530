"""A Learner that knows how long things take. The learner itself knows no clock."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from streamlearn.learner import Learner, Report
from streamlearn.metrics.catalogue import buckets_of
from streamlearn.metrics.histogram import Histogram
from streamlearn.records.record import Array

_learn = Learner.learn


class TimedLearner(Learner):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.step_seconds = Histogram(buckets_of("step_duration_seconds"))
        self.refit_seconds = Histogram(buckets_of("bias_refit_duration_seconds"))

    def learn(
        self,
        inputs: Array,
        labels: Sequence[str],
        *,
        groups: Sequence[str | None] | None = None,
        ids: Sequence[str | None] | None = None,
        predict_first: bool = False,
    ) -> Report:
        """Fits of the bias on the way have a histogram of their own. Written for speed: it is there at every step."""
        refits = self.refit_seconds.total
        began = perf_counter()
        report = _learn(self, inputs, labels, groups=groups, ids=ids, predict_first=predict_first)
        took = perf_counter() - began - self.refit_seconds.total + refits
        if report.steps == 1:
            self.step_seconds.observe(took)
        else:  # none, because it was undone, or several, where a class group begins in the middle
            for _ in range(report.steps):
                self.step_seconds.observe(took / report.steps)
        return report

    def refit_bias(self, cause: str = "request", report: Report | None = None) -> None:
        began, version = perf_counter(), self.bias.version
        super().refit_bias(cause, report)
        if self.bias.version != version:
            self.refit_seconds.observe(perf_counter() - began)
