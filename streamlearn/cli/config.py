"""`streamlearn config`: the settings in force, where each came from, and which there are."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from streamlearn.cli.options import ConfigFile, PresetName, SetAny, StateDir, StreamUrl, load_from_flags

app = typer.Typer(
    name="config",
    help="The settings in force and where each came from; every setting there is.",
    epilog="Settings come from a TOML file (--config), over it from the environment "
    "(STREAMLEARN_LEARNER__BUFFER_SIZE=500 for learner.buffer_size), over both from flags. Secrets come only from the "
    "environment or from a file that NAME_file tells the path of.",
    no_args_is_help=True,
)


@app.command()
def show(
    config: ConfigFile = None,
    stream: StreamUrl = None,
    state_dir: StateDir = None,
    preset: PresetName = None,
    settings: SetAny = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: {name: {value, from}}.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not as by default.")] = False,
) -> None:
    """The settings that a daemon started with the same flags would have, each with its origin.

    The output is TOML: what is printed can be saved and given to --config. Secrets are masked.
    """
    from streamlearn.settings.describe import MASKED, in_force, toml_value
    from streamlearn.settings.sources import DEFAULT

    rows = in_force(load_from_flags(config, stream, state_dir, preset, settings))
    if changed:
        rows = [row for row in rows if row.origin != DEFAULT]
    if as_json:
        typer.echo(json.dumps({row.name: {"value": row.value, "from": row.origin} for row in rows}, indent=2))
        return
    for row in rows:
        told = row.value is not None and row.value != MASKED
        text = f"{row.name} = {toml_value(row.value)}" if told else f"# {row.name} = {row.value or '(not set)'}"
        ours = row.origin != DEFAULT
        typer.echo(f"{typer.style(f'{text:<48}', bold=ours)} {typer.style(f'# {row.origin}', dim=not ours)}")


@app.command()
def schema() -> None:
    """The JSON schema of the settings, for editors and other tools."""
    from streamlearn.settings.daemon import Settings

    typer.echo(json.dumps(Settings.model_json_schema(), indent=2))


@app.command()
def example() -> None:
    """A TOML file to start from: every setting with its meaning and its default.

    `streamlearn config example > streamlearn.toml`, then `streamlearn serve --config streamlearn.toml`.
    """
    from streamlearn.settings.describe import example_toml

    typer.echo(example_toml(), nl=False)
