"""What a file, the environment or a flag says, each value with its dotted name and where it was said."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin

from streamlearn.settings.tree import ENVIRONMENT_PREFIX, all_settings, did_you_mean, secret_of_file, table_names


@dataclass(frozen=True)
class Given:
    name: str
    value: Any
    where: str  # "file x.toml", "STREAMLEARN_THREADS", "--stream"


def from_file(path: Path | None, faults: list[str]) -> list[Given]:
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        faults.append(f"--config: {path} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        faults.append(f"--config: {path} is not a text file")
    except tomllib.TOMLDecodeError as error:
        faults.append(f"--config: {path} is not TOML: {error}")
    else:
        return list(_flat("", content, f"file {path}"))
    return []


def from_environment(environment: Mapping[str, str], faults: list[str]) -> list[Given]:
    """STREAMLEARN_LEARNER__BUFFER_SIZE=500. An empty variable is as good as none: compose files make them."""
    given = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or not text:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
        if name in all_settings() or secret_of_file(name):
            given.append(from_text(name, text, variable))
        elif "__" in variable:
            faults.append(f"{name}: there is no such setting{did_you_mean(name)} (from {variable})")
        else:
            # Not ours perhaps: Kubernetes sets STREAMLEARN_SERVICE_HOST and more beside a service of that name.
            known = {setting.variable: setting for setting in all_settings().values()}
            for near in get_close_matches(variable, known, 1, 0.9):
                faults.append(f"{variable}: there is no such variable; did you mean {near}?")
    return given


def from_text(name: str, text: str, where: str) -> Given:
    """A value as environment and flags have it: JSON for lists and tables, or a,b,c; pydantic reads the rest."""
    value: Any = text
    if text.startswith(("[", "{")):
        try:
            value = json.loads(text)
        except ValueError:
            value = text  # the model will say what it expected
    elif name in all_settings() and get_origin(all_settings()[name].field.annotation) is list:
        value = [part.strip() for part in text.split(",")]
    return Given(name, value, where)


def _flat(name: str, content: Mapping[str, Any], where: str) -> Iterator[Given]:
    """Tables of settings are opened; a table that is a value (learner.normalise) is one."""
    for key, value in content.items():
        dotted = f"{name}.{key}" if name else key
        if isinstance(value, dict) and dotted not in all_settings():
            if dotted in table_names() or value:
                yield from _flat(dotted, value, where)
        else:
            yield Given(dotted, value, where)
