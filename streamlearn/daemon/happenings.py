"""What happened while records were taken in, for whoever wants to know: logs, terminal, metrics, pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["new-class", "bias-refit", "dead-letter", "step-discarded", "end-of-group", "flush", "erased"]


@dataclass(frozen=True, slots=True)
class Happening:
    kind: Kind
    fields: dict[str, Any] = field(default_factory=dict)
