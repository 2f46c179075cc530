"""Everything streamlearn raises on purpose.

StreamlearnError                    exit code
├── SettingsError                   2    settings or usage: all faults at once
├── StreamError                     3    the stream cannot be used, or too much of it is bad
│   └── StreamAway                  -    the broker or disk does not answer now: try again later
├── PositionLost                    4    the checkpoint's position is no longer in the stream
├── StateError                      5    the state directory cannot be used
│   ├── StateLocked                      another daemon owns it
│   ├── StateCorrupt                     no checkpoint in it is whole
│   └── StateIncompatible                made by another format or for another architecture
├── BadRecord                       -    a record that cannot be an example: becomes a dead letter
└── LearnerError                    1
    ├── BadInput                         inputs or labels that do not fit (also a ValueError)
    └── TooManyClasses                   one class more than the settings allow

An error says what was wrong and where; `hint` says what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence


class StreamlearnError(Exception):
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class SettingsError(StreamlearnError):
    exit_code = 2

    def __init__(self, faults: Sequence[str], hint: str = "") -> None:
        self.faults = list(faults)
        super().__init__("; ".join(self.faults), hint)


class StreamError(StreamlearnError):
    exit_code = 3


class StreamAway(StreamError):
    pass


class PositionLost(StreamlearnError):
    exit_code = 4


class StateError(StreamlearnError):
    exit_code = 5


class StateLocked(StateError):
    pass


class StateCorrupt(StateError):
    pass


class StateIncompatible(StateError):
    pass


class BadRecord(StreamlearnError):
    """`reason` is one word of a closed set, fit for a metric label; the message is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LearnerError(StreamlearnError):
    pass


class BadInput(LearnerError, ValueError):
    pass


class TooManyClasses(LearnerError):
    pass
