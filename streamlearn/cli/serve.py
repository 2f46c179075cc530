"""`streamlearn serve`: follow a stream, learn from it and answer predictions until told to stop."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from streamlearn.cli.options import ConfigFile, PresetName, SetAny, StateDir, StreamUrl, load_from_flags
from streamlearn.errors import SettingsError

if TYPE_CHECKING:
    from streamlearn.daemon.learning import Learning
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


Http = Annotated[
    str | None,
    typer.Option("--http", help="Where predictions and control are served: 127.0.0.1:8080.", metavar="HOST:PORT"),
]
NoHttp = Annotated[bool, typer.Option("--no-http", help="The learner alone: nothing is served.")]
ExitWithLearner = Annotated[
    bool,
    typer.Option("--exit-with-learner", help="When learning stops for a reason, stop serving, too, with its code."),
]


def serve(
    config: ConfigFile = None,
    stream: StreamUrl = None,
    state_dir: StateDir = None,
    http: Http = None,
    preset: PresetName = None,
    settings: SetAny = None,
    from_earliest: FromEarliest = False,
    quiet: Quiet = False,
    until_idle: UntilIdle = False,
    demo: DemoFlag = False,
    no_http: NoHttp = False,
    exit_with_learner: ExitWithLearner = False,
) -> None:
    """Follow a stream and learn from each record once, for as long as it runs; answer predictions meanwhile.

    Everything it knows is saved in the state directory, together with its position in the stream: stop it (Ctrl-C or
    SIGTERM), kill it, start it again, and it goes on exactly where it was.
    """
    flags = list(settings or ())
    flags += ["stream.from_earliest=true"] if from_earliest else []
    flags += ["quiet=true"] if quiet else []
    flags += ["http.enabled=false"] if no_http else []
    flags += ["http.exit_with_learner=true"] if exit_with_learner else []
    flags += http_flags(http)
    if demo:
        from streamlearn.settings.presets import DEMO

        if stream is not None:
            raise SettingsError(["--demo brings its own stream: leave --stream out"])
        # Below what the user sets: a later assignment of the same name wins.
        flags = [f"learner.{name}={value}" for name, value in DEMO.items()] + flags
        state_dir = state_dir or Path("streamlearn-demo")
    run(load_from_flags(config, stream, state_dir, preset, flags).settings, until_idle=until_idle, demo=demo)


def http_flags(address: str | None) -> list[str]:
    """HOST:PORT, [::1]:PORT or :PORT as settings."""
    if address is None:
        return []
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise SettingsError([f"--http {address!r}: expected HOST:PORT, such as 127.0.0.1:8080"])
    return [f"http.port={port}", *([f"http.host={host.strip('[]')}"] if host else [])]


class StopFlag:
    """Signal handlers only set a flag. A second Ctrl-C leaves at once, which is as safe as a power cut."""

    def __init__(self) -> None:
        self.raised = False
        self.at_once: Callable[[], None] = lambda: None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._raise)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self.raised and number == signal.SIGINT:
            self.at_once()
            if os.isatty(2):
                os.write(2, b"\x1b[?25h\n")  # the live lines have hidden the cursor
            os._exit(130)
        self.raised = True


def run(settings: Settings, *, until_idle: bool = False, demo: bool = False) -> None:
    from streamlearn import logs
    from streamlearn.settings.tree import secret_values

    logs.configure(settings.log.format, settings.log.level, secrets=secret_values(settings))
    flag = StopFlag()  # before anything slow, so that an early Ctrl-C is heard
    if settings.http.enabled:
        from streamlearn.daemon.supervisor import Supervisor

        supervisor = Supervisor(settings, lambda: flag.raised, until_idle=until_idle, demo=demo)
        flag.at_once = supervisor.kill
        supervisor.run()
    else:
        from streamlearn.lock import DirectoryLock

        lock = DirectoryLock(settings.state_dir)
        lock.acquire()  # before the slow imports: who comes second is told at once
        from streamlearn.daemon.running import run_learning
        from streamlearn.daemon.systemd import Systemd

        systemd = Systemd()

        def tick(learning: Learning) -> None:
            systemd.alive()
            if learning.following and not learning.stopped:
                systemd.ready("learning; nothing is served")

        run_learning(settings, lambda: flag.raised, lock, until_idle=until_idle, demo=demo, tick=tick)
    sys.stdout.flush()
