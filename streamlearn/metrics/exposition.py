"""Values -> the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from streamlearn.metrics.catalogue import METRICS, Metric
from streamlearn.metrics.values import Series, Values

PLAIN_TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text"


class _Values(Collector):
    def __init__(self, values: Values) -> None:
        self._values = values

    def collect(self) -> Iterator[Family]:
        for name, metric in METRICS.items():
            if name in self._values.plain:
                yield _family(metric, self._values.plain[name])


def _family(metric: Metric, all_series: list[Series]) -> Family:
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.about, labels=metric.labels)
        bounds = [_bound(bound) for bound in (*metric.buckets, float("inf"))]
        for labels, found in all_series:
            assert isinstance(found, list)
            *counts, total = found
            histogram.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
        return histogram
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.about, labels=metric.labels)
    for labels, found in all_series:
        assert not isinstance(found, list)
        family.add_metric(labels, found)
    return family


def _bound(bound: float) -> str:
    """As a label's value; OpenMetrics wants a whole number to show its point."""
    return "+Inf" if bound == float("inf") else str(bound)


def text(values: Values, accept: str) -> tuple[bytes, str]:
    """The text and its content type: OpenMetrics for those who ask for it, as Prometheus does."""
    write: Callable[[Collector], bytes] = openmetrics.generate_latest if OPENMETRICS in accept else generate_latest
    return write(_Values(values)), openmetrics.CONTENT_TYPE_LATEST if OPENMETRICS in accept else PLAIN_TEXT
