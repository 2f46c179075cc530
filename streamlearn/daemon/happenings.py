"""What happened while records were taken in, for whoever wants to know: logs, terminal, metrics, pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from streamlearn.logs import event_logger

log = event_logger("learner")

Kind = Literal["new-class", "bias-refit", "dead-letter", "step-discarded", "end-of-group", "flush", "erased"]


@dataclass(frozen=True, slots=True)
class Happening:
    kind: Kind
    fields: dict[str, Any] = field(default_factory=dict)


def tell(happening: Happening) -> None:
    """One line in the log for one happening."""
    fields = happening.fields
    if happening.kind == "dead-letter":
        told = {name: fields[name] for name in ("reason", "partition", "offset")}
        log.warning("a record was refused", why=fields["message"], **told)
    elif happening.kind == "step-discarded":
        log.warning("a step was not finite and was undone", **fields)
    elif happening.kind == "new-class":
        log.info(f"new class {fields['label']!r}", classes=fields["classes"])
    elif happening.kind == "bias-refit":
        log.info(f"bias fitted anew, version {fields['version']}", cause=fields["cause"], group=fields["group"])
    elif happening.kind == "erased":
        log.info(f"{fields['examples']} examples erased on request")
    else:
        log.info(f"{happening.kind} at {fields['examples']} examples")
