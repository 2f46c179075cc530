"""How fast this machine learns, saves and serves: every figure beside its yardstick, taken in turns in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from streamlearn.bench import daemon, learning, serving
from streamlearn.bench.figures import Figure

Bench = Callable[[], Iterator[Figure]]


def benches(kafka: str | None) -> dict[tuple[str, ...], Bench]:
    """What can be measured: the names of the figures, and what yields them."""
    found: dict[tuple[str, ...], Bench] = {
        ("learner_vs_bare_loop",): learning.learner_vs_bare_loop,
        ("buffer_1e4_vs_1e3", "buffer_1e5_vs_1e3", "buffer_1e6_vs_1e3"): learning.large_buffers,
        ("bias_refit",): learning.bias_refit,
        ("log_vs_learner",): daemon.through_log,
        ("checkpoint_stall", "checkpoint_bytes"): daemon.saving,
        serving.NAMES: serving.serving,
    }
    if kafka is not None:
        found[("kafka_vs_learner",)] = partial(daemon.through_kafka, kafka)
    return found
