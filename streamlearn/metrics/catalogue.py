"""Every metric there is: its name, type, labels and meaning. What is not in this list is not exported.

Label sets are closed or bounded: never one series per class, per path or per client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PREFIX = "streamlearn_"
STATES = ("learning", "idle", "paused", "stopped", "away")

_STEP = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_REFIT = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
_SAVE = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_REQUEST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BATCH = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
_DELAY = (0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()  # upper bounds; one more, +Inf, is understood


def _counter(name: str, about: str, *labels: str) -> Metric:
    return Metric(f"{PREFIX}{name}_total", "counter", about, labels)


def _gauge(name: str, about: str, *labels: str) -> Metric:
    return Metric(PREFIX + name, "gauge", about, labels)


def _histogram(name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(PREFIX + name, "histogram", about, labels, buckets)


_GROUP = "class_group"

_LEARNER = (
    _gauge("blocked", "1 while something keeps it from learning: the stream is away, or nothing can be saved."),
    _counter("records_consumed", "Records taken from the stream."),
    _counter("records_rejected", "Records refused, by reason.", "reason"),
    _counter("dead_letters_sent", "Dead letters written."),
    _counter("dead_letter_failures", "Dead letters that could not be written at the first try, and each try after."),
    _counter("examples_learned", "Examples learned."),
    _gauge("examples_seen", "Examples learned in the whole life of the state: falls when an older one is restored."),
    _counter("steps", "Training steps."),
    _counter("steps_discarded", "Steps undone because something in them was not finite."),
    _histogram("step_duration_seconds", "One step: answering first, replay, gradient, buffer.", _STEP),
    _gauge("loss", "Of the last step.", "source"),
    _gauge("learning_rate", "Of the next step."),
    _gauge("lag_records", "Records on the stream that were not taken yet.", "partition"),
    _gauge("position_offset", "The offset of the next record to take.", "partition"),
    _gauge("last_record_timestamp_seconds", "When the newest record taken was appended; 0 before the first."),
    _counter("predictions_evaluated", "Answers held against their label, by the group of that.", _GROUP, "source"),
    _counter("predictions_correct", "Those that were right.", _GROUP, "source"),
    _gauge("accuracy_ratio", "Of the last answers (prequential), of the last round (eval).", _GROUP, "source"),
    _gauge("oldest_group_accuracy_ratio", "accuracy_ratio of the group that came first.", _GROUP, "source"),
    _gauge("forgetting_ratio", "The best accuracy so far minus the one now; of `older` groups the mean.", _GROUP),
    _counter("predicted_group", "Answers by the group of the class they name.", _GROUP),
    _gauge("classes", "Classes known."),
    _counter("new_class_events", "Class groups that were opened by a new class."),
    _counter("bias_refits", "Fits of the bias correction.", "cause"),
    _histogram("bias_refit_duration_seconds", "One fit of the bias correction.", _REFIT),
    _gauge("bias_alpha", "The factor on a group's outputs.", _GROUP),
    _gauge("bias_beta", "What is added to a group's outputs; of `older` groups the mean.", _GROUP),
    _gauge("buffer_examples", "Examples remembered.", _GROUP),
    _gauge("buffer_capacity", "Examples that can be remembered."),
    _gauge("buffer_mean_loss", "Mean loss of the examples remembered, when each was last replayed.", _GROUP),
    _counter("checkpoints", "Saves, by how they ended.", "outcome"),
    _histogram("checkpoint_duration_seconds", "One save that succeeded.", _SAVE),
    _gauge("checkpoint_written_bytes", "What the last save added to the disk."),
    _gauge("checkpoint_last_success_timestamp_seconds", "When the newest checkpoint was written; 0: never."),
    _gauge("checkpoint_interval_seconds", "checkpoint.every_seconds of the settings; 0: not by time."),
    _gauge("unsaved_records", "Records taken since the newest checkpoint."),
    _counter("restore_fallbacks", "Damaged checkpoints passed over when this learner started."),
)

_SERVERS = (
    _gauge("snapshot_version", "Of the snapshot that is served; of several servers, the furthest behind."),
    _gauge("snapshot_published_timestamp_seconds", "When that snapshot was published; 0: there is none."),
    _counter("http_requests", "Requests answered.", "route", "code"),
    _histogram("http_request_duration_seconds", "From a whole request to its answer's first byte.", _REQUEST, "route"),
    _histogram("predict_batch_size", "Inputs answered by one pass of the model.", _BATCH),
    _histogram("label_delay_seconds", "From a prediction to its label.", _DELAY),
    _gauge("labels_pending", "Predictions that wait for their label."),
    _counter("labels_expired", "Predictions given up because no label came."),
    _gauge("servers", "Server processes, the spare one included."),
)

_DAEMON = (
    _gauge("build_info", "1; what it was built from is in the labels.", "version", "torch"),
    _gauge("state", "1 for what the learner is doing; away: it does not answer.", "state"),
    _counter("process_restarts", "Processes that died and were started again.", "process"),
    _gauge("process_start_time_seconds", "When the process was started; of servers, the youngest.", "process"),
    _gauge("process_resident_memory_bytes", "Memory in use; of all servers together.", "process"),
    _counter("process_cpu_seconds", "Processor time used; of all servers together.", "process"),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_DAEMON, *_LEARNER, *_SERVERS)}


def buckets_of(name: str) -> tuple[float, ...]:
    return METRICS[PREFIX + name].buckets
