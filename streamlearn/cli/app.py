"""All commands under one roof, and what a person sees when one of them fails."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streamlearn.cli import bench, checkpoints, config, dead_letters, export, follow, serve, status
from streamlearn.errors import SettingsError, StreamlearnError
from streamlearn.version import VERSION

app = typer.Typer(
    name="streamlearn",
    help="Learns from a stream of labelled examples for as long as it runs, and does not forget.\n\n"
    "To see it at work, with nothing else: `streamlearn serve --demo`. Every setting: `streamlearn config example`.",
    epilog="Exit codes: 0 clean, 2 bad settings or usage, 3 too many bad records or stream unusable, 4 the "
    "checkpoint's position is no longer in the stream, 5 state directory locked, corrupt or incompatible.",
    no_args_is_help=True,
    rich_markup_mode="markdown",  # paragraphs fill the lines of any terminal
    pretty_exceptions_enable=False,  # an error nobody foresaw is for a bug report: the plain traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)

# A command: app.command()(its_module.its_function). A group: app.add_typer(its_module.app).
app.command()(serve.serve)
app.command()(follow.follow)
app.command()(status.status)
app.add_typer(checkpoints.app)
app.add_typer(dead_letters.app)
app.add_typer(config.app)
app.command()(export.export)
app.command()(bench.bench)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamlearn {VERSION}")
        raise typer.Exit


@app.callback()
def options_of_all_commands(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Eager options answer before a command is asked for, so nothing is left to do here."""


def run() -> None:
    try:
        app(prog_name="streamlearn")
    except StreamlearnError as error:
        tell(error)
        sys.exit(error.exit_code)


def tell(error: StreamlearnError) -> None:
    """On standard error: what is wrong, in red, and what to do about it. Several faults have a line each."""
    faults = error.faults if isinstance(error, SettingsError) else [error.message]
    for fault in faults:
        typer.echo(f"{typer.style('error:', fg=typer.colors.RED, bold=True)} {typer.style(fault, fg='red')}", err=True)
    if error.hint:
        typer.echo(f"{typer.style('hint:', fg=typer.colors.CYAN)} {error.hint}", err=True)
