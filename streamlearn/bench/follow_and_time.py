"""Run the learner's loop on a stream until it has caught up, and print the examples learned per second."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

from streamlearn import logs
from streamlearn.daemon.learning import Learning
from streamlearn.settings.daemon import Settings


class Stopwatch:
    """Starts after so many examples; ends with the last look at it while it was busy."""

    def __init__(self, warm_up: int) -> None:
        self.warm_up = warm_up
        self.begun = self.ended = 0.0
        self.first = self.last = 0

    def __call__(self, learning: Learning) -> None:
        learned = learning.core.counters.examples_learned
        if learned > self.last and not learning.idle:
            self.last, self.ended = learned, time.perf_counter()
            if not self.begun and learned >= self.warm_up:
                self.begun, self.first = self.ended, learned


def main(url: str, state_dir: str, warm_up: str) -> None:
    logs.configure("json", "error")
    settings = Settings.model_validate({"state_dir": Path(state_dir), "stream": {"url": url}})
    watch = Stopwatch(int(warm_up))
    learning = Learning(settings, lambda: learning.caught_up, watch)
    gc.freeze()  # as the daemon does
    learning.run()
    sys.stdout.write(f"{(watch.last - watch.first) / (watch.ended - watch.begun)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
