"""TOML file < environment < flags -> Settings, and where each value came from.

Nothing stops at the first fault: whoever sets up a daemon wants to correct everything in one go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from streamlearn.errors import SettingsError
from streamlearn.settings.daemon import Settings
from streamlearn.settings.given import Given, from_environment, from_file
from streamlearn.settings.learner import METHOD_DEFAULTS, LearnerSettings
from streamlearn.settings.presets import PRESETS, preset_values
from streamlearn.settings.stream import StreamSettings
from streamlearn.settings.tree import all_settings, did_you_mean, secret_of_file, table_names, value_of

DEFAULT = "default"


@dataclass(frozen=True)
class Loaded:
    settings: Settings
    origins: Mapping[str, str]  # for every setting: "default", "file x.toml", "STREAMLEARN_...", "--flag", "preset x"


def load_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Iterable[Given] = (),
    stream_faults: Callable[[StreamSettings], Iterable[str]] = lambda _: (),
) -> Loaded:
    """Raises SettingsError with every fault. `environment` is os.environ if not given; of `flags`, the last wins.

    `stream_faults` says what is wrong with a stream that only the stream itself can know.
    """
    faults: list[str] = []
    given: dict[str, Given] = {}
    for source in (from_file(file, faults), from_environment(environment or os.environ, faults), tuple(flags)):
        _take(source, given, faults)
    _below(given, _preset(given))
    nested = _nested(given)
    settings = _validated(nested, given, faults)
    with suppress(ValidationError):  # said already; but a good stream table is looked at beside other faults
        faults += stream_faults(StreamSettings.model_validate(nested.get("stream", {})))
    if settings is None or faults:
        raise SettingsError(sorted(set(faults)), hint="streamlearn config example shows every setting")
    return Loaded(settings, {name: _origin(settings, name, given) for name in all_settings()})


def _take(source: Iterable[Given], given: dict[str, Given], faults: list[str]) -> None:
    """Add what one source gives, over what the sources before it gave."""
    from_here: dict[str, Given] = {}
    for one in source:
        secret = secret_of_file(one.name)
        if secret is not None and one.name not in all_settings():
            one = Given(secret.name, _secret_in(one, faults), one.where)
            if secret.name in from_here:
                faults.append(f"{secret.name}: given directly and as a file; one of the two is enough")
        elif one.name not in all_settings():
            table = one.name in table_names()
            what = "is a table, not a value" if table else f"there is no such setting{did_you_mean(one.name)}"
            faults.append(f"{one.name}: {what} (from {one.where})")
            continue
        elif all_settings()[one.name].secret:
            variable = all_settings()[one.name].variable
            if one.where != variable:
                way = f"set {variable}, or {one.name}_file to the path of a file that holds it"
                faults.append(f"{one.name}: a secret is not taken from {one.where}; {way}")
                continue
            if secret_given_as_file := from_here.get(one.name):
                faults.append(f"{one.name}: also given by {secret_given_as_file.where}; one of the two is enough")
        from_here[one.name] = one
    given |= from_here


def _secret_in(one: Given, faults: list[str]) -> SecretStr:
    try:
        secret = Path(str(one.value)).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        faults.append(f"{one.name}: {one.value} cannot be read: {reason} (from {one.where})")
        return SecretStr("unreadable")
    if not secret:
        faults.append(f"{one.name}: {one.value} is empty (from {one.where})")
    return SecretStr(secret)


def _preset(given: Mapping[str, Given]) -> Iterable[Given]:
    name = given["preset"].value if "preset" in given else None
    if name not in PRESETS:
        return ()  # the model says so, with the names there are
    defaults = LearnerSettings.model_fields
    method = given["learner.method"].value if "learner.method" in given else defaults["method"].default
    size = given["learner.buffer_size"].value if "learner.buffer_size" in given else defaults["buffer_size"].default
    try:
        values = preset_values(str(name), str(method), int(size))
    except (TypeError, ValueError):
        return ()  # a buffer size that is no number: the model says so
    if "learner.decay_horizon" in given:
        values.pop("decay", None)  # two ways to say one thing: what was given stays
    return [Given(f"learner.{key}", value, f"preset {name}") for key, value in values.items()]


def _below(given: dict[str, Given], lower: Iterable[Given]) -> None:
    for one in lower:
        given.setdefault(one.name, one)


def _nested(given: Mapping[str, Given]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for one in given.values():
        *tables, last = one.name.split(".")
        place = nested
        for table in tables:
            place = place.setdefault(table, {})
        place[last] = one.value
    return nested


def _validated(nested: Mapping[str, Any], given: Mapping[str, Given], faults: list[str]) -> Settings | None:
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        # include_input False: what was given may be a secret in the wrong place
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            faults += _described(fault["loc"], fault["msg"], given)
        return None


def _described(location: tuple[int | str, ...], message: str, given: Mapping[str, Given]) -> Iterable[str]:
    """One fault of the model in our words: which setting, what is wrong, who said so."""
    name = ".".join(map(str, location))
    while name and name not in all_settings() and name not in table_names():
        name = name.rpartition(".")[0]  # pydantic goes on into the members of a union or a list
    where = f" (from {given[name].where})" if name in given else ""
    text = message.removeprefix("Value error, ")
    return [f"{name}: {text[0].lower() + text[1:]}{where}"] if name else [text]


def _origin(settings: Settings, name: str, given: Mapping[str, Given]) -> str:
    if name in given:
        return given[name].where
    table, _, last = name.rpartition(".")
    if table == "learner":
        of_method = METHOD_DEFAULTS[settings.learner.method]
        if last in of_method and value_of(settings, name) == of_method[last]:
            return f"method {settings.learner.method}"
    return DEFAULT
