"""What a deployment file makes the daemon do: its command line and environment, taken by the code that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from streamlearn.cli.app import app
from streamlearn.cli.options import load_from_flags
from streamlearn.cli.serve import http_flags
from streamlearn.settings.daemon import Settings
from streamlearn.settings.sources import load_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def options_of(arguments: Sequence[str]) -> dict[str, Any]:
    """The options of one of our commands; an option or a command that does not exist is an error."""
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    while hasattr(command, "commands"):
        assert set(rest[:1]) <= set(command.commands), f"there is no command {' '.join(arguments)}"
        command = command.commands[rest.pop(0)]
    with command.make_context(command.name, rest) as context:
        return dict(context.params)


def settings_of_serve(monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], env: Mapping[str, str]) -> Settings:
    """The settings that this command line and environment come to."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    options = options_of(arguments)
    flags = [*(options["settings"] or ()), *http_flags(options["http"])]
    names = ("config", "stream", "state_dir", "preset")
    return load_from_flags(*(options.get(name) for name in names), flags).settings


def check_environment(env: Mapping[str, str]) -> Settings:
    """Every STREAMLEARN_ variable is a setting, with a value it can have."""
    return load_settings(environment=dict(env) or {"NOTHING": ""}).settings


def own(env: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in env.items() if name.startswith("STREAMLEARN_")}
