"""The settings for people: a commented TOML file of all of them, and the ones in force with their origins."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from streamlearn.settings.daemon import Settings
from streamlearn.settings.sources import Loaded
from streamlearn.settings.tree import ENVIRONMENT_PREFIX, Setting, Table, all_settings, all_tables, value_of

MASKED = "********"
_WIDTH = 100


@dataclass(frozen=True)
class InForce:
    name: str
    value: Any  # as JSON has it; a secret is masked
    origin: str


def in_force(loaded: Loaded) -> list[InForce]:
    return [InForce(name, _plain(value_of(loaded.settings, name)), loaded.origins[name]) for name in all_settings()]


def example_toml() -> str:
    """Every setting with its meaning and its default, all commented out: `#` before a name, `# ` before a sentence."""
    return "\n".join(_example_lines()) + "\n"


def _example_lines() -> Iterator[str]:
    defaults = Settings()
    yield "# Settings of streamlearn. What is left out has the value shown; take away a # to change it."
    variable = f"{ENVIRONMENT_PREFIX}LEARNER__BUFFER_SIZE=500"
    yield f"# The environment ({variable}) wins over this file, and flags win over both."
    for table in all_tables():
        if not table.settings:
            continue
        yield ""
        if table.name:
            yield from _comment(_purpose(table))
            yield f"[{table.name}]"
        for setting in table.settings:
            yield from _comment(setting.field.description or "")
            yield _example_line(setting, value_of(defaults, setting.name))


def _example_line(setting: Setting, default: Any) -> str:
    last = setting.name.rpartition(".")[2]
    if setting.secret:
        return f"# {last}: not here, but in {setting.variable}, or in a file that {last}_file tells the path of"
    if default is None and setting.field.examples:
        return f"#{last} = {toml_value(setting.field.examples[0])}"
    if default is None:
        return f"# {last} = (not set)"
    return f"#{last} = {toml_value(_plain(default))}"


def _purpose(table: Table) -> str:
    own = table.model.__dict__.get("__doc__") or ""  # not what it inherits
    return inspect.cleandoc(own).partition("\n\n")[0].replace("\n", " ")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower()  # numbers and truth values


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASKED
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return str(value) if isinstance(value, Path) else value
