"""Every setting there is by its dotted name, such as `learner.buffer_size`, and what can be told about it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from streamlearn.settings.daemon import Settings

ENVIRONMENT_PREFIX = "STREAMLEARN_"


@dataclass(frozen=True)
class Setting:
    name: str
    field: FieldInfo

    @property
    def secret(self) -> bool:
        return self.field.annotation is SecretStr or SecretStr in get_args(self.field.annotation)

    @property
    def variable(self) -> str:
        return variable_of(self.name)


@dataclass(frozen=True)
class Table:
    name: str  # "" is the top of the file
    model: type[BaseModel]
    settings: tuple[Setting, ...]


@cache
def all_tables() -> tuple[Table, ...]:
    return tuple(_tables("", Settings))


@cache
def all_settings() -> dict[str, Setting]:
    return {setting.name: setting for table in all_tables() for setting in table.settings}


def table_names() -> frozenset[str]:
    return frozenset(table.name for table in all_tables())


def variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "__")


def secret_of_file(name: str) -> Setting | None:
    """The secret whose file `name` tells: `stream.kafka.password_file` -> `stream.kafka.password`."""
    setting = all_settings().get(name.removesuffix("_file")) if name.endswith("_file") else None
    return setting if setting is not None and setting.secret else None


def did_you_mean(name: str) -> str:
    """`; did you mean learner.buffer_size?`, or nothing where nothing is near."""
    known = [*all_settings(), *(f"{setting.name}_file" for setting in all_settings().values() if setting.secret)]
    near = get_close_matches(name, known, 1, 0.6)
    if not near:  # perhaps the right name in the wrong table
        last = name.rpartition(".")[2]
        by_last = {other.rpartition(".")[2]: other for other in known}
        near = [by_last[match] for match in get_close_matches(last, by_last, 1, 0.8)]
    return f"; did you mean {near[0]}?" if near else ""


def value_of(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def secret_values(settings: Settings) -> list[str]:
    """What no line of the log may hold: for `logs.configure`."""
    found = (value_of(settings, setting.name) for setting in all_settings().values() if setting.secret)
    return [secret.get_secret_value() for secret in found if secret is not None]


def _tables(name: str, model: type[BaseModel]) -> list[Table]:
    settings, deeper = [], []
    for field_name, field in model.model_fields.items():
        dotted = f"{name}.{field_name}" if name else field_name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            deeper += _tables(dotted, field.annotation)
        else:
            settings.append(Setting(dotted, field))
    return [Table(name, model, tuple(settings)), *deeper]
