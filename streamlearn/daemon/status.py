"""What the daemon is doing, as plain values: the same for the terminal, for scripts and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.accuracy import SOURCES

if TYPE_CHECKING:
    from streamlearn.daemon.learning import Learning


def status(learning: Learning) -> dict[str, Any]:
    core, learner = learning.core, learning.core.learner
    table, buffer, position, last = learner.classes, learner.buffer, core.position, learning.saver.last
    published = learning.publisher.last
    counts = {table.names[k]: count for k, count in enumerate(buffer.counts) if count} if buffer else {}
    return {
        "state": state(learning),
        "reason": learning.reason,
        "started_at": learning.started_at,
        "examples_seen": core.counters.examples_learned,
        "records_consumed": core.counters.records_consumed,
        "records_rejected": core.counters.records_rejected,
        "rejected": {reason: count for reason, count in core.counters.rejected.items() if count},
        "steps_discarded": core.counters.steps_discarded,
        "stream": {
            "url": learning.stream_url,
            "positions": {str(k): offset for k, offset in position.offsets.items()} if position else {},
            "lag": learning.lag,
        },
        "classes": [table.names[output] for output in table.known],
        "groups": [_group(learning, place) for place in range(len(table.groups))],
        "held_out_at": core.held_out_at,
        "learning_rate": learner.decay.rate(learner.examples_seen),
        "loss": {"stream": core.last_report.loss_stream, "replay": core.last_report.loss_replay},
        "bias": {
            "version": learner.bias.version,
            "group": learner.bias.group,
            "alpha": learner.bias.alpha,
            "beta": (learner.bias.betas or {}).get(learner.bias.group or "", 0.0),
        },
        "buffer": {
            "capacity": learning.settings.learner.buffer_size,
            "examples": len(buffer) if buffer else 0,
            "by_class": counts,
        },
        "checkpoint": None
        if last is None
        else {
            "id": last.number,
            "at": last.created_at,
            "examples_seen": last.examples_seen,
            "bytes_written": last.bytes_written,
            "bytes_total": last.bytes_total,
            "seconds": last.seconds,
        },
        "snapshot": None
        if published is None
        else {
            "version": published.version,
            "published_at": published.published_at,
            "examples_seen": published.examples_seen,
        },
    }


def state(learning: Learning) -> str:
    if learning.stopped:
        return "stopped"
    if learning.paused:
        return "paused"
    return "idle" if learning.idle else "learning"


def _group(learning: Learning, place: int) -> dict[str, Any]:
    core, table = learning.core, learning.core.learner.classes
    group = table.groups[place]
    return {
        "name": group.name,
        "classes": [table.names[output] for output in group.classes],
        "accuracy": {source: core.accuracy.now(source, group.name) for source in SOURCES},
        "forgetting": core.accuracy.forgetting(group.name),
    }
