"""What can be measured, and by what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from streamlearn.bench import daemon, learning, names, serving
from streamlearn.bench.figures import Figure

Bench = Callable[[], Iterator[Figure]]


def benches(kafka: str | None) -> dict[tuple[str, ...], Bench]:
    """What can be measured: the names of the figures, and what yields them."""
    found: dict[tuple[str, ...], Bench] = {
        names.LEARNER: learning.learner_vs_bare_loop,
        names.BUFFERS: learning.large_buffers,
        names.REFIT: learning.bias_refit,
        names.LOG: daemon.through_log,
        names.SAVING: daemon.saving,
        names.SERVING: serving.serving,
    }
    if kafka is not None:
        found[names.KAFKA] = partial(daemon.through_kafka, kafka)
    return found
