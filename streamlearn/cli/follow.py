"""`streamlearn follow`: a server alone, on the snapshots of a learner elsewhere."""

from __future__ import annotations

from os.path import isdir
from pathlib import Path
from typing import Annotated

import typer

from streamlearn.cli.options import ConfigFile, SetAny, load_from_flags
from streamlearn.cli.serve import Http, http_flags
from streamlearn.errors import SettingsError


def follow(
    snapshots: Annotated[
        Path,
        typer.Option("--snapshots", help="The folder `snapshots` of a state directory, or a copy.", metavar="DIR"),
    ],
    http: Http = None,
    config: ConfigFile = None,
    settings: SetAny = None,
) -> None:
    """Answer predictions from the snapshots of a learner that runs elsewhere, always from the newest one.

    For more readers than one machine serves: share the folder, and start one of these on each machine. It needs
    nothing but the folder, and goes on with what it has when the folder does not answer.
    """
    if not isdir(snapshots):
        raise SettingsError([f"--snapshots: {snapshots} is not a directory"])
    loaded = load_from_flags(config, settings=[*(settings or ()), *http_flags(http)]).settings
    from streamlearn import logs
    from streamlearn.daemon.supervisor import listen
    from streamlearn.settings.tree import secret_values

    logs.configure(loaded.log.format, loaded.log.level, secrets=secret_values(loaded))
    listening = listen(loaded.http.host, loaded.http.port)  # before the slow imports: whoever is refused hears it
    from streamlearn.daemon.follow import run

    run(loaded, snapshots, listening)
