"""`streamlearn serve`: follow a stream and learn from it until told to stop."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from streamlearn.cli.options import ConfigFile, PresetName, SetAny, StateDir, StreamUrl, load_from_flags
from streamlearn.errors import SettingsError

if TYPE_CHECKING:
    from streamlearn.settings.daemon import Settings

FromEarliest = Annotated[
    bool,
    typer.Option(
        "--from-earliest",
        help="If the checkpoint's position is gone from the stream, go on from the earliest record left.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No live lines on the terminal, only the log.")]
DemoFlag = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Learn the Fashion-MNIST sample that comes with it, two new classes at a time: nothing else is needed.",
    ),
]
UntilIdle = Annotated[
    bool, typer.Option("--until-idle", help="Stop cleanly when everything on the stream has been learned.")
]


def serve(
    config: ConfigFile = None,
    stream: StreamUrl = None,
    state_dir: StateDir = None,
    preset: PresetName = None,
    settings: SetAny = None,
    from_earliest: FromEarliest = False,
    quiet: Quiet = False,
    until_idle: UntilIdle = False,
    demo: DemoFlag = False,
) -> None:
    """Follow a stream and learn from each record once, for as long as it runs.

    Everything it knows is saved in the state directory, together with its position in the stream: stop it (Ctrl-C or
    SIGTERM), kill it, start it again, and it goes on exactly where it was.
    """
    flags = list(settings or ())
    flags += ["stream.from_earliest=true"] if from_earliest else []
    flags += ["quiet=true"] if quiet else []
    if demo:
        from streamlearn.settings.presets import DEMO

        if stream is not None:
            raise SettingsError(["--demo brings its own stream: leave --stream out"])
        # Below what the user sets: a later assignment of the same name wins.
        flags = [f"learner.{name}={value}" for name, value in DEMO.items()] + flags
        state_dir = state_dir or Path("streamlearn-demo")
    run(load_from_flags(config, stream, state_dir, preset, flags).settings, until_idle=until_idle, demo=demo)


class StopFlag:
    """Signal handlers only set a flag. A second Ctrl-C leaves at once, which is as safe as a power cut."""

    def __init__(self) -> None:
        self.raised = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._raise)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self.raised and number == signal.SIGINT:
            if os.isatty(2):
                os.write(2, b"\x1b[?25h\n")  # the live lines have hidden the cursor
            os._exit(130)
        self.raised = True


class StandardError:
    """Standard error as it is at the moment of writing: live lines take its place, and put the log above themselves."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


def run(settings: Settings, *, until_idle: bool = False, demo: bool = False) -> None:
    from rich.console import Console

    from streamlearn import logs
    from streamlearn.lock import DirectoryLock
    from streamlearn.settings.tree import secret_values

    stream = cast(TextIO, StandardError())
    logs.configure(settings.log.format, settings.log.level, secrets=secret_values(settings), stream=stream)
    # Before the slow imports, so that an early Ctrl-C is heard, and who comes second is told at once.
    flag = StopFlag()
    lock = DirectoryLock(settings.state_dir)
    lock.acquire()

    from streamlearn.daemon.demo import Demo
    from streamlearn.daemon.display import Display
    from streamlearn.daemon.learning import Learning

    console = Console(stderr=True)
    live = console.is_terminal and not settings.quiet
    display: Any = Display(console) if live else nullcontext(lambda learning: None)

    show = Demo(settings, console if live else Console()) if demo else None

    def stop() -> bool:
        done = until_idle and learning.caught_up and (show is None or show.told)
        return flag.raised or done

    with display as draw:

        def tick(learning: Learning) -> None:
            draw(learning)
            if show is not None:
                show.look(learning)

        learning = Learning(settings, stop, tick, lock)
        if show is not None:
            show.start()
        try:
            learning.run()
        finally:
            if show is not None:
                show.stop()
    sys.stdout.flush()
