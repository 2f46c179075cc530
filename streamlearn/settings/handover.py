"""Settings from a process to its child, secrets included: through a pipe, never through arguments or files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from streamlearn.settings.daemon import Settings


def to_line(settings: Settings, **more: Any) -> bytes:
    """One line of JSON that `from_line` makes the same settings of."""
    return json.dumps({"settings": settings.model_dump(), **more}, default=_plain).encode() + b"\n"


def from_line(line: bytes) -> tuple[Settings, dict[str, Any]]:
    content = json.loads(line)
    return Settings.model_validate(content.pop("settings")), content


def _plain(value: object) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be handed over")
