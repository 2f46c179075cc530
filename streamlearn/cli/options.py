"""Flags that several commands have, and the settings that come out of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamlearn.errors import SettingsError
from streamlearn.settings.presets import PRESETS

if TYPE_CHECKING:
    from streamlearn.settings.sources import Loaded
    from streamlearn.settings.stream import StreamSettings

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", envvar="STREAMLEARN_CONFIG", help="TOML file with settings.", metavar="FILE"),
]
StreamUrl = Annotated[
    str | None,
    typer.Option(
        "--stream",
        "-s",
        help="Where the records are: kafka://host:9092/topic or log:PATH. Default: the log in the state directory.",
        metavar="URL",
    ),
]
StateDir = Annotated[
    Path | None, typer.Option("--state-dir", "-d", help="The daemon's directory: streamlearn-state.", metavar="DIR")
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset", help=f"Start from the paper's settings for a benchmark: {', '.join(PRESETS)}.", metavar="NAME"
    ),
]
SetAny = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting, such as learner.buffer_size=500; may be repeated.", metavar="NAME=VALUE"),
]


def load_from_flags(
    config: Path | None,
    stream: str | None = None,
    state_dir: Path | None = None,
    preset: str | None = None,
    settings: Iterable[str] | None = None,
) -> Loaded:
    """File < environment < flags; a flag of its own wins over --set."""
    from streamlearn.settings.given import Given, from_text
    from streamlearn.settings.sources import load_settings

    flags = [from_text(name, value, "--set") for name, value in assignments(settings or ())]
    named = (
        ("stream.url", stream, "--stream"),
        ("state_dir", state_dir, "--state-dir"),
        ("preset", preset, "--preset"),
    )
    flags += [Given(name, value, flag) for name, value, flag in named if value is not None]
    return load_settings(config, flags=flags, stream_faults=_stream_faults)


def _stream_faults(stream: StreamSettings) -> list[str]:
    """What `open_stream` would say, now, among all other faults."""
    if stream.url is None:
        return []
    from streamlearn.settings.stream import check_kafka_settings
    from streamlearn.stream.url import KafkaAddress, parse_url

    try:
        address = parse_url(stream.url)
        if isinstance(address, KafkaAddress):
            check_kafka_settings(stream.kafka, [host for host, _ in address.servers])
    except SettingsError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return [f"{fault}{hint}" for fault in error.faults]
    return []


def assignments(texts: Iterable[str]) -> list[tuple[str, str]]:
    """NAME=VALUE, all of them or SettingsError with every one that is not."""
    pairs = [text.partition("=") for text in texts]
    if bad := [name for name, equals, _ in pairs if not equals or not name.strip()]:
        raise SettingsError([f"--set {text!r}: expected NAME=VALUE" for text in bad])
    return [(name.strip(), value) for name, _, value in pairs]
