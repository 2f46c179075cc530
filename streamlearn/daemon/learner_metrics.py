"""What the learner has to tell Prometheus, gathered between two records when somebody asks: else it costs nothing."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.group_metrics import GroupMetrics
from streamlearn.daemon.status import state
from streamlearn.metrics.catalogue import STATES
from streamlearn.metrics.process import add_memory
from streamlearn.metrics.values import Values

if TYPE_CHECKING:
    from streamlearn.daemon.core import Core
    from streamlearn.daemon.learning import Learning

NOT_KNOWN = float("nan")


class LearnerMetrics:
    """Made when the state has been restored: counters begin at zero there (`Ledger` says why)."""

    def __init__(self, learning: Learning) -> None:
        self._learning = learning
        self._groups = GroupMetrics(learning.core)
        self._before = _counted(learning.core)

    def collect(self) -> dict[str, Any]:
        learning, values = self._learning, Values()
        now = state(learning)
        values.add_each("state", ((name, int(name == now)) for name in STATES))
        values.add("blocked", int(learning.reason is not None))
        values.add("process_start_time_seconds", learning.started_at, "learner")
        values.add("process_cpu_seconds_total", time.process_time(), "learner")
        add_memory(values, "learner", [os.getpid()])
        self._add_counters(values)
        self._add_stream(values)
        self._add_learning(values)
        self._groups.add_to(values)
        self._add_checkpoints(values)
        return values.plain

    def _add_counters(self, values: Values) -> None:
        for (name, *labels), count in _counted(self._learning.core).items():
            values.add(name, max(0, count - self._before[name, *labels]), *labels)

    def _add_stream(self, values: Values) -> None:
        learning = self._learning
        position = learning.core.position
        values.add("dead_letters_sent_total", learning.letters_sent)
        values.add("dead_letter_failures_total", learning.letters_failed)
        values.add("last_record_timestamp_seconds", learning.core.last_timestamp / 1000)
        values.add_each("lag_records", ((str(part), lag) for part, lag in sorted(learning.lags.items())))
        offsets = sorted(position.offsets.items()) if position else ()
        values.add_each("position_offset", ((str(partition), offset) for partition, offset in offsets))

    def _add_learning(self, values: Values) -> None:
        core, learner = self._learning.core, self._learning.core.learner
        report = core.last_report
        values.add("examples_seen", core.counters.examples_learned)
        for source, loss in (("stream", report.loss_stream), ("replay", report.loss_replay)):
            values.add("loss", NOT_KNOWN if loss is None else loss, source)
        values.add("learning_rate", learner.decay.rate(learner.examples_seen))
        values.add("classes", len(learner.classes.index))
        values.add("buffer_capacity", learner.settings.buffer_size)
        values.add("step_duration_seconds", self._learning.learner.step_seconds)
        values.add("bias_refit_duration_seconds", self._learning.learner.refit_seconds)

    def _add_checkpoints(self, values: Values) -> None:
        learning, saver = self._learning, self._learning.saver
        values.add("checkpoints_total", saver.saved, "success")
        values.add("checkpoints_total", saver.failed, "failure")
        values.add("checkpoint_duration_seconds", learning.save_seconds)
        values.add("checkpoint_written_bytes", saver.last.bytes_written if saver.last else 0)
        values.add("checkpoint_last_success_timestamp_seconds", saver.last.created_at if saver.last else 0)
        values.add("checkpoint_interval_seconds", learning.settings.checkpoint.every_seconds)
        values.add("unsaved_records", saver.unsaved_records)
        values.add("restore_fallbacks_total", learning.fallbacks)


def _counted(core: Core) -> dict[tuple[str, ...], int]:
    """What the state has counted over its whole life."""
    counters = core.counters
    return {
        ("records_consumed_total",): counters.records_consumed,
        ("examples_learned_total",): counters.examples_learned,
        ("steps_total",): counters.steps,
        ("steps_discarded_total",): counters.steps_discarded,
        ("new_class_events_total",): counters.new_class_events,
        **{("records_rejected_total", reason): count for reason, count in counters.rejected.items()},
        **{("bias_refits_total", cause): count for cause, count in counters.refits.items()},
    }
