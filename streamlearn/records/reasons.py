"""Why a record can be refused: a closed set, so that it can be the label of a metric."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from streamlearn.errors import BadRecord

Reason: TypeAlias = Literal[
    "empty",
    "too-large",
    "bad-header",
    "bad-json",
    "bad-utf8",
    "no-input",
    "no-label",
    "bad-label",
    "bad-shape",
    "bad-dtype",
    "bad-image",
    "image-too-large",
    "not-finite",
    "unknown-content-type",
    "unknown-event",
    "bad-split",
    # A record can be sound by itself and still not fit what has been learned so far: the daemon finds these two.
    "wrong-shape",
    "too-many-classes",
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

_SHOWN = 60


def refused(reason: Reason, message: str) -> BadRecord:
    """The error to raise, its reason checked by the type checker."""
    return BadRecord(reason, message)


def shown(value: object) -> str:
    """A value from a record as an error message may quote it: on one line and never long."""
    if isinstance(value, str | bytes):
        value = value[: _SHOWN + 1]  # before repr, which could be four times as long as a large value
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
