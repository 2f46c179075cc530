"""How things are counted: over processes that die, over checkpoints, over class groups that grow old."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from streamlearn.daemon.core import Core
from streamlearn.daemon.group_metrics import OLDER, OWN_SERIES, GroupMetrics, labels_of
from streamlearn.daemon.timing import TimedLearner
from streamlearn.metrics.catalogue import METRICS
from streamlearn.metrics.exposition import text
from streamlearn.metrics.histogram import Histogram
from streamlearn.metrics.ledger import Ledger
from streamlearn.metrics.server_numbers import ServerNumbers, file_of
from streamlearn.metrics.values import Values
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.settings.daemon import Settings
from tests.metrics.prometheus import check_metrics, families, series, value


def shown(numbers: ServerNumbers) -> str:
    values = Values()
    numbers.add_to(values)
    return text(values, "")[0].decode()


def test_a_histogram_counts_up_to_and_including_each_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 1.0, 7.0):
        histogram.observe(seconds)
    assert histogram.plain() == [2, 2, 1, pytest.approx(8.65)]


def test_a_step_is_timed_in_less_than_a_microsecond() -> None:
    histogram = Histogram(METRICS["streamlearn_step_duration_seconds"].buckets)

    def once() -> float:
        begun = time.perf_counter()
        for _ in range(20_000):
            histogram.observe(0.0013)
        return (time.perf_counter() - begun) / 20_000

    assert min(once() for _ in range(5)) < 1e-6


def test_a_ledger_begins_at_zero_and_never_falls_when_a_key_changes_its_label() -> None:
    ledger: Ledger[str, str] = Ledger()
    ledger.begin({"a": 100, "b": 7})
    assert ledger.book({"a": 103, "b": 7}, {"a": "a", "b": "b"}) == {"a": 3, "b": 0}
    assert ledger.book({"a": 105, "b": 9, "c": 4}, {"a": OLDER, "b": "b", "c": "c"}) == {OLDER: 2, "b": 2, "c": 4}
    assert ledger.book({"a": 106, "b": 10}, {"a": OLDER, "b": OLDER}) == {OLDER: 4}
    assert ledger.book({"nobody's": 5}, {}) == {}


# ---------------------------------------------------------------------- servers


def test_several_servers_are_told_as_one_and_one_that_died_is_not_forgotten(tmp_path: Path) -> None:
    first, second = (ServerNumbers(["/v1/predict", "/metrics"], tmp_path, slot) for slot in (0, 1))
    place = first.place["/v1/predict"]
    for _ in range(3):
        first.answered(place, 200, 0.004)
    second.answered(place, 503, 2.0)
    second.refused(413)
    second.batch(5)
    second.label_delay(30.0)
    again = ServerNumbers(["/v1/predict", "/metrics"], tmp_path, 1)  # takes the place of the second
    again.answered(place, 200, 0.004)
    for asked in (first, again):
        found = shown(asked)
        assert value(found, "streamlearn_http_requests_total", route="/v1/predict", code="200") == 4
        assert value(found, "streamlearn_http_requests_total", route="/v1/predict", code="503") == 1
        assert value(found, "streamlearn_http_requests_total", route="other", code="413") == 1
        assert value(found, "streamlearn_http_requests_total", route="/metrics", code="200") == 0
        assert value(found, "streamlearn_http_request_duration_seconds_count", route="/v1/predict") == 5
        assert value(found, "streamlearn_http_request_duration_seconds_bucket", route="/v1/predict", le="0.005") == 4
        assert value(found, "streamlearn_predict_batch_size_sum") == 5
        assert value(found, "streamlearn_label_delay_seconds_count") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server-0", "server-1"]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_what_is_served_is_that_of_the_server_furthest_behind_among_those_alive(tmp_path: Path) -> None:
    numbers = ServerNumbers(["/"], tmp_path, 0)
    ServerNumbers(["/"], tmp_path, 1).tell(7, 70.0)
    numbers.tell(9, 90.0)
    assert value(shown(numbers), "streamlearn_snapshot_version") == 7
    cells = np.memmap(file_of(tmp_path, 1), "d")
    cells[0] = 2**22 + 1  # no such process
    cells.flush()
    found = shown(numbers)
    assert value(found, "streamlearn_snapshot_version") == 9
    assert value(found, "streamlearn_snapshot_published_timestamp_seconds") == 90.0
    assert value(found, "streamlearn_servers") == 1


def test_processor_time_of_servers_together_never_falls(tmp_path: Path) -> None:
    name = "streamlearn_process_cpu_seconds_total"
    first = ServerNumbers(["/"], tmp_path)
    first.tell(1, 1.0)
    before = value(shown(first), name, process="server")
    second = ServerNumbers(["/"], tmp_path)  # takes its place
    assert value(shown(second), name, process="server") == before > 0
    second.tell(1, 1.0)
    assert value(shown(second), name, process="server") == pytest.approx(before + time.process_time(), abs=0.1)


def test_where_no_file_can_be_made_only_the_sum_is_lost() -> None:
    numbers = ServerNumbers(["/"], Path("/dev/full"))
    numbers.answered(1, 200, 0.1)
    assert numbers.not_shared
    assert value(shown(numbers), "streamlearn_http_requests_total", route="/", code="200") == 1


def test_a_request_is_counted_in_a_few_microseconds_at_most(tmp_path: Path) -> None:
    numbers = ServerNumbers([f"/{n}" for n in range(30)], tmp_path)

    def once() -> float:
        begun = time.perf_counter()
        for _ in range(10_000):
            numbers.answered(3, 200, 0.0013)
        return (time.perf_counter() - begun) / 10_000

    assert min(once() for _ in range(5)) < 3e-6  # a request takes 150


# ---------------------------------------------------------------------- class groups


def core_with(groups: int, classes: int, each: int = 3) -> Core:
    """A core that has learned so many groups of so many classes."""
    learner = {"model": "linear", "buffer_size": 400, "bias": "none"}
    settings = Settings.model_validate({"learner": learner})
    core = Core(settings, TimedLearner(settings.learner), lambda record, error: None)
    learn(core, range(groups), classes, each)
    return core


def learn(core: Core, groups: range, classes: int, each: int) -> None:
    rng = np.random.default_rng(0)
    for group in groups:
        for split in ("train", "eval"):
            for number in range(each * classes):
                label = f"{group}-{number % classes}"
                point = rng.normal(group, 1.0, 4).astype(np.float32)
                core.take(encode_example(point, label, group=f"g{group}", split=split))
            core.take(encode_event("flush"))


def told(metrics: GroupMetrics) -> str:
    values = Values()
    metrics.add_to(values)
    return text(values, "")[0].decode()


def test_the_newest_groups_have_their_own_series_and_the_rest_share_one() -> None:
    names = [f"g{n}" for n in range(13)]
    labels = labels_of(names)
    assert [labels[name] for name in names[:3]] == [OLDER] * 3
    assert [labels[name] for name in names[3:]] == names[3:]
    assert labels_of(["only"]) == {"only": "only"}


def test_300_classes_in_40_groups_make_a_bounded_number_of_series_quickly() -> None:
    few, many = GroupMetrics(core_with(12, 2)), GroupMetrics(core_with(40, 8))
    assert len(series(told(few))) == len(series(told(many)))
    begun = time.perf_counter()
    found = told(many)
    assert time.perf_counter() - begun < 0.2
    assert len(series(found)) <= 12 * (OWN_SERIES + 1) + 2
    check_metrics(found)


def test_older_groups_are_pooled() -> None:
    core = core_with(14, 2, each=10)
    metrics = GroupMetrics(core)
    tallies = [core.accuracy.tallies["eval"][f"g{n}"] for n in range(4)]
    counts = [sum(tally.recent[place] for tally in tallies) for place in (0, 1)]
    found = told(metrics)
    assert value(found, "streamlearn_accuracy_ratio", class_group=OLDER, source="eval") == counts[1] / counts[0]
    alone = tallies[0].now
    assert value(found, "streamlearn_oldest_group_accuracy_ratio", class_group="g0", source="eval") == alone
    remembered = {
        sample.labels["class_group"]: sample.value for sample in families(found)["streamlearn_buffer_examples"].samples
    }
    assert len(remembered) == OWN_SERIES + 1
    assert sum(remembered.values()) == len(core.learner.buffer or ())
    forgotten = [core.accuracy.forgetting(f"g{n}") for n in range(4)]
    mean = sum(number for number in forgotten if number is not None) / 4
    assert value(found, "streamlearn_forgetting_ratio", class_group=OLDER) == pytest.approx(mean)


def test_counters_begin_at_zero_and_no_rate_jumps_when_a_group_grows_old() -> None:
    core = core_with(10, 2)
    metrics = GroupMetrics(core)
    name, source = "streamlearn_predictions_evaluated_total", "eval"
    assert value(told(metrics), name, class_group="g0", source=source) == 0
    assert value(told(metrics), name, class_group=OLDER, source=source) == 0
    learn(core, range(1), 2, 3)  # six more of the oldest group
    assert value(told(metrics), name, class_group="g0", source=source) == 6
    learn(core, range(10, 12), 2, 3)
    found = told(metrics)
    assert not any(("class_group", "g0") in labels for n, labels in series(found) if "oldest" not in n)
    assert value(found, name, class_group=OLDER, source=source) == 0
    assert value(found, name, class_group="g11", source=source) == 6
    learn(core, range(2), 2, 3)
    assert value(told(metrics), name, class_group=OLDER, source=source) == 12


def test_nothing_learned_yet_is_told_as_well() -> None:
    found = told(GroupMetrics(core_with(0, 0)))
    assert value(found, "streamlearn_buffer_examples", class_group=OLDER) == 0
    assert {"streamlearn_accuracy_ratio", "streamlearn_bias_beta"} <= families(found).keys()
    assert not any(math.isnan(number) for number in series(found).values())
