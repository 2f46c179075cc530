"""A Learner that knows how long things take. The learner itself knows no clock."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from streamlearn.learner import Learner, Report
from streamlearn.metrics.catalogue import buckets_of
from streamlearn.metrics.histogram import Histogram


class TimedLearner(Learner):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.step_seconds = Histogram(buckets_of("step_duration_seconds"))
        self.refit_seconds = Histogram(buckets_of("bias_refit_duration_seconds"))

    def learn(self, *arguments: Any, **more: Any) -> Report:
        """Fits of the bias on the way have a histogram of their own. Costs half a microsecond."""
        began, refits = perf_counter(), self.refit_seconds.total
        report = super().learn(*arguments, **more)
        if report.steps:
            each = (perf_counter() - began - self.refit_seconds.total + refits) / report.steps
            for _ in range(report.steps):
                self.step_seconds.observe(each)
        return report

    def refit_bias(self, cause: str = "request", report: Report | None = None) -> None:
        began, version = perf_counter(), self.bias.version
        super().refit_bias(cause, report)
        if self.bias.version != version:
            self.refit_seconds.observe(perf_counter() - began)
