"""A Learning with what a person sees of it: live lines on a terminal, and the demo."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from rich.console import Console

from streamlearn.daemon.demo import Demo
from streamlearn.daemon.display import Display
from streamlearn.daemon.learning import Learning
from streamlearn.lock import DirectoryLock
from streamlearn.settings.daemon import Settings


def run_learning(
    settings: Settings,
    stopping: Callable[[], bool],
    lock: DirectoryLock,
    *,
    until_idle: bool = False,
    demo: bool = False,
    controlled: bool = False,
    tick: Callable[[Learning], None] = lambda learning: None,
) -> None:
    console = Console(stderr=True)
    live = console.is_terminal and not settings.quiet
    display: Any = Display(console) if live else nullcontext(lambda learning: None)
    show = Demo(settings, console if live else Console()) if demo else None

    def stop() -> bool:
        done = until_idle and learning.caught_up and (show is None or show.told)
        return stopping() or done

    with display as draw:

        def look(learning: Learning) -> None:
            tick(learning)
            draw(learning)
            if show is not None:
                show.look(learning)

        learning = Learning(settings, stop, look, lock, controlled=controlled)
        if show is not None:
            show.start()
        gc.freeze()  # modules stay: to look through them for garbage again and again would only take time
        try:
            learning.run()
        finally:
            if show is not None:
                show.stop()
